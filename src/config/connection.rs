//! `[redis]`: which Redis, and how to prove who is asking, without ever showing the secret.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, Fault, KeyPath};
use super::files::read_bounded;
use crate::proto::keys::Namespace;

/// `[redis]`: where Redis is and how to log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RedisConfig {
    /// Where Redis listens: `redis://HOST:PORT/DB` or `redis+unix:///PATH`; or which sentinels
    /// know: `redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB`.
    pub url: RedisUrl,
    /// What every key starts with; in braces, all keys share one slot of a Redis Cluster.
    #[serde(deserialize_with = "namespace")]
    pub namespace: Namespace,
    /// The ACL user; none is Redis's own default user.
    #[serde(with = "empty_is_none")]
    pub username: Option<String>,
    /// The file that holds the password; none looks for the systemd credential.
    #[serde(with = "empty_is_none")]
    pub password_file: Option<PathBuf>,
    /// The certificate authority that vouches for Redis, for TLS.
    #[serde(with = "empty_is_none")]
    pub tls_ca_file: Option<PathBuf>,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            url: "redis://127.0.0.1:6379/0".into(),
            namespace: Namespace::default(),
            username: None,
            password_file: None,
            tls_ca_file: None,
        }
    }
}

impl RedisConfig {
    /// The url without the password it may hold, for messages.
    pub fn redacted_url(&self) -> String {
        self.url.redacted()
    }

    /// The password: the content of `password_file`, else of the systemd credential
    /// `redis-password`, else none. One newline at its end does not belong to it.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`] with the name of the file if it cannot be read, is empty, is no
    /// text, or is longer than a password can be.
    pub fn password(&self) -> Result<Option<Password>, ConfigError> {
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        self.password_with(credentials.as_deref())
    }

    fn password_with(&self, credentials: Option<&Path>) -> Result<Option<Password>, ConfigError> {
        if let Some(file) = &self.password_file {
            return read_password(file).map(Some).map_err(|error| unreadable(file, &error));
        }
        let Some(file) = credentials.map(|folder| folder.join("redis-password")) else {
            return Ok(None);
        };
        match read_password(&file) {
            Ok(password) => Ok(Some(password)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(&file, &error)),
        }
    }

    /// Refuses what this version cannot connect to, before anything tries.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let key = |name| KeyPath::of(&["redis", name]);
        if let Some(scheme) = self.url.unsupported_scheme() {
            let message = format!("starts with {scheme}, but {SPOKEN}");
            return Err(Fault::new(key("url"), message));
        }
        if !SCHEMES.iter().any(|scheme| self.url.0.starts_with(scheme)) {
            return Err(Fault::new(key("url"), format!("has no known scheme: {SPOKEN}")));
        }
        if let Err(reason) = self.url.sentinels() {
            return Err(Fault::new(key("url"), reason));
        }
        if self.url.0.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(Fault::new(key("url"), "must hold no spaces; write them as %20"));
        }
        if self.tls_ca_file.is_some() {
            return Err(Fault::new(key("tls_ca_file"), format!("is for TLS, but {SPOKEN}")));
        }
        if self.password_file.as_ref().is_some_and(|file| !file.is_absolute()) {
            return Err(Fault::new(key("password_file"), "must be an absolute path"));
        }
        Ok(())
    }
}

const SCHEMES: [&str; 4] = ["redis://", "redis+unix://", "unix://", SENTINEL_SCHEME];
const SENTINEL_SCHEME: &str = "redis+sentinel://";
const SCHEMES_OF_LATER: [&str; 1] = ["rediss://"];
const SPOKEN: &str = "this version speaks redis://, redis+unix://, unix:// and redis+sentinel://";
/// Where a sentinel listens if nothing else is said.
const SENTINEL_PORT: u16 = 26379;

/// A namespace, whose error does not repeat what stands there: it may be a misplaced url.
fn namespace<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Namespace, D::Error> {
    let form = || serde::de::Error::custom(format!("must be {}", Namespace::FORM));
    String::deserialize(from)?.parse().map_err(|_| form())
}

/// Where Redis listens. It may hold a password, so what is printed of it never does.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct RedisUrl(String);

impl RedisUrl {
    /// The url as it was given, perhaps with a password: for connecting, never for a message.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The url with `***` where the password is. Rather too much is hidden than too little: all
    /// between the first `:` and the last `@`, every unknown parameter, the whole rest where an `@`
    /// after a `?` leaves open which of the two it belongs to, and all of it without a known scheme.
    pub fn redacted(&self) -> String {
        let mut known = SCHEMES.into_iter().chain(SCHEMES_OF_LATER);
        let Some((scheme, rest)) =
            known.find_map(|scheme| Some((scheme, self.0.strip_prefix(scheme)?)))
        else {
            return "***".to_owned();
        };
        let (user, rest) = match rest.rsplit_once('@') {
            Some((login, _)) if login.contains('?') => {
                let shown = login.split([':', '?']).next().unwrap_or_default();
                return format!("{scheme}{shown}***");
            }
            Some((login, rest)) => (redacted_login(login), rest),
            None => (String::new(), rest),
        };
        let Some((address, parameters)) = rest.split_once('?') else {
            return format!("{scheme}{user}{rest}");
        };
        let parameters: Vec<String> = parameters.split('&').map(redacted_parameter).collect();
        format!("{scheme}{user}{address}?{}", parameters.join("&"))
    }

    /// What a URL of the form `redis+sentinel://[LOGIN@]HOST[:PORT],HOST[:PORT]/NAME[/DB]` says;
    /// `None` for one of another scheme.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence about it.
    pub fn sentinels(&self) -> Result<Option<SentinelUrl>, String> {
        const FORM: &str = "the form is redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB";
        let Some(rest) = self.0.strip_prefix(SENTINEL_SCHEME) else { return Ok(None) };
        let (login, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (hosts, path) =
            rest.split_once('/').ok_or_else(|| format!("names no master: {FORM}"))?;
        let (master, db) = path.split_once('/').unwrap_or((path, "0"));
        if master.is_empty() || master.contains(['?', '#']) {
            return Err(format!("names no legal master: {FORM}"));
        }
        let db: u32 = db.parse().map_err(|_| format!("names no database by its number: {FORM}"))?;
        let sentinels = hosts.split(',').map(host_and_port).collect::<Option<Vec<_>>>();
        let sentinels = sentinels.ok_or_else(|| format!("names no legal sentinel: {FORM}"))?;
        let at = if login.is_empty() { "" } else { "@" };
        let login = Self(format!("redis://{login}{at}sentinel/{db}"));
        Ok(Some(SentinelUrl { sentinels, master: master.to_owned(), login }))
    }

    fn unsupported_scheme(&self) -> Option<&'static str> {
        SCHEMES_OF_LATER.into_iter().find(|scheme| self.0.starts_with(scheme))
    }
}

/// What a `redis+sentinel://` URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentinelUrl {
    /// The sentinels, host and port each; never empty.
    pub sentinels: Vec<(String, u16)>,
    /// The name under which they know the master.
    pub master: String,
    /// A `redis://` URL with the login and the database; its host stands for the master's.
    pub login: RedisUrl,
}

/// `HOST`, `HOST:PORT` or the same with an IPv6 address in brackets.
fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(Some(SENTINEL_PORT), |port| port.parse().ok().filter(|p| *p > 0))?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
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
        // Perhaps what follows an & within a password.
        _ => "***".to_owned(),
    }
}

impl From<&str> for RedisUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl From<String> for RedisUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.redacted(), f)
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl Serialize for RedisUrl {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.redacted())
    }
}

/// A password in memory. Printing it shows none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The password itself: for logging in, never for a message.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

/// Optional text in a file where every key can be written out: `""` is none.
mod empty_is_none {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    // Serde passes every field by reference.
    #[expect(clippy::ref_option)]
    pub(super) fn serialize<S, T>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
        T: Serialize,
    {
        match value {
            Some(value) => value.serialize(to),
            None => to.serialize_str(""),
        }
    }

    pub(super) fn deserialize<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: From<String>,
    {
        let text = String::deserialize(from)?;
        Ok((!text.is_empty()).then(|| T::from(text)))
    }
}

fn read_password(file: &Path) -> io::Result<Password> {
    const PASSWORD_SIZE_MAX: u64 = 4096;
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason);
    let bytes = read_bounded(file, PASSWORD_SIZE_MAX)?;
    let text = String::from_utf8(bytes).map_err(|_| invalid("not UTF-8 text"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let password = line.strip_suffix('\r').unwrap_or(line);
    if password.is_empty() {
        return Err(invalid("holds no password"));
    }
    Ok(Password(password.to_owned()))
}

fn unreadable(file: &Path, error: &io::Error) -> ConfigError {
    ConfigError::Unreadable {
        what: "the Redis password from",
        file: file.to_owned(),
        reason: super::files::reason(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redacted(url: &str) -> String {
        RedisUrl::from(url).redacted()
    }

    #[test]
    fn a_password_in_the_url_is_never_printed() {
        for url in [
            "redis://:hunter2@host/0",
            "redis://user:hunter2@host:6379/0",
            "redis://user:a/hunter2@b:c@host",
            "redis+unix:///run/redis.sock?db=1&pass=hunter2",
            "unix:///run/redis.sock?p%61ss=hunter2&user=me",
            "redis://u:p@host?x=y@hunter2:z@host",
            "user:hunter2@host",
            "user:hunter2://@host",
            "unix:///run/redis.sock?pass=a@hunter2",
            "redis://user:a?hunter2@host",
            "redis+unix:///run/redis.sock?pass=a&hunter2",
            "redis+unix:///run/redis.sock?pass=a&hunter2=b",
            "redis+sentinel://me:hunter2@a,b:1/main/0",
            "redis+sentinel://me:hunter2@a,b:x/main",
        ] {
            let config = RedisConfig { url: url.into(), ..RedisConfig::default() };
            let printed = format!(
                "{} {} {config:?} {:?} {}",
                config.redacted_url(),
                config.url,
                config.check(),
                toml::to_string(&config).expect("writable"),
            );
            assert!(!printed.contains("hunter2"), "{printed}");
        }
        assert_eq!(redacted("redis://me:x@host/1"), "redis://me:***@host/1");
        assert_eq!(
            redacted("unix:///r.sock?db=2&pass=x&user=me"),
            "unix:///r.sock?db=2&pass=***&user=me"
        );
        assert_eq!(redacted("redis://127.0.0.1:6379/0"), "redis://127.0.0.1:6379/0");
    }

    #[test]
    fn schemes_of_later_are_refused_with_those_of_now() {
        let refusal = |url: &str| {
            RedisConfig { url: url.into(), ..RedisConfig::default() }
                .check()
                .expect_err("refused")
                .message
        };
        for scheme in SCHEMES_OF_LATER {
            let expected = format!("redis.url starts with {scheme}, but {SPOKEN}");
            assert_eq!(refusal(&format!("{scheme}host")), expected);
        }
        assert_eq!(refusal("http://host"), format!("redis.url has no known scheme: {SPOKEN}"));
        assert_eq!(refusal(""), refusal("http://host"));
        assert_eq!(refusal("redis://a b"), "redis.url must hold no spaces; write them as %20");
    }

    #[test]
    fn sentinels_are_read_with_their_ports_the_master_and_the_login() {
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
            let config = RedisConfig {
                url: format!("redis+sentinel://{bad}").into(),
                ..RedisConfig::default()
            };
            let message = config.check().expect_err(bad).message;
            assert!(message.contains("the form is redis+sentinel://HOST"), "{message}");
        }
        let config =
            RedisConfig { url: "redis+sentinel://a/main".into(), ..RedisConfig::default() };
        assert!(config.check().is_ok());
    }

    #[test]
    fn the_password_comes_from_its_file_else_from_the_credential() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("secret");
        let write = |file: &Path, content: &[u8]| std::fs::write(file, content).expect("written");
        let mut config = RedisConfig::default();
        let read = |config: &RedisConfig| config.password_with(Some(folder.path()));

        assert_eq!(config.password_with(None), Ok(None));
        assert_eq!(read(&config), Ok(None));
        write(&folder.path().join("redis-password"), b"from systemd");
        assert_eq!(read(&config), Ok(Some(Password("from systemd".to_owned()))));

        config.password_file = Some(file.clone());
        let error = read(&config).expect_err("there is no such file").to_string();
        assert_eq!(
            error,
            format!("reading the Redis password from {}: no such file", file.display())
        );
        for (content, password) in
            [(&b"a b\n"[..], "a b"), (b"a\r\n", "a"), (b"a\n\n", "a\n"), (b" a", " a")]
        {
            write(&file, content);
            assert_eq!(read(&config), Ok(Some(Password(password.to_owned()))));
        }
        for (content, reason) in [
            (&b"\n"[..], "holds no password"),
            (b"\xff", "not UTF-8 text"),
            (&[b'x'; 4097], "larger than 4KiB"),
        ] {
            write(&file, content);
            let error = read(&config).expect_err(reason).to_string();
            assert!(error.ends_with(reason) && error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_password_prints_as_stars() {
        assert_eq!(format!("{:?}", Password("hunter2".to_owned())), "Password(***)");
    }

    proptest! {
        #[test]
        fn no_password_however_written_is_printed(
            scheme in "(redis://|unix://|redis\\+unix://|)",
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
