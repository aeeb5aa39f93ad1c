//! `redis.url`: the address of Redis. Its password is never printed.

use crate::config::secret_url::secret_url;
use serde::Deserialize;

const SCHEMES: [&str; 8] = [
    "redis://",
    TLS_SCHEME,
    "redis+unix://",
    "unix://",
    SENTINEL_SCHEME,
    TLS_SENTINEL_SCHEME,
    CLUSTER_SCHEME,
    TLS_CLUSTER_SCHEME,
];
const TLS_SCHEME: &str = "rediss://";
const SENTINEL_SCHEME: &str = "redis+sentinel://";
const TLS_SENTINEL_SCHEME: &str = "rediss+sentinel://";
const CLUSTER_SCHEME: &str = "redis+cluster://";
const TLS_CLUSTER_SCHEME: &str = "rediss+cluster://";
const SENTINEL_PORT: u16 = 26379;
const NODE_PORT: u16 = 6379;

/// The address of Redis. Its password is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct RedisUrl(String);
secret_url!(RedisUrl);

impl RedisUrl {
    /// Returns the url with its password, for the connection, never for a message.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the url with `***` for the password. It hides too much rather than too little: all
    /// between the first `:` and the last `@`, every unknown parameter, the rest after a `?` with
    /// an `@` after it, everything without a known scheme, and everything after one if no `@` says where a login
    /// ends and a host or port is illegal.
    pub fn redacted(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let Some((scheme, rest)) =
            SCHEMES.iter().find_map(|scheme| Some((scheme, self.0.strip_prefix(scheme)?)))
        else {
            return "***".to_owned();
        };
        let (user, rest) = match rest.rsplit_once('@') {
            Some((login, _)) if login.contains('?') => {
                let shown = login.split([':', '?']).next().unwrap_or_default();
                return format!("{scheme}{shown}***");
            }
            Some((login, rest)) => (redacted_login(login), rest),
            None if !is_path_or_hosts(scheme, rest) => return format!("{scheme}***"),
            None => (String::new(), rest),
        };
        let Some((address, parameters)) = rest.split_once('?') else {
            return format!("{scheme}{user}{rest}");
        };
        let parameters: Vec<String> = parameters.split('&').map(redacted_parameter).collect();
        format!("{scheme}{user}{address}?{}", parameters.join("&"))
    }

    /// Returns whether connections to Redis, sentinels and nodes of a cluster use TLS.
    pub fn is_tls(&self) -> bool {
        self.has_scheme(&[TLS_SCHEME, TLS_SENTINEL_SCHEME, TLS_CLUSTER_SCHEME])
    }

    pub fn is_cluster(&self) -> bool {
        self.has_scheme(&[CLUSTER_SCHEME, TLS_CLUSTER_SCHEME])
    }

    fn has_scheme(&self, schemes: &[&str]) -> bool {
        schemes.iter().any(|scheme| self.0.starts_with(scheme))
    }

    /// Splits a url of one of two schemes, the second with TLS, into login, hosts and the path, which
    /// begins with its `/`; `None` for another scheme.
    fn of_several(&self, plain: &str, tls: &str) -> Option<SeveralHosts<'_>> {
        let schemes = [(plain, "redis"), (tls, "rediss")];
        let (scheme, rest) =
            schemes.iter().find_map(|(scheme, of)| Some((*of, self.0.strip_prefix(scheme)?)))?;
        let (login, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (hosts, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Some(SeveralHosts { scheme, login, hosts, path })
    }

    /// Rejects a url that cannot be connected to. The error follows the key in a message.
    pub(super) fn check(&self) -> Result<(), String> {
        if !SCHEMES.iter().any(|scheme| self.0.starts_with(scheme)) {
            return Err(format!("has an unknown scheme; known are {}", SCHEMES.join(", ")));
        }
        if self.sentinels()?.is_none() && self.cluster()?.is_none() {
            self.check_one()?;
        }
        if self.0.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("must have no spaces; write them as %20".to_owned());
        }
        // The client library trusts any certificate with `#insecure`.
        if self.is_tls() && self.0.contains('#') {
            return Err("must have no #; write it as %23".to_owned());
        }
        Ok(())
    }

    /// Rejects a url of one server or socket that the client library cannot read.
    fn check_one(&self) -> Result<(), String> {
        const FORM: &str = "the form is redis://HOST:PORT/DB, or redis+unix:///PATH";
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        let is_number = |db: &str| db.is_empty() || db.parse::<u32>().is_ok();
        if scheme.contains("unix") {
            let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
            if !path.starts_with('/') || path.len() == 1 {
                return Err(format!("has no path of a socket: {FORM}"));
            }
            let mut dbs = parameters.split('&').filter_map(|one| one.strip_prefix("db="));
            if !dbs.all(is_number) {
                return Err(format!("has a database that is not a number: {FORM}?db=DB"));
            }
            return Ok(());
        }
        let (server, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let host = server.rsplit_once('@').map_or(server, |(_, host)| host);
        if host_and_port(host, NODE_PORT).is_none() {
            return Err(format!(
                "has no host, or an illegal port: {FORM}; in a password write / as %2F and @ as %40"
            ));
        }
        let db = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
        if !is_number(db) {
            return Err(format!("has a database that is not a number: {FORM}"));
        }
        Ok(())
    }

    /// Parses a url of the form `redis+sentinel://[LOGIN@]HOST[:PORT],HOST[:PORT]/NAME[/DB]`, or
    /// `rediss+sentinel://…`; `None` for another scheme.
    ///
    /// # Errors
    /// The mistake, which follows the key in a message.
    pub fn sentinels(&self) -> Result<Option<SentinelUrl>, String> {
        const FORM: &str = "the form is redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB";
        let Some(url) = self.of_several(SENTINEL_SCHEME, TLS_SENTINEL_SCHEME) else {
            return Ok(None);
        };
        let path = url.path.strip_prefix('/').ok_or_else(|| format!("has no master: {FORM}"))?;
        let (master, db) = path.split_once('/').unwrap_or((path, "0"));
        if master.is_empty() || master.contains(['?', '#']) {
            return Err(format!("has an illegal master: {FORM}"));
        }
        let db: u32 =
            db.parse().map_err(|_| format!("has a database that is not a number: {FORM}"))?;
        let sentinels =
            url.places(SENTINEL_PORT).ok_or_else(|| format!("has an illegal sentinel: {FORM}"))?;
        let login = url.login(&format!("sentinel/{db}"));
        Ok(Some(SentinelUrl { sentinels, master: master.to_owned(), login }))
    }

    /// Parses a url of the form `redis+cluster://[LOGIN@]HOST[:PORT],HOST[:PORT]/`, or
    /// `rediss+cluster://…`; `None` for another scheme.
    pub fn cluster(&self) -> Result<Option<ClusterUrl>, String> {
        const FORM: &str = "the form is redis+cluster://HOST:PORT,HOST:PORT/";
        let Some(url) = self.of_several(CLUSTER_SCHEME, TLS_CLUSTER_SCHEME) else {
            return Ok(None);
        };
        if !matches!(url.path, "" | "/" | "/0") {
            return Err(format!("names a database, but a cluster has only one: {FORM}"));
        }
        let nodes = url.places(NODE_PORT).ok_or_else(|| format!("has an illegal node: {FORM}"))?;
        Ok(Some(ClusterUrl { nodes, login: url.login("node/0") }))
    }
}

/// The parts of a url with several hosts.
struct SeveralHosts<'u> {
    /// The scheme for one of them.
    scheme: &'static str,
    /// User and password as they stand before the `@`.
    login: &'u str,
    hosts: &'u str,
    path: &'u str,
}

impl SeveralHosts<'_> {
    /// Returns host and port of each; `None` if one is illegal.
    fn places(&self, usual: u16) -> Option<Vec<(String, u16)>> {
        self.hosts.split(',').map(|host| host_and_port(host, usual)).collect()
    }

    /// Returns a url with the login, whose host only stands for another.
    fn login(&self, rest: &str) -> RedisUrl {
        let at = if self.login.is_empty() { "" } else { "@" };
        RedisUrl(format!("{}://{}{at}{rest}", self.scheme, self.login))
    }
}

/// A parsed `redis+cluster://` url.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterUrl {
    /// Host and port of each node named; never empty.
    pub nodes: Vec<(String, u16)>,
    /// A `redis://` or `rediss://` url with the login; its host stands for a node's host.
    pub login: RedisUrl,
}

/// A parsed `redis+sentinel://` url.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentinelUrl {
    /// Host and port of each sentinel; never empty.
    pub sentinels: Vec<(String, u16)>,
    /// The sentinels' name of the master.
    pub master: String,
    /// A `redis://` or `rediss://` url with login and database; its host stands for the master's.
    pub login: RedisUrl,
}

/// Parses `HOST`, `HOST:PORT`, or the same with an IPv6 address in brackets. `usual` is the port where
/// none is named.
pub(super) fn host_and_port(text: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(Some(usual), |port| port.parse().ok().filter(|p| *p > 0))?;
    let is_host = !host.is_empty() && !host.contains(['?', '#']);
    is_host.then(|| (host.to_owned(), port))
}

/// Returns true if a url without a login has the path of a socket after its scheme, or legal hosts and ports.
fn is_path_or_hosts(scheme: &str, rest: &str) -> bool {
    let hosts = rest.split(['/', '?']).next().unwrap_or_default();
    scheme.contains("unix") || hosts.split(',').all(|host| host_and_port(host, NODE_PORT).is_some())
}

fn redacted_login(login: &str) -> String {
    match login.split_once(':') {
        Some((user, _)) => format!("{user}:***@"),
        None => format!("{login}@"),
    }
}

fn redacted_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some(("db" | "user" | "protocol", _)) => parameter.to_owned(),
        Some(("pass", _)) => "pass=***".to_owned(),
        // Possibly the part of a password after an &.
        _ => "***".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_url_that_cannot_be_connected_to_is_rejected_with_a_reason() {
        let refusal = |url: &str| RedisUrl::from(url).check().expect_err(url);
        let unknown = refusal("http://host");
        for scheme in SCHEMES {
            assert!(unknown.contains(scheme), "{unknown}");
        }
        assert_eq!(refusal(""), unknown);
        assert_eq!(refusal("redis://a b"), "must have no spaces; write them as %20");
        assert_eq!(refusal("rediss://host/#insecure"), "must have no #; write it as %23");
        for (url, why) in [
            ("redis://", "has no host"),
            ("redis:///0", "has no host"),
            ("redis://:secret@", "has no host"),
            ("redis://host:99999", "has no host, or an illegal port"),
            ("redis://me:a/b@host", "has no host, or an illegal port"),
            ("redis://[::1", "has no host"),
            ("redis://host/abc", "has a database that is not a number"),
            ("redis+unix:///run/r.sock?db=x", "has a database that is not a number"),
            ("unix://", "has no path of a socket"),
            ("redis+unix://relative", "has no path of a socket"),
        ] {
            let reason = refusal(url);
            assert!(reason.starts_with(why) && !reason.contains("secret"), "{url}: {reason}");
        }
        for good in [
            "redis://host",
            "redis://me:p%2Fx@host:6380/2",
            "rediss://[::1]:6379/",
            "unix:///run/r.sock?db=1&pass=x",
        ] {
            assert_eq!(RedisUrl::from(good).check(), Ok(()), "{good}");
        }
        assert_eq!(
            refusal("rediss+sentinel://host/main#insecure/0").split(':').next(),
            Some("has an illegal master")
        );
    }

    #[test]
    fn the_scheme_decides_on_tls() {
        for (url, is_tls) in [
            ("rediss://host", true),
            ("rediss+sentinel://host/main", true),
            ("redis://host", false),
            ("redis+unix:///rediss://", false),
            ("redis+sentinel://host/main", false),
            ("rediss+cluster://host/", true),
            ("redis+cluster://host", false),
        ] {
            assert_eq!(RedisUrl::from(url).is_tls(), is_tls, "{url}");
            assert_eq!(RedisUrl::from(url).check(), Ok(()));
        }
    }

    #[test]
    fn a_sentinel_url_is_parsed_into_sentinels_master_and_login() {
        let read = |url: &str| RedisUrl::from(url).sentinels();
        let host = |host: &str, port| (host.to_owned(), port);
        assert_eq!(read("redis://a/0"), Ok(None));
        let url = read("redis+sentinel://me:p%40x@a,b:1,[::1]:2,[::2]/main/3").expect("legal");
        let url = url.expect("of sentinels");
        let expected = [host("a", 26379), host("b", 1), host("::1", 2), host("::2", 26379)];
        assert_eq!(url.sentinels, expected);
        assert_eq!(
            (url.master.as_str(), url.login.expose()),
            ("main", "redis://me:p%40x@sentinel/3")
        );
        let url = read("redis+sentinel://a/main").expect("legal").expect("of sentinels");
        assert_eq!(url.login.expose(), "redis://sentinel/0");
        for bad in [
            "a",
            "a/",
            "/main",
            "a,,b/main",
            "a:/main",
            "a:0/main",
            "a:x/main",
            "a/main/x",
            "a/b?c",
        ] {
            let url = RedisUrl::from(format!("redis+sentinel://{bad}"));
            let message = url.check().expect_err(bad);
            assert!(message.contains("the form is redis+sentinel://HOST"), "{message}");
        }
        assert_eq!(RedisUrl::from("redis+sentinel://a/main").check(), Ok(()));
        let url = read("rediss+sentinel://me@a/main/1").expect("legal").expect("of sentinels");
        assert_eq!(url.login.expose(), "rediss://me@sentinel/1");
    }

    #[test]
    fn a_cluster_url_is_parsed_into_nodes_and_login() {
        let read = |url: &str| RedisUrl::from(url).cluster();
        let host = |host: &str, port| (host.to_owned(), port);
        assert_eq!(read("redis://a/0"), Ok(None));
        let url = read("redis+cluster://me:p%40x@a,b:1,[::1]:2/").expect("legal");
        let url = url.expect("of a cluster");
        assert_eq!(url.nodes, [host("a", 6379), host("b", 1), host("::1", 2)]);
        assert_eq!(url.login.expose(), "redis://me:p%40x@node/0");
        for bad in ["", "/", "a,,b", "a:0", "a:x/", "a/1", "a/x", "a?db=1", "a#x", "a/0?db=2"] {
            let url = RedisUrl::from(format!("redis+cluster://{bad}"));
            let message = url.check().expect_err(bad);
            assert!(message.contains("the form is redis+cluster://HOST"), "{bad}: {message}");
        }
        let url = read("rediss+cluster://a:1").expect("legal").expect("of a cluster");
        assert_eq!(url.login.expose(), "rediss://node/0");
    }

    proptest! {
        #[test]
        fn no_password_however_written_is_printed(
            scheme in "(redis://|rediss://|unix://|redis\\+unix://|)",
            user in "[a-z]{0,5}",
            before in ".{0,5}",
            after in ".{0,5}",
        ) {
            let url = RedisUrl::from(format!("{scheme}{user}:{before}hunter2{after}@host/0?db=1"));
            prop_assert!(!format!("{url} {url:?}").contains("hunter2"), "{}", url);
            let url = RedisUrl::from(format!("{scheme}/run/redis.sock?db=1&pass={before}hunter2"));
            prop_assert!(!format!("{url} {url:?}").contains("hunter2"), "{}", url);
        }
    }
}
