//! The folder of a stage: private, with a path short enough for a socket, and a configuration.

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use tempfile::TempDir;

use super::unavailable;
use crate::config::Config;
use crate::error::Error;

/// The socket of Redis in the folder.
pub(super) const SOCKET: &str = "redis.sock";
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

/// Makes the parent of the folders of jobs: in memory, if a file system there is writable.
pub(super) fn of_jobs(stage: &Path) -> Result<TempDir, Error> {
    let in_memory = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let in_memory = in_memory.into_iter().chain([PathBuf::from(IN_MEMORY)]);
    let mut made = in_memory.filter(|folder| is_in_memory(folder)).filter_map(|it| below(&it).ok());
    made.next().map_or_else(|| below(stage), Ok).map_err(|error| {
        unavailable(format!("cannot create a folder in {}: {error}", stage.display()))
    })
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
    let file = folder.join("hero.toml");
    let text = config.to_toml()?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .map_err(|error| unavailable(format!("cannot write {}: {error}", file.display())))?;
    Ok(file)
}

fn parent(preferred: PathBuf) -> PathBuf {
    let added = 1 + PREFIX.len() + RANDOM_LEN + 1 + SOCKET.len();
    let path = preferred.as_os_str().as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    if preferred.is_absolute() && path.len() + added <= SOCKET_PATH_MAX && path.iter().all(is_plain)
    {
        preferred
    } else {
        PathBuf::from("/tmp")
    }
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
