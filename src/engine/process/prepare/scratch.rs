//! The private folder of one job, which exists while the job runs.

use std::ffi::OsStr;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that only this user can enter. Dropping it removes it with its content.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Creates a folder in the runtime directory that systemd gives this service, or else in the
    /// directory for temporary files.
    ///
    /// # Errors
    /// Any error of creating the folder, with its parent in the message.
    pub fn new() -> io::Result<Self> {
        Self::below(&parent(std::env::var_os("RUNTIME_DIRECTORY").as_deref()))
    }

    /// Creates a folder in `parent`.
    ///
    /// # Errors
    /// Any error of creating the folder, with `parent` in the message.
    pub fn below(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("job-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        Ok(Self { folder })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a new file that only this user can read.
    ///
    /// # Errors
    /// Any error of creating and writing the file, such as a full disk.
    pub fn file(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(content.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    /// A job may have removed its own permission to enter a folder, and such a folder cannot be
    /// emptied: the permission is restored before the folder is removed.
    fn drop(&mut self) {
        if std::fs::remove_dir_all(self.path()).is_ok() {
            self.folder.disable_cleanup(true);
        } else {
            make_removable(self.path(), FOLDERS_DEEP_MAX);
        }
    }
}

/// Folders nested deeper than this are left to the clean-up of temporary files.
const FOLDERS_DEEP_MAX: usize = 64;

fn make_removable(folder: &Path, depth_left: usize) {
    let _ = std::fs::set_permissions(folder, Permissions::from_mode(0o700));
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    if depth_left == 0 {
        return;
    }
    for entry in entries.flatten() {
        // `file_type` does not follow links.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_removable(&entry.path(), depth_left - 1);
        }
    }
}

/// Returns the first absolute path in `RUNTIME_DIRECTORY`, which may list several.
fn parent(runtime: Option<&OsStr>) -> PathBuf {
    runtime
        .and_then(|entries| std::env::split_paths(entries).find(|entry| entry.is_absolute()))
        .unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn the_folder_is_private_and_removed_when_dropped() {
        let scratch = Scratch::new().expect("a folder");
        let file = scratch.file("script.sh", "echo").expect("a file");
        assert_eq!((mode(scratch.path()), mode(&file)), (0o700, 0o600));
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_without_permissions_is_removed_too() {
        let scratch = Scratch::new().expect("a folder");
        let closed = scratch.path().join("closed");
        std::fs::create_dir_all(closed.join("inner")).expect("folders");
        std::fs::set_permissions(&closed, Permissions::from_mode(0o000)).expect("closed");
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn the_first_absolute_runtime_directory_is_the_parent() {
        let of = |value: &str| parent(Some(OsStr::new(value)));
        assert_eq!(of("/run/hero:/run/hero-x"), Path::new("/run/hero"));
        assert_eq!(of(""), std::env::temp_dir());
        assert_eq!(parent(None), std::env::temp_dir());
    }
}
