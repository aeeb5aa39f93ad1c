//! The folder of a stage: private, with a path short enough for a socket, and a configuration.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use tempfile::TempDir;

use super::unavailable;
use crate::config::{ApiConfig, Config, Listen};
use crate::error::Error;

pub(super) const CONFIG_FILE: &str = "hero.toml";
pub(super) const ADDRESS_FILE: &str = "api.address";
pub(super) const SOCKET: &str = "redis.sock";
/// The link in the folder to the folders of jobs.
pub(super) const RUN: &str = "run";
/// The longest path of a unix socket, in bytes.
const SOCKET_PATH_MAX: usize = 107;
const PREFIX: &str = "hero-dev-";
/// The number of random characters after the prefix of the folder's name.
const RANDOM_LEN: usize = 6;

/// A file system in memory, as the runtime directory of a systemd service is.
const IN_MEMORY: &str = "/dev/shm";

/// Makes the folder among temporary files, or in /tmp if the path of a socket there would be too
/// long or not legal in a url.
pub(super) fn private() -> Result<TempDir, Error> {
    let parent = parent(std::env::temp_dir());
    below(&parent).map_err(|error| {
        unavailable(format!("cannot create a folder in {}: {error}", parent.display()))
    })
}

/// Makes the parent of the folders of jobs, in memory if a file system there is writable, and a link to it.
pub(super) fn of_jobs(stage: &Path) -> Result<TempDir, Error> {
    let failed = |error: std::io::Error| {
        unavailable(format!("cannot create a folder in {}: {error}", stage.display()))
    };
    let in_memory = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let in_memory = in_memory.into_iter().chain([PathBuf::from(IN_MEMORY)]);
    let mut made = in_memory.filter(|folder| is_in_memory(folder)).filter_map(|it| below(&it).ok());
    let made = made.next().map_or_else(|| below(stage), Ok).map_err(failed)?;
    symlink(made.path(), stage.join(RUN)).map_err(failed)?;
    Ok(made)
}

/// Returns the folder of the stage that a configuration belongs to, and its folders of jobs; `None` for the
/// configuration of an installation.
pub(in crate::cli) fn stage_of(config: Option<&Path>) -> Option<(PathBuf, PathBuf)> {
    let folder = config?.parent()?;
    Some((folder.to_owned(), std::fs::read_link(folder.join(RUN)).ok()?))
}

fn below(parent: &Path) -> std::io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .rand_bytes(RANDOM_LEN)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
}

fn is_in_memory(folder: &Path) -> bool {
    folder.is_absolute()
        && statfs(folder).is_ok_and(|system| system.filesystem_type() == TMPFS_MAGIC)
}

/// Writes the configuration to a file that only this user can read.
pub(super) fn write_config(folder: &Path, config: &Config) -> Result<PathBuf, Error> {
    let file = folder.join(CONFIG_FILE);
    let text = config.to_toml()?;
    write(&file, &text)
        .map_err(|error| unavailable(format!("cannot write {}: {error}", file.display())))?;
    Ok(file)
}

/// Writes a file that only this user can read, at once: a run that is killed leaves no half of it.
pub(super) fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.persist(file)?;
    Ok(())
}

/// Sets the folders of a configuration that belong to the installed units by default: the caller may not write there,
/// and their periodic jobs are not to run twice.
pub(super) fn own_folders(config: &mut Config, folder: &Path) {
    let default = Config::default();
    for (used, default, name) in [
        (&mut config.job.cache_dir, default.job.cache_dir, "cache"),
        (&mut config.job.log_dir, default.job.log_dir, "logs"),
        (&mut config.supervisor.cron_dir, default.supervisor.cron_dir, "cron.d"),
        (&mut config.supervisor.scripts_dir, default.supervisor.scripts_dir, "scripts"),
        (&mut config.secrets.dir, default.secrets.dir, "secrets"),
    ] {
        if *used == default {
            *used = folder.join(name);
        }
    }
}

/// Returns the settings of an API on a port of this machine; 0 for a free one. The settings of the configuration
/// belong to the installed supervisor.
pub(super) fn stage_api(folder: &Path, port: u16) -> ApiConfig {
    ApiConfig {
        listen: vec![Listen::Tcp(([127, 0, 0, 1], port).into())],
        address_file: Some(folder.join(ADDRESS_FILE)),
        ..ApiConfig::default()
    }
}

pub(super) fn is_plain(path: &Path) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    path.is_absolute() && path.as_os_str().as_bytes().iter().all(is_plain)
}

/// Returns true if the path of a socket in the folder is short enough.
pub(super) fn socket_fits(folder: &Path) -> bool {
    folder.join(SOCKET).as_os_str().len() <= SOCKET_PATH_MAX
}

fn parent(preferred: PathBuf) -> PathBuf {
    let longest = preferred.join(format!("{PREFIX}{:x<RANDOM_LEN$}", ""));
    if is_plain(&preferred) && socket_fits(&longest) { preferred } else { PathBuf::from("/tmp") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_with_a_too_long_socket_path_is_made_in_tmp() {
        assert_eq!(parent("/var/tmp".into()), Path::new("/var/tmp"));
        for bad in [format!("/{}", "x".repeat(90)), "/a b".to_owned(), "tmp".to_owned()] {
            assert_eq!(parent(bad.clone().into()), Path::new("/tmp"), "{bad}");
        }
        let longest = format!("/{}", "x".repeat(SOCKET_PATH_MAX - 28));
        let folder = PathBuf::from(&longest).join(format!("{PREFIX}123456")).join(SOCKET);
        assert_eq!(folder.as_os_str().len(), SOCKET_PATH_MAX);
        assert_eq!(parent(longest.clone().into()), Path::new(&longest));
    }

    #[test]
    fn folder_of_jobs_is_private_and_in_memory_if_possible() {
        let stage = private().expect("a folder");
        let folder = of_jobs(stage.path()).expect("a folder");
        let mode = folder.path().metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(is_in_memory(folder.path()) || folder.path().starts_with(stage.path()));
        assert!(!is_in_memory(Path::new("/proc")));
    }

    #[test]
    fn written_configuration_reads_back_unchanged() {
        let folder = private().expect("a folder");
        let config = Config::default();
        let file = write_config(folder.path(), &config).expect("written");
        assert_eq!(Config::load(Some(&file)), Ok(config));
        let mode = file.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
