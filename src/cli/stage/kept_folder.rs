//! The persistent folder of `hero dev --keep`: all that it needs for the next run.

use std::fmt::Display;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, json};

use super::super::output;
use super::folder::{
    ADDRESS_FILE, CONFIG_FILE, RUN, SOCKET, is_plain, own_folders, socket_fits, stage_api, write,
};
use super::unavailable;
use crate::config::{ApiConfig, Config, RedisConfig, format_duration};
use crate::error::Error;

/// Locked by `hero dev`, with its process id: there is one at a time.
const LOCK: &str = "hero-dev.lock";
/// Locked by Redis and the units too, through their standard input: after a kill of `hero dev` they end
/// a little later.
const CHILDREN_LOCK: &str = "hero-dev.children.lock";
/// The settings that the folder decides, over the configuration beside it.
const OWN_SETTINGS: &str = "zz-hero-dev.toml";
const TOKEN: &str = "token";
/// The address of the API in the last run; a supervisor removes its own file at its end.
const LAST_ADDRESS: &str = "last.address";
const GLANCE: Duration = Duration::from_millis(20);
/// The wait before the person is told that processes of the last run still end.
const QUIET_WAIT: Duration = Duration::from_millis(500);
/// The files that are removed at the start, as they belong to the last run.
const STALE: [&str; 3] = [SOCKET, ADDRESS_FILE, RUN];

/// A folder that this process alone uses.
pub(in crate::cli) struct KeptFolder {
    pub(super) path: PathBuf,
    children: File,
    _lock: File,
}

impl KeptFolder {
    /// Makes the folder, if it is missing, and locks it. Waits for the processes of a run that was killed. Fails if another
    /// `hero dev` uses it, if it holds other files, or if its path is no path for a socket.
    pub(in crate::cli) async fn take(dir: &Path, wait_max: Duration) -> Result<Self, Error> {
        let failed = |error: io::Error| cannot_keep(dir, error);
        // Before anything is made, and once more after links are followed.
        check_path(&std::path::absolute(dir).map_err(failed)?)?;
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let path = dir.canonicalize().map_err(failed)?;
        check_path(&path)?;
        let is_own = Self::is_folder(&path);
        if !is_own && fs::read_dir(&path).map_err(failed)?.next().is_some() {
            return Err(cannot_keep(&path, "it holds other files; name a new or empty folder"));
        }
        fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(failed)?;
        let lock = lock_of_run(&path)?;
        let children = open_lock(&path.join(CHILDREN_LOCK)).map_err(failed)?;
        let began = Instant::now();
        let mut is_told = false;
        while !locks(&children).map_err(failed)? {
            if began.elapsed() > wait_max {
                let reason = "Redis or units of its last run still run; end these processes";
                return Err(cannot_keep(&path, reason));
            }
            if !is_told && began.elapsed() > QUIET_WAIT {
                is_told = true;
                output::note(&format!(
                    "waiting for the processes of the last run, which end within {}",
                    format_duration(wait_max)
                ));
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(Self { path, children, _lock: lock })
    }

    /// Returns true for a folder that a `hero dev` keeps.
    fn is_folder(dir: &Path) -> bool {
        dir.join(LOCK).exists()
    }

    /// Returns true for the configuration that a `hero dev` keeps, not for another file in its folder.
    pub(in crate::cli) fn is_config(file: &Path) -> bool {
        let is_named = file.file_name().is_some_and(|name| name == CONFIG_FILE);
        is_named && file.parent().is_some_and(Self::is_folder)
    }

    pub(in crate::cli) fn config_file(&self) -> PathBuf {
        self.path.join(CONFIG_FILE)
    }

    /// Returns the standard input of a child: while the child runs, no other run uses the folder.
    pub(super) fn input_of_child(&self) -> Result<File, Error> {
        self.children.try_clone().map_err(|error| cannot_keep(&self.path, error))
    }

    /// Writes the configuration: the file of the folder stays as its first run wrote it, unless the caller names one,
    /// and the settings of the stage are over it. Returns both together, and the file.
    pub(super) fn settle(
        &self,
        config: Config,
        redis: RedisConfig,
        is_named: bool,
    ) -> Result<(Config, PathBuf), Error> {
        let file = self.config_file();
        let drop_ins = self.path.join(format!("{CONFIG_FILE}.d"));
        let own = drop_ins.join(OWN_SETTINGS);
        let failed = |error: io::Error| cannot_keep(&self.path, error);
        let port = self.last_port();
        for name in STALE {
            remove(&self.path.join(name)).map_err(failed)?;
        }
        remove(&own).map_err(failed)?;
        if is_named || !file.exists() {
            // The addresses of the configuration belong to the installed daemons.
            let (redis, api) = (RedisConfig::default(), ApiConfig::default());
            let text = Config { redis, api, ..config }.to_toml_of_changes()?;
            let head = "# The configuration of `hero dev --keep` in this folder; see hero.toml(5). Change it\n\
                        # as you like. Where Redis and the API are stands in hero.toml.d, and is written at each start.\n";
            write(&file, &format!("{head}{text}")).map_err(failed)?;
        }
        let mut config = Config::load(Some(&file))?;
        // Keys and other settings of the API say nothing about its address.
        let has_api = config.api.listen != ApiConfig::default().listen;
        if !has_api {
            config.api.listen = stage_api(&self.path, port).listen;
        }
        let address_file = self.path.join(ADDRESS_FILE);
        config.api.address_file = Some(address_file.clone());
        own_folders(&mut config, &self.path);
        let mut api = Map::from_iter([("address_file".to_owned(), json!(address_file))]);
        if !has_api {
            api.insert("listen".to_owned(), json!(config.api.listen));
        }
        let job = json!({ "cache_dir": config.job.cache_dir, "log_dir": config.job.log_dir });
        let settings = json!({
            "redis": { "url": redis.url }, "api": api, "job": job,
            "supervisor": {
                "cron_dir": config.supervisor.cron_dir, "scripts_dir": config.supervisor.scripts_dir,
            },
            "secrets": { "dir": config.secrets.dir },
        });
        let text = toml::to_string(&settings).map_err(|error| failed(io::Error::other(error)))?;
        DirBuilder::new().recursive(true).mode(0o700).create(&drop_ins).map_err(failed)?;
        write(&own, &format!("# Written by `hero dev --keep` at each start.\n{text}"))
            .map_err(failed)?;
        config.redis = redis;
        Ok((config, file))
    }

    /// Returns the token of the page: the token of the last run, if there was one.
    pub(in crate::cli) fn token(&self) -> Result<String, Error> {
        let file = self.path.join(TOKEN);
        match fs::read_to_string(&file) {
            Ok(token) if !token.trim().is_empty() => return Ok(token.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot_keep(&self.path, format!("{TOKEN}: {error}"))),
        }
        let token = super::new_token();
        write(&file, &token).map_err(|error| cannot_keep(&self.path, error))?;
        Ok(token)
    }

    pub(super) fn note_address(&self, address: &str) -> Result<(), Error> {
        write(&self.path.join(LAST_ADDRESS), address)
            .map_err(|error| cannot_keep(&self.path, error))
    }

    /// Returns the port of the API in the last run, if it is still free; else 0.
    fn last_port(&self) -> u16 {
        let text = fs::read_to_string(self.path.join(LAST_ADDRESS)).unwrap_or_default();
        let last = text.trim_end().rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        last.filter(|port| TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], *port))).is_ok())
            .unwrap_or_default()
    }
}

/// Refuses a folder whose sockets cannot be named by a url.
fn check_path(path: &Path) -> Result<(), Error> {
    if is_plain(path) && socket_fits(path) {
        return Ok(());
    }
    let reason = "its socket needs a short path of letters, digits, `.`, `_`, `-` and `/`";
    Err(cannot_keep(path, format!("{reason}; choose another folder")))
}

/// Locks the folder for this process, and writes its id into the lock.
fn lock_of_run(path: &Path) -> Result<File, Error> {
    let failed = |error: io::Error| cannot_keep(path, error);
    let mut lock = open_lock(&path.join(LOCK)).map_err(failed)?;
    if !locks(&lock).map_err(failed)? {
        let mut holder = String::new();
        lock.read_to_string(&mut holder).map_err(failed)?;
        let holder = holder.trim();
        let process = if holder.is_empty() { String::new() } else { format!(", process {holder}") };
        let reason =
            format!("another `hero dev` uses it{process}; stop that, or name another folder");
        return Err(cannot_keep(path, reason));
    }
    lock.set_len(0)
        .and_then(|()| lock.rewind())
        .and_then(|()| writeln!(lock, "{}", std::process::id()))
        .map_err(failed)?;
    Ok(lock)
}

fn open_lock(file: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(file)
}

/// Locks a file. Returns false if another process has the lock.
fn locks(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn cannot_keep(dir: &Path, reason: impl Display) -> Error {
    unavailable(format!("cannot keep hero dev in {}: {reason}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(dir: &Path) -> Result<KeptFolder, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let taken = runtime.expect("a runtime").block_on(KeptFolder::take(dir, Duration::ZERO));
        taken.map_err(|error| error.to_string())
    }

    fn redis(kept: &KeptFolder) -> RedisConfig {
        let url = format!("redis+unix://{}/redis.sock", kept.path.display());
        RedisConfig { url: url.into(), ..RedisConfig::default() }
    }

    #[test]
    fn folder_is_used_by_one_run_and_its_processes_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("new/one");
        let kept = take(&dir).expect("taken");
        let error = take(&dir).err().expect("in use");
        let own = std::process::id();
        assert!(error.contains(&format!("another `hero dev` uses it, process {own};")), "{error}");
        let child = kept.input_of_child().expect("a file");
        drop(kept);
        let error = take(&dir).err().expect("a child is left");
        assert!(error.contains("still run"), "{error}");
        drop(child);
        take(&dir).expect("free again");
    }

    #[test]
    fn folder_with_other_files_or_no_path_for_a_socket_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("letter.txt"), "").expect("written");
        let error = take(folder.path()).err().expect("not empty");
        assert!(error.contains("it holds other files"), "{error}");
        for bad in ["a b".to_owned(), "x".repeat(100)] {
            let error = take(&folder.path().join(bad)).err().expect("no path");
            assert!(error.contains("its socket needs a short path"), "{error}");
        }
        let entries = fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(entries, 1, "nothing is made in a folder that is refused, nor the folder");
    }

    #[test]
    fn configuration_and_token_of_the_first_run_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = take(folder.path()).expect("taken");
        let given = Config::from_toml("h".as_ref(), "[actor]\ntasks = 7\n[api]\nlisten = []\n");
        let given = given.expect("legal");
        let (config, file) = kept.settle(given, redis(&kept), true).expect("settled");
        assert_eq!(config.actor.tasks, 7);
        assert!(!config.api.listen.is_empty(), "the stage has its own API, not the installation's");
        assert_eq!(Config::load(Some(&file)), Ok(config.clone()), "units read what this returns");
        assert!(config.job.cache_dir.starts_with(&kept.path), "{:?}", config.job.cache_dir);
        let text = fs::read_to_string(&file).expect("written");
        assert!(text.contains("tasks = 7") && text.lines().count() < 8, "{text}");

        let token = kept.token().expect("a token");
        fs::write(&file, text.replace("tasks = 7", "tasks = 9")).expect("changed by its owner");
        let (config, _) = kept.settle(Config::default(), redis(&kept), false).expect("settled");
        assert_eq!(config.actor.tasks, 9);
        let (config, _) = kept.settle(Config::default(), redis(&kept), true).expect("settled");
        assert_eq!(config.actor.tasks, Config::default().actor.tasks, "another was named");
        assert_eq!(kept.token().expect("a token"), token);
        let mode = |file: &Path| file.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(
            (mode(&kept.path), mode(&kept.path.join(TOKEN)), mode(&file)),
            (0o700, 0o600, 0o600)
        );
    }

    #[test]
    fn address_of_the_page_stays_while_its_port_is_free() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = take(folder.path()).expect("taken");
        assert_eq!(kept.last_port(), 0);
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = taken.local_addr().expect("an address").port();
        let address = format!("http://127.0.0.1:{port}\n");
        kept.note_address(&address).expect("written");
        assert_eq!(kept.last_port(), 0);
        drop(taken);
        assert_eq!(kept.last_port(), port);
    }
}
