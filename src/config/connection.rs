//! `[redis]`: the address of Redis and the login, whose secret is never shown.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use zeroize::Zeroizing;

use super::ack::Ack;
use super::config_error::{ConfigError, Fault, KeyPath};
use super::files::{read_bounded, unreadable};
use super::key_row::TEN_YEARS;
use super::redis_url::RedisUrl;
use super::units::duration;
use crate::config::toml_table::toml_table;
use crate::proto::json_text::value_of_file;
use crate::proto::keys::Namespace;
use crate::proto::shard::{Shard, ShardCount};

toml_table! {
    /// Which Redis, and how to log in.
    pub struct RedisConfig in "redis" {
        /// Where Redis listens: `redis://HOST:PORT/DB`, or `redis+unix:///PATH` for a socket (`unix:///PATH` is the
        /// same), or `redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB` for the master with that name, or
        /// `redis+cluster://HOST:PORT,HOST:PORT/` for some nodes of a Redis Cluster. `rediss://`, `rediss+sentinel://`
        /// and `rediss+cluster://` use TLS. A user and a password in it work, but the password is better kept in
        /// `password_file`.
        /// ---
        /// It is never printed. There may be any number of sentinels, whose port is 26379 unless another is named.
        /// The port of a node of a cluster is 6379 unless another is named; Hero asks the nodes for the others, and for
        /// the one that has the keys.
        url: RedisUrl = "redis://127.0.0.1:6379/0".into() => Text;
        /// The prefix of every key in Redis. Environments that share one Redis use different ones, such as `prod_hero`
        /// and `qa_hero`. For a Redis Cluster it must be in braces, `{hero}`, which keeps all keys in one slot, on one
        /// node. 1 to 64 of A-Z, a-z, 0-9, `_`, `.` and `-`.
        #[serde(deserialize_with = "namespace")]
        namespace: Namespace = Namespace::default() => Text, restart;
        /// The user of Redis's access control list. Empty: Redis's default user.
        username: Option<String> as "empty_is_none" = None => Text;
        /// The file that holds the password. Empty: the systemd credential `redis-password` if the unit has one, else
        /// no password.
        /// ---
        /// One newline at its end is ignored. See CREDENTIALS, below.
        password_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// With TLS: the certificate authorities for the certificate of Redis, in PEM. Empty: those that the system
        /// trusts. The certificate must name the host of the url.
        tls_ca_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// With TLS: Hero's client certificate and its key, in PEM, for a Redis that asks for one, as it does by
        /// default (`tls-auth-clients`).
        tls_cert_file: Option<PathBuf> as "empty_is_none" = None => File;
        tls_key_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// The time for which Redis may refuse the login before a unit ends with exit code 77, so that monitoring sees
        /// it as failed. Until then it reads the password again with each attempt, and its jobs run on. At its start a
        /// refused login ends it at once.
        refused_for: Duration as "duration" = Duration::from_mins(5) => Duration(0, TEN_YEARS);
        /// Refuses a Redis that forgets accepted jobs when it is killed (`appendonly no`), leaves its writes to the
        /// kernel (`appendfsync no`), or evicts keys: the daemon then ends with exit code 78. `hero check --redis` says
        /// what this Redis keeps, and what to do.
        /// ---
        /// Also refuses a Redis that does not say, because its user may not call INFO. Without it the daemon warns.
        require_durable: bool = false => Flag, restart;
        /// Where a job must be before its submission is answered, and its end before its reply: `memory`, in the memory
        /// of Redis; `disk`, synchronised with its append-only file (Redis 7.2 or later, Valkey 8 or later; an older
        /// Redis needs `appendfsync always`); or `replicas:2`, in the memory of two replicas. A job with `--durable`
        /// asks for `disk` where this says `memory`.
        /// ---
        /// Hero calls WAITAOF for the disk and WAIT for 1 to 16 replicas. Redis has 5 s to confirm. After that the
        /// submission fails with the id of the job, which is stored and runs all the same; an end pushes no reply.
        /// Actors and submitters read it, each from its own configuration.
        ack: Ack = Ack::Memory => Text, restart;
        /// The number of shards that hold the jobs, the same on all machines. Shard 0, the home shard, is the namespace
        /// itself; shard 3 of `hero` is the namespace `{hero-3}`. Jobs are spread over them by their queues, and actors
        /// and supervisors serve all of them. It may be raised at any time, which moves nothing, and must not be
        /// lowered while jobs are left in the last ones. In a Redis Cluster the shards lie on different nodes.
        shards: u16 = 1 => Number(1, 256), restart;
        /// The urls of the servers of the shards 1, 2 and so on, in this order, if they are not on the server or
        /// cluster of `redis.url`. The user, the password and the files of TLS are the same for all. Empty: all shards
        /// are at `redis.url`.
        /// ---
        /// Passwords in them are never printed.
        shard_urls: Vec<RedisUrl> = Vec::new() => Texts;
        /// The shards that the actors and supervisors of this machine serve, such as `[0, 1]`. Empty: all. Each shard
        /// needs actors and a supervisor somewhere.
        serve: Vec<u16> = Vec::new() => Numbers(0, 255), restart;
    }
}

impl RedisConfig {
    /// Returns the url without its password, for messages.
    pub fn redacted_url(&self) -> String {
        self.url.redacted()
    }

    pub fn shard_count(&self) -> ShardCount {
        ShardCount::new(self.shards).unwrap_or_default()
    }

    pub fn has_tls(&self) -> bool {
        self.url.is_tls() || self.shard_urls.iter().any(RedisUrl::is_tls)
    }

    /// Returns the settings of one shard: its url and namespace, and no further shards.
    #[must_use]
    pub fn of_shard(&self, shard: Shard) -> Self {
        let own = usize::from(shard.number()).checked_sub(1).and_then(|at| self.shard_urls.get(at));
        Self {
            url: own.unwrap_or(&self.url).clone(),
            namespace: shard.namespace(&self.namespace),
            shards: 1,
            shard_urls: Vec::new(),
            serve: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns these settings with the addresses and the login of others, of the same shards.
    #[must_use]
    pub fn with_login_of(&self, other: &Self) -> Self {
        Self {
            namespace: self.namespace.clone(),
            require_durable: self.require_durable,
            ack: self.ack,
            shards: self.shards,
            serve: self.serve.clone(),
            ..other.clone()
        }
    }

    /// Returns the shards that the units of this machine serve.
    pub fn served_shards(&self) -> Vec<Shard> {
        let is_served =
            |shard: &Shard| self.serve.is_empty() || self.serve.contains(&shard.number());
        self.shard_count().shards().filter(is_served).collect()
    }

    /// Reads the password from `password_file`, else from the systemd credential
    /// `redis-password`; `None` without either. One newline at its end is removed.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`] with the name of the file if it cannot be read, is empty, is not
    /// text, or is too long.
    pub fn password(&self) -> Result<Option<Password>, ConfigError> {
        password_of(WHAT, self.password_file.as_deref(), CREDENTIAL)
    }

    /// Takes the password from systemd's credential store, as the units get it, if the caller may read it and nothing
    /// else gives one.
    pub fn read_store(&mut self) {
        let is_given = self.password_file.is_some() || self.url.redacted() != self.url.expose();
        let file = Path::new(STORE).join(CREDENTIAL);
        if !is_given && std::env::var_os("CREDENTIALS_DIRECTORY").is_none() && file.is_file() {
            self.password_file = Some(file);
        }
    }

    /// Returns the file of the systemd credential, if the unit has credentials and no `password_file`.
    pub fn credential_file(&self) -> Option<PathBuf> {
        let folder =
            std::env::var_os("CREDENTIALS_DIRECTORY").filter(|_| self.password_file.is_none())?;
        Some(Path::new(&folder).join(CREDENTIAL))
    }

    /// Reads the files for TLS; `None` if the url does not ask for TLS.
    pub fn tls(&self) -> Result<Option<TlsFiles>, ConfigError> {
        if !self.url.is_tls() {
            return Ok(None);
        }
        let read = |what, file: &Option<PathBuf>| {
            file.as_ref().map(|file| read_pem(what, file)).transpose()
        };
        Ok(Some(TlsFiles {
            authorities: read("the certificate authority of Redis from", &self.tls_ca_file)?,
            certificate: read("the certificate for Redis from", &self.tls_cert_file)?,
            key: read("the key for Redis from", &self.tls_key_file)?,
        }))
    }

    /// Rejects a namespace whose keys would be spread over a cluster. The error follows the key in a
    /// message.
    pub fn check_slot(&self) -> Result<(), String> {
        if !self.url.is_cluster() || self.namespace.is_hash_tag() {
            return Ok(());
        }
        Err(format!(
            "must be in braces with a redis+cluster url, so that one node has all keys: write \
             namespace = \"{{{}}}\"",
            self.namespace
        ))
    }

    /// Rejects shards that are not there, and namespaces that would be too long.
    fn check_shards(&self) -> Result<(), Fault> {
        let table = KeyPath::of(&["redis"]);
        let count = self.shard_count();
        let last = count.shards().last().unwrap_or(Shard::HOME);
        if last != Shard::HOME && last.namespace(&self.namespace) == self.namespace {
            let message = format!("is too long: shard {last} adds its number to it");
            return table.wrong("namespace", message);
        }
        let further = usize::from(self.shards.saturating_sub(1));
        if !self.shard_urls.is_empty() && self.shard_urls.len() != further {
            let message = format!(
                "must have one url for each shard but the first, which is at redis.url: {further}, as \
                 redis.shards is {}",
                self.shards
            );
            let fault = Fault::new(table.then("shard_urls"), message);
            return Err(fault.or(table.then("shards")));
        }
        for url in &self.shard_urls {
            url.check().map_err(|reason| Fault::new(table.then("shard_urls"), reason))?;
        }
        if let Some(unknown) = self.serve.iter().find(|number| **number >= self.shards) {
            let message = format!("has {unknown}, but the shards are 0 to {last}");
            return table.wrong("serve", message);
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        let table = KeyPath::of(&["redis"]);
        self.url.check().map_err(|reason| Fault::new(table.then("url"), reason))?;
        self.check_slot()
            .map_err(|reason| Fault::new(table.then("namespace"), reason).or(table.then("url")))?;
        self.check_shards()?;
        let files = [
            ("tls_ca_file", &self.tls_ca_file),
            ("tls_cert_file", &self.tls_cert_file),
            ("tls_key_file", &self.tls_key_file),
        ];
        for (name, file) in files {
            if file.is_some() && !self.has_tls() {
                let message = "is for TLS, but redis.url does not begin with rediss";
                return table.wrong(name, message);
            }
        }
        check_pair("redis", self.tls_cert_file.is_some(), self.tls_key_file.is_some())
    }
}

/// Rejects a certificate without its key, and a key without its certificate.
pub(super) fn check_pair(table: &str, has_cert: bool, has_key: bool) -> Result<(), Fault> {
    let (own, other) = match (has_cert, has_key) {
        (true, false) => ("tls_cert_file", "tls_key_file"),
        (false, true) => ("tls_key_file", "tls_cert_file"),
        _ => return Ok(()),
    };
    Err(Fault::new(KeyPath::of(&[table, own]), format!("needs {table}.{other}")))
}

/// The content of the files for TLS, in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate authority of Redis; by default the authorities of the system.
    pub authorities: Option<Vec<u8>>,
    pub certificate: Option<Vec<u8>>,
    pub key: Option<Vec<u8>>,
}

/// Reads a namespace. The error does not repeat the value: it may be a misplaced url.
fn namespace<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Namespace, D::Error> {
    let form = || serde::de::Error::custom(format!("must be {}", Namespace::FORM));
    String::deserialize(from)?.parse().map_err(|_| form())
}

/// A password in memory, which is never printed. Its memory is zeroed when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// Returns the password, for the login, never for a message.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

/// Optional text in a file that has every key: `""` means `None`.
pub(super) mod empty_is_none {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    // Serde passes every field by reference.
    #[expect(clippy::ref_option)]
    pub(crate) fn serialize<S, T>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
        T: Serialize,
    {
        match value {
            Some(value) => value.serialize(to),
            None => to.serialize_str(""),
        }
    }

    pub(crate) fn deserialize<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
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
    let bytes = Zeroizing::new(read_bounded(file, PASSWORD_SIZE_MAX)?);
    let value = value_of_file(&bytes);
    let password = std::str::from_utf8(value).map_err(|_| invalid("not UTF-8 text"))?;
    if password.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is empty"));
    }
    Ok(Password(Zeroizing::new(password.to_owned())))
}

const WHAT: &str = "the Redis password from";
const CREDENTIAL: &str = "redis-password";
/// The folder of systemd with the credentials of units, which only root reads.
const STORE: &str = "/etc/credstore";

/// Reads a password from a file, else from a systemd credential; `None` without either.
pub(super) fn password_of(
    what: &'static str,
    file: Option<&Path>,
    credential: &str,
) -> Result<Option<Password>, ConfigError> {
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    password_with(what, file, credential, credentials.as_deref())
}

fn password_with(
    what: &'static str,
    file: Option<&Path>,
    credential: &str,
    credentials: Option<&Path>,
) -> Result<Option<Password>, ConfigError> {
    if let Some(file) = file {
        return read_password(file).map(Some).map_err(|error| unreadable(what, file, &error));
    }
    let Some(file) = credentials.map(|folder| folder.join(credential)) else {
        return Ok(None);
    };
    match read_password(&file) {
        Ok(password) => Ok(Some(password)),
        // The unit gives an empty one where the store has none.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) =>
        {
            Ok(None)
        }
        Err(error) => Err(unreadable(what, &file, &error)),
    }
}

pub(super) fn read_pem(what: &'static str, file: &Path) -> Result<Vec<u8>, ConfigError> {
    const PEM_SIZE_MAX: u64 = 1 << 20;
    read_bounded(file, PEM_SIZE_MAX).map_err(|error| unreadable(what, file, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_tls_need_a_url_of_tls_and_each_other() {
        let path = || Some(PathBuf::from("/x.pem"));
        let tls = RedisConfig { url: "rediss://host".into(), ..RedisConfig::default() };
        let refusal = |config: &RedisConfig| config.check().expect_err("refused").message;
        assert!(tls.check().is_ok());
        let config = RedisConfig { tls_ca_file: path(), ..RedisConfig::default() };
        assert_eq!(
            refusal(&config),
            "redis.tls_ca_file is for TLS, but redis.url does not begin with rediss"
        );
        let config = RedisConfig { tls_cert_file: path(), ..tls.clone() };
        assert_eq!(refusal(&config), "redis.tls_cert_file needs redis.tls_key_file");
        let config = RedisConfig { tls_key_file: path(), ..tls.clone() };
        assert_eq!(refusal(&config), "redis.tls_key_file needs redis.tls_cert_file");
        let config = RedisConfig { tls_key_file: path(), tls_cert_file: path(), ..tls };
        assert!(config.check().is_ok());
    }

    #[test]
    fn shard_urls_are_those_of_the_further_shards() {
        let config = RedisConfig {
            namespace: "{a}".parse().expect("legal"),
            shards: 3,
            shard_urls: vec!["redis://one".into(), "rediss://two".into()],
            serve: vec![2, 0],
            ..RedisConfig::default()
        };
        assert!(config.check().is_ok() && config.has_tls());
        let shards: Vec<RedisConfig> =
            config.shard_count().shards().map(|shard| config.of_shard(shard)).collect();
        let places: Vec<(String, String)> = shards
            .iter()
            .map(|shard| (shard.namespace.to_string(), shard.redacted_url()))
            .collect();
        let expected = [
            ("{a}", "redis://127.0.0.1:6379/0"),
            ("{a-1}", "redis://one"),
            ("{a-2}", "rediss://two"),
        ];
        assert_eq!(places, expected.map(|(name, url)| (name.to_owned(), url.to_owned())));
        assert!(shards.iter().all(|shard| shard.shards == 1 && shard.check().is_ok()));
        let served: Vec<u16> = config.served_shards().iter().map(|one| one.number()).collect();
        assert_eq!(served, [0, 2]);
    }

    #[test]
    fn the_files_of_tls_are_read_only_where_the_url_asks_for_it() {
        let mut config =
            RedisConfig { tls_ca_file: Some("/none".into()), ..RedisConfig::default() };
        assert!(config.tls().expect("not read").is_none());
        config.url = "rediss://host".into();
        let error = config.tls().err().expect("there is no such file").to_string();
        assert_eq!(
            error,
            "cannot read the certificate authority of Redis from /none: no such file"
        );
    }

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
            "redis://user:hunter2",
            "redis://:hunter2/0",
            "rediss://user:hunter2/3?db=1",
            "redis+sentinel://user:hunter2/main",
            "redis+cluster://a,user:hunter2",
            "user:hunter2://@host",
            "unix:///run/redis.sock?pass=a@hunter2",
            "redis://user:a?hunter2@host",
            "redis+unix:///run/redis.sock?pass=a&hunter2",
            "redis+unix:///run/redis.sock?pass=a&hunter2=b",
            "rediss://me:hunter2@host/#insecure",
            "rediss+sentinel://me:hunter2@a,b:1/main/0",
            "redis+sentinel://me:hunter2@a,b:1/main/0",
            "redis+sentinel://me:hunter2@a,b:x/main",
            "rediss+cluster://me:hunter2@a,b:1/",
            "redis+cluster://me:hunter2@a,b:x/9",
        ] {
            let shard_urls = vec![url.into()];
            let config = RedisConfig { url: url.into(), shard_urls, ..RedisConfig::default() };
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
        for url in ["redis://127.0.0.1:6379/0", "rediss://[::1]:1", "redis+sentinel://a,b:1/main"] {
            assert_eq!(redacted(url), url);
        }
        assert_eq!(redacted("redis://user:x"), "redis://***");
    }

    #[test]
    fn the_password_comes_from_its_file_else_from_the_credential() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("secret");
        let write = |file: &Path, content: &[u8]| std::fs::write(file, content).expect("written");
        let mut config = RedisConfig::default();
        let with = |config: &RedisConfig, credentials: Option<&Path>| {
            password_with(WHAT, config.password_file.as_deref(), CREDENTIAL, credentials)
        };
        let read = |config: &RedisConfig| with(config, Some(folder.path()));

        assert_eq!(with(&config, None), Ok(None));
        assert_eq!(read(&config), Ok(None));
        write(&folder.path().join("redis-password"), b"\n");
        assert_eq!(read(&config), Ok(None), "the store has none");
        write(&folder.path().join("redis-password"), b"from systemd");
        assert_eq!(read(&config), Ok(Some(Password("from systemd".to_owned().into()))));

        config.password_file = Some(file.clone());
        let error = read(&config).expect_err("there is no such file").to_string();
        assert_eq!(
            error,
            format!("cannot read the Redis password from {}: no such file", file.display())
        );
        for (content, password) in
            [(&b"a b\n"[..], "a b"), (b"a\r\n", "a"), (b"a\n\n", "a\n"), (b" a", " a")]
        {
            write(&file, content);
            assert_eq!(read(&config), Ok(Some(Password(password.to_owned().into()))));
        }
        for (content, reason) in [
            (&b"\n"[..], "the file is empty"),
            (b"\xff", "not UTF-8 text"),
            (&[b'x'; 4097], "larger than the limit of 4KiB"),
        ] {
            write(&file, content);
            let error = read(&config).expect_err(reason).to_string();
            assert!(error.ends_with(reason) && error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_password_prints_as_stars() {
        assert_eq!(format!("{:?}", Password("hunter2".to_owned().into())), "Password(***)");
    }
}
