//! The address of the API of a daemon elsewhere, as `client.api`, `--api` and `HERO_API` name it.

use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAddress {
    /// The URL without a slash at its end; of a socket one of this machine.
    pub url: String,
    /// The path of the URL; empty, or it begins with a slash.
    pub path: String,
    pub socket: Option<PathBuf>,
}

impl FromStr for ApiAddress {
    type Err = &'static str;

    /// Parses an address. The error follows its name in a message, and does not repeat it.
    fn from_str(address: &str) -> Result<Self, &'static str> {
        let (socket, url) = match address.strip_prefix("unix:") {
            Some(path) => (Some(path.trim_start_matches("//")), "http://localhost"),
            None => (None, address.trim_end_matches('/')),
        };
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_host = |rest: &&str| !rest.starts_with('/') && !rest.is_empty();
        let Some(rest) = rest.filter(is_host).filter(|_| socket.is_none_or(|at| !at.is_empty()))
        else {
            return Err("must be https://HOST:PORT, http://HOST:PORT or unix:PATH");
        };
        if rest.contains(['@', '?', '#']) {
            return Err("must have no login and no query: the token is in HERO_TOKEN, or in \
                        token_file of [client]");
        }
        let path = rest.find('/').map_or("", |at| &rest[at..]).to_owned();
        Ok(Self { url: url.to_owned(), path, socket: socket.map(PathBuf::from) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_split_into_url_path_and_socket() {
        let of = |text: &str| {
            let ApiAddress { url, path, socket } = text.parse().expect(text);
            (url, path, socket)
        };
        let (url, path) = ("https://a:1/hero".to_owned(), "/hero".to_owned());
        assert_eq!(of("https://a:1/hero/"), (url, path, None));
        let socket = Some(PathBuf::from("/run/hero.sock"));
        assert_eq!(of("unix:///run/hero.sock").2, socket);
        assert_eq!(of("unix:/run/hero.sock").2, socket);
        for wrong in
            ["ftp://x", "a:1", "http://", "https:///x", "unix:", "http://u:p@a", "http://a?x"]
        {
            assert!(wrong.parse::<ApiAddress>().is_err(), "{wrong}");
        }
    }
}
