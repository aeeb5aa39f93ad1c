//! `[client]`: the daemon elsewhere that the commands of a machine or a user speak to.

use std::path::PathBuf;

use super::connection::empty_is_none;
use super::toml_table::toml_table;

toml_table! {
    /// The daemon that commands speak to, in place of Redis.
    pub struct ClientConfig in "client" {
        /// The address of the API of a daemon elsewhere: `https://HOST:PORT`, `http://HOST:PORT`, or `unix:PATH` of a socket.
        /// Commands such as `hero exec` and `hero job list` call it and need no login of Redis; `--api` and `HERO_API` name
        /// another. Empty, the default: they use Redis itself. It belongs into `~/.config/hero/hero.toml`.
        api: Option<String> as "empty_is_none" = None => Text;
        /// The file of the token for it, from `hero token new`; `HERO_TOKEN` has the token itself. Empty: no token.
        token_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// The certificate authorities for its certificate, in PEM. Empty: those that the system trusts.
        tls_ca_file: Option<PathBuf> as "empty_is_none" = None => File;
    }
}
