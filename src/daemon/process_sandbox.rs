//! The sandbox of the daemon's own process, for actors of `osis` only: they need nothing but Redis, so
//! the process restricts itself once it has opened what it needs. Then a bug of the engine gives a
//! script no access to the machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tracing::{info, warn};

use crate::config::{Config, DEFAULT_FILE, RedisConfig, TraceReceiver, TypeConfig, Unit};
use crate::sandbox::Rights;
use crate::store::{Reach, StoreError};

/// The port of DNS servers.
const DNS_PORT: u16 = 53;
/// The folders that resolving a host name reads: its configuration, whose files may be
/// replaced at any time, and the libraries.
const RESOLVER_FOLDERS: [&str; 5] =
    ["/etc", "/usr/lib", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"];
/// The folders of the system's certificate authorities, which every TLS connection reads.
const AUTHORITIES: [&str; 4] = [
    "/etc/ssl",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];

/// The rights that the process of a unit keeps in its sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSandbox {
    rights: Rights,
}

impl ProcessSandbox {
    /// Returns `None` for a unit whose scripts need more than Redis, and if `actor.sandbox` is off.
    /// `file` is the configuration, if it is not the default one.
    ///
    /// # Errors
    /// The url of Redis is invalid.
    pub fn of(
        config: &Config,
        file: Option<&Path>,
        unit: &Unit,
    ) -> Result<Option<Self>, StoreError> {
        let Unit::Actors(actors) = unit else { return Ok(None) };
        let types = actors.iter().map(|actor| config.types.get(&actor.id.script_type));
        let types: Option<Vec<&TypeConfig>> = types.collect();
        let needs_only_redis = |of: &&TypeConfig| of.engine.needs_only_redis();
        let types = types.filter(|all| config.actor.sandbox && all.iter().all(needs_only_redis));
        let Some(types) = types else { return Ok(None) };
        let mut read = folders_of(file.unwrap_or(Path::new(DEFAULT_FILE)));
        // Functions of HeroScript and hooks, which a reload reads again, and modules, read when they are imported.
        for of_type in types {
            read.extend(of_type.modules.clone());
            read.extend(of_type.hook_files().flat_map(folders_of));
        }
        let mut rules = config.secrets.allow.values();
        if rules.any(|rule| {
            let of_unit = actors.iter().map(|actor| &actor.id.script_type);
            rule.types.is_empty() || of_unit.clone().any(|one| rule.types.contains(one))
        }) {
            read.push(config.secrets.dir.clone());
            read.extend(std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from));
        }
        // The login of Redis is read again when it is refused, and by a reload.
        let redis = &config.redis;
        let files = [&redis.password_file, &redis.tls_ca_file, &redis.tls_cert_file];
        let files = files.into_iter().chain([&redis.tls_key_file]).flatten();
        read.extend(files.flat_map(|file| folders_of(file)));
        read.extend(redis.credential_file());
        read.extend(config.trace.headers_file.clone());
        // For load, memory, and the check that the process holding a name still runs.
        read.push("/proc".into());
        let mut reads = |paths: &[&str]| read.extend(paths.iter().map(PathBuf::from));
        let (mut ports, mut by_name) = ports(&config.redis)?;
        let receiver = config.trace.receiver();
        if let Some(TraceReceiver { host, port, .. }) = receiver {
            let is_name = host.parse::<std::net::IpAddr>().is_err();
            by_name |= is_name;
            ports = ports.map(|of| {
                of.into_iter().chain([port]).chain(is_name.then_some(DNS_PORT)).collect()
            });
        }
        if by_name {
            reads(&RESOLVER_FOLDERS);
        }
        if config.redis.has_tls() || receiver.is_some_and(|receiver| receiver.is_tls) {
            reads(&AUTHORITIES);
            let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter_map(std::env::var_os);
            let named: Vec<PathBuf> =
                named.flat_map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>()).collect();
            read.extend(named);
        }
        let write = vec![config.job.log_dir.clone()];
        let notify = std::env::var_os("NOTIFY_SOCKET").unwrap_or_default();
        let abstract_sockets = notify.as_encoded_bytes().starts_with(b"@");
        Ok(Some(Self { rights: Rights { read, write, ports, abstract_sockets } }))
    }

    /// Describes the rights of the process in a few words.
    pub fn summary(&self) -> String {
        self.rights.summary()
    }

    /// Restricts this process and logs that. Returns false if that is not possible; the process
    /// continues all the same, as its scripts cannot leave their engine.
    pub(super) fn enter(&self) -> bool {
        match self.rights.restrict_process() {
            Ok(()) => {
                info!("this process is sandboxed: it {}", self.summary());
                true
            }
            Err(error) => {
                warn!("this process is not sandboxed: {error}");
                false
            }
        }
    }
}

/// Returns the ports of all shards, `None` if they cannot be known, and whether host names are resolved.
fn ports(redis: &RedisConfig) -> Result<(Option<Vec<u16>>, bool), StoreError> {
    let (mut ports, mut all_known, mut by_name) = (BTreeSet::new(), true, false);
    for shard in redis.shard_count().shards() {
        match Reach::of(&redis.of_shard(shard))? {
            Reach::Socket => {}
            Reach::Tcp { port, is_name } => {
                ports.insert(port);
                by_name |= is_name;
            }
            // Sentinels report the port of the master, nodes of a cluster the port of another.
            Reach::Named => (all_known, by_name) = (false, true),
        }
    }
    if by_name {
        ports.insert(DNS_PORT);
    }
    Ok((all_known.then(|| ports.into_iter().collect()), by_name))
}

/// Returns the folders of a configuration file and of its link target. A right to a folder remains
/// valid when the file is replaced.
fn folders_of(file: &Path) -> Vec<PathBuf> {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let target = file.canonicalize().ok();
    let folders = std::iter::once(file).chain(target);
    let mut folders: Vec<PathBuf> =
        folders.filter_map(|file| file.parent().map(Path::to_owned)).collect();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, unit: &str) -> Option<Rights> {
        let config = Config::from_toml("hero.toml".as_ref(), text).expect("legal");
        let unit = config.unit(unit).expect("a unit");
        let file = Some(Path::new("/etc/hero/hero.toml"));
        let sandbox = ProcessSandbox::of(&config, file, &unit).expect("a legal url");
        sandbox.map(|sandbox| sandbox.rights)
    }

    #[test]
    fn only_units_that_need_nothing_but_redis_are_sandboxed() {
        assert!(of("", "osis-default-1").is_some());
        for (text, unit) in [
            ("", "supervisor"),
            ("", "sal-default-1"),
            ("", "python-default-1"),
            ("actor.sandbox = false", "osis-default-1"),
            (
                "[[unit.both.actors]]\ntype = \"osis\"\ninstance = 1\n\
                 [[unit.both.actors]]\ntype = \"bash\"\ninstance = 1",
                "both",
            ),
        ] {
            assert_eq!(of(text, unit), None, "{unit} with {text}");
        }
    }

    #[test]
    fn the_sandbox_allows_the_port_of_redis_and_the_files_to_connect() {
        let with = |url: &str| of(&format!("redis.url = \"{url}\""), "osis-default-1");
        let ports = |url: &str| with(url).expect("sandboxed").ports;
        assert_eq!(ports("redis://127.0.0.1:6379/0"), Some(vec![6379]));
        assert_eq!(ports("redis://[::1]:7000/0"), Some(vec![7000]));
        assert_eq!(ports("redis://redis.example:7000/0"), Some(vec![53, 7000]));
        assert_eq!(ports("redis+unix:///run/redis.sock"), Some(vec![]));
        assert_eq!(ports("redis+sentinel://10.0.0.1:26379/main"), None);
        let reads = |url: &str, path: &str| {
            let read = with(url).expect("sandboxed").read;
            read.iter().any(|folder| folder == Path::new(path))
        };
        for (url, path, is_read) in [
            ("redis://127.0.0.1:6379", "/etc/hero", true),
            ("redis://127.0.0.1:6379", "/etc", false),
            ("redis://127.0.0.1:6379", "/etc/ssl", false),
            ("redis://redis.example", "/etc", true),
            ("rediss://127.0.0.1:6379", "/etc/ssl", true),
            ("rediss://127.0.0.1:6379", "/etc", false),
        ] {
            assert_eq!(reads(url, path), is_read, "{url}: {path}");
        }
        let shards = "redis.url = \"redis://127.0.0.1:6379\"\nredis.shards = 3\n\
                      redis.shard_urls = [\"redis://127.0.0.1:7000\", \"redis+unix:///r.sock\"]";
        let shards = of(shards, "osis-default-1").expect("sandboxed");
        assert_eq!(shards.ports, Some(vec![6379, 7000]));
        let own = of("job.log_dir = \"/srv/logs\"", "osis-default-1").expect("sandboxed");
        assert_eq!(own.write, [PathBuf::from("/srv/logs")]);
    }

    #[test]
    fn the_folders_of_a_link_are_its_own_and_that_of_its_target() {
        let folder = tempfile::tempdir().expect("a folder");
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        for folder in [&own, &other] {
            std::fs::create_dir(folder).expect("created");
        }
        std::fs::write(other.join("real.toml"), "").expect("written");
        std::os::unix::fs::symlink(other.join("real.toml"), own.join("hero.toml")).expect("linked");
        assert_eq!(folders_of(&own.join("hero.toml")), [own.clone(), other]);
        assert_eq!(folders_of(&own.join("absent.toml")), [own]);
    }
}
