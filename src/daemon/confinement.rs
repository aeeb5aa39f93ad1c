//! An actor of `osis` alone needs nothing but Redis, so its process shuts itself in once it has
//! opened what it needs: bugs of the engine are then no way to the machine.

use std::path::{Path, PathBuf};

use tracing::{info, warn};

use crate::config::{Config, DEFAULT_FILE, EngineKind, Unit};
use crate::sandbox::Rights;
use crate::store::{Reach, StoreError};

/// The port of name servers.
const NAMES: u16 = 53;
/// What names are looked up with: files that whoever looks after the network replaces at any time,
/// so the whole folders of them, and the libraries that know other ways.
const NAME_FILES: [&str; 5] =
    ["/etc", "/usr/lib", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"];
/// The authorities of the system, which every TLS connection reads, whomever it trusts.
const AUTHORITIES: [&str; 4] = [
    "/etc/ssl",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];

/// What the process of a unit may still do once it is shut in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    rights: Rights,
}

impl Confinement {
    /// None for a unit whose scripts need more than Redis, or where `actor.sandbox` is off. `file`
    /// is the configuration, if it is not in the default place.
    ///
    /// # Errors
    /// The url of Redis cannot be used.
    pub fn of(
        config: &Config,
        file: Option<&Path>,
        unit: &Unit,
    ) -> Result<Option<Self>, StoreError> {
        let Unit::Actors(actors) = unit else { return Ok(None) };
        let mut engines =
            actors.iter().map(|actor| config.types.get(&actor.id.script_type).map(|t| t.engine));
        if !config.actor.sandbox || !engines.all(|engine| engine == Some(EngineKind::Osis)) {
            return Ok(None);
        }
        let mut read = folders_of(file.unwrap_or(Path::new(DEFAULT_FILE)));
        // The load, the memory, and whether the process still runs that holds a name.
        read.push("/proc".into());
        let mut reads = |paths: &[&str]| read.extend(paths.iter().map(PathBuf::from));
        let ports = match Reach::of(&config.redis)? {
            Reach::Socket => Some(Vec::new()),
            Reach::Tcp { port, is_name: false } => Some(vec![port]),
            Reach::Tcp { port, is_name: true } => {
                reads(&NAME_FILES);
                Some(vec![port, NAMES])
            }
            // They name the master's port when they are asked.
            Reach::Sentinels => {
                reads(&NAME_FILES);
                None
            }
        };
        if config.redis.url.is_tls() {
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

    /// What the process may still do, in a few words.
    pub fn summary(&self) -> String {
        self.rights.summary()
    }

    /// Shuts this process in, and says so. It serves all the same where that is not possible, as
    /// its scripts have no way out of their engine. Returns whether it is shut in.
    pub(super) fn begin(&self) -> bool {
        match self.rights.restrict_process() {
            Ok(()) => {
                info!("this process is shut in: it {}", self.summary());
                true
            }
            Err(error) => {
                warn!("this process is not shut in: {error}");
                false
            }
        }
    }
}

/// Where a file of the configuration and its drop-ins are: a file that is replaced is another one,
/// which only its folder leads to. Links count by where they lead.
fn folders_of(file: &Path) -> Vec<PathBuf> {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let led_to = file.canonicalize().ok();
    let folders = std::iter::once(file).chain(led_to);
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
        let confinement = Confinement::of(&config, file, &unit).expect("a legal url");
        confinement.map(|confinement| confinement.rights)
    }

    #[test]
    fn only_what_needs_nothing_but_redis_is_shut_in() {
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
    fn it_reaches_redis_and_reads_what_that_takes() {
        let with = |url: &str| of(&format!("redis.url = \"{url}\""), "osis-default-1");
        let ports = |url: &str| with(url).expect("shut in").ports;
        assert_eq!(ports("redis://127.0.0.1:6379/0"), Some(vec![6379]));
        assert_eq!(ports("redis://[::1]:7000/0"), Some(vec![7000]));
        assert_eq!(ports("redis://redis.example:7000/0"), Some(vec![7000, 53]));
        assert_eq!(ports("redis+unix:///run/redis.sock"), Some(vec![]));
        assert_eq!(ports("redis+sentinel://10.0.0.1:26379/main"), None);
        let reads = |url: &str, path: &str| {
            let read = with(url).expect("shut in").read;
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
        let own = of("job.log_dir = \"/srv/logs\"", "osis-default-1").expect("shut in");
        assert_eq!(own.write, [PathBuf::from("/srv/logs")]);
    }

    #[test]
    fn a_file_is_found_again_where_it_was_and_where_it_leads() {
        let folder = tempfile::tempdir().expect("a folder");
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        for folder in [&own, &other] {
            std::fs::create_dir(folder).expect("made");
        }
        std::fs::write(other.join("real.toml"), "").expect("written");
        std::os::unix::fs::symlink(other.join("real.toml"), own.join("hero.toml")).expect("linked");
        assert_eq!(folders_of(&own.join("hero.toml")), [own.clone(), other]);
        assert_eq!(folders_of(&own.join("absent.toml")), [own]);
    }
}
