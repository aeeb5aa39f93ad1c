//! `[sal]`: the permissions of the engine `sal`.

use std::path::PathBuf;

use super::config_error::{Fault, KeyPath};
use super::key_row::TIB;
use super::redis_url::RedisUrl;
use super::units::size;
use crate::config::toml_table::toml_table;

toml_table! {
    /// The permissions of scripts of the engine `sal`, besides their own folder. By default they may do everything
    /// that the daemon's user may do. As soon as `read`, `write` or `network` is narrower, the commands of scripts
    /// are sandboxed with the same bounds; they may read the system's programs too. This needs a kernel with
    /// Landlock. An error names the key that forbids an operation.
    pub struct SalConfig in "sal" {
        /// The folders below which files may be read and listed. Symbolic links are resolved.
        read: Vec<PathBuf> = vec![PathBuf::from("/")] => Folders;
        /// The folders below which files may be written, moved and deleted.
        write: Vec<PathBuf> = vec![PathBuf::from("/")] => Folders;
        /// Allows starting programs and ending processes: `run`, `git`, packages, systemd.
        run: bool = true => Flag;
        /// Allows network access: `tcp`, `http`, `ssh`, downloads.
        network: bool = true => Flag;
        /// The folders of scripts that other scripts may run with `exec(FILE)`.
        exec: Vec<PathBuf> = Vec::new() => Folders;
        /// Allows `exec` to run a script from a URL.
        exec_urls: bool = false => Flag;
        /// The Redis of the functions `redis_get`, `redis_set` and the like, with a login if it needs one. Empty: none.
        /// Keys of Hero's own namespace are rejected.
        redis_url: RedisUrl = String::new().into() => Text;
        /// The largest download.
        download_size_max: u64 as "size" = 1 << 30 => Size(1, TIB);
    }
}

impl SalConfig {
    /// Returns true if neither reading nor writing is allowed everywhere.
    pub(super) fn is_sandboxed(&self) -> bool {
        let is_everything = |folder: &PathBuf| folder.components().count() == 1;
        !self.read.iter().chain(&self.write).any(is_everything)
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        if !self.redis_url.expose().is_empty() {
            let key = KeyPath::of(&["sal", "redis_url"]);
            if self.redis_url.is_cluster() {
                let message = "cannot be a redis+cluster url: commands of scripts go to one server";
                return Err(Fault::new(key, message));
            }
            self.redis_url.check().map_err(|reason| Fault::new(key, reason))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn folders_are_absolute_and_plain() {
        for (text, place) in [
            ("[sal]\nread = [\"/srv\", \"data\"]", "2:17: sal.read[1]"),
            ("[sal]\nwrite = [\"/a/../b\"]", "2:10: sal.write[0]"),
        ] {
            let error = Config::from_toml("hero.toml".as_ref(), text).expect_err(text);
            let expected = format!("hero.toml:{place} must be an absolute path without ..");
            assert_eq!(error.to_string(), expected);
        }
    }
}
