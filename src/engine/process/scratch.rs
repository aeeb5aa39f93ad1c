//! The private folder of one job: there while it runs, gone afterwards whatever happened.

use std::ffi::OsStr;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that only this user can enter; dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Makes one below systemd's runtime directory of this service, or else where temporary
    /// files go.
    ///
    /// # Errors
    /// Those of making the folder, with its parent in the message.
    pub fn new() -> io::Result<Self> {
        Self::below(&parent(std::env::var_os("RUNTIME_DIRECTORY").as_deref()))
    }

    /// Makes one below `parent`.
    ///
    /// # Errors
    /// Those of making the folder, with `parent` in the message.
    pub fn below(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("job-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        Ok(Self { folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a new file that only this user can read.
    ///
    /// # Errors
    /// Those of making and writing it, as when the disk is full.
    pub fn file(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(content.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    /// A job may have taken its own permission to enter a folder away, and such a folder cannot
    /// be emptied; it is given back before the folder is removed.
    fn drop(&mut self) {
        make_removable(self.path(), FOLDERS_DEEP_MAX);
    }
}

/// Deeper than this a folder is left to the clean-up of temporary files.
const FOLDERS_DEEP_MAX: usize = 64;

fn make_removable(folder: &Path, depth_left: usize) {
    let _ = std::fs::set_permissions(folder, Permissions::from_mode(0o700));
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    if depth_left == 0 {
        return;
    }
    for entry in entries.flatten() {
        // A link is not followed: `file_type` is that of the entry itself.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_removable(&entry.path(), depth_left - 1);
        }
    }
}

/// The first entry of `RUNTIME_DIRECTORY`, which systemd may fill with several.
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
    fn it_is_private_and_gone_when_dropped() {
        let scratch = Scratch::new().expect("a folder");
        let file = scratch.file("script.sh", "echo").expect("a file");
        assert_eq!((mode(scratch.path()), mode(&file)), (0o700, 0o600));
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_closed_to_its_owner_is_removed_too() {
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
