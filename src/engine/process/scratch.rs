//! The private folder of one job: there while it runs, gone afterwards whatever happened.

use std::ffi::OsStr;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    /// be emptied; it is given back then, before the folder is removed.
    fn drop(&mut self) {
        if std::fs::remove_dir_all(self.path()).is_ok() {
            self.folder.disable_cleanup(true);
        } else {
            make_removable(self.path(), FOLDERS_DEEP_MAX);
        }
    }
}

/// When the child's own folder is looked at next, if it is bounded.
pub(super) struct DiskLook<'a> {
    folder: &'a Path,
    bytes_max: u64,
    /// None if it is not.
    pub(super) next: Option<Instant>,
}

impl<'a> DiskLook<'a> {
    pub(super) fn at(folder: &'a Path, bytes_max: Option<u64>) -> Self {
        let next = bytes_max.map(|_| Instant::now() + DISK_LOOK_EVERY);
        Self { folder, bytes_max: bytes_max.unwrap_or(u64::MAX), next }
    }

    pub(super) fn finds_too_much(&mut self, now: Instant) -> bool {
        if self.next.is_none_or(|at| now < at) {
            return false;
        }
        let began = Instant::now();
        let finds = holds_more_than(self.folder, self.bytes_max);
        // A folder of many files takes its time, which must not become all of it.
        self.next = Some(Instant::now() + DISK_LOOK_EVERY.max(began.elapsed() * 20));
        finds
    }
}

/// Whether what lies in a folder takes more than so many bytes on its disk. Links are not
/// followed. Of more files than one would look through it says so too.
fn holds_more_than(folder: &Path, bytes_max: u64) -> bool {
    let (mut bytes, mut seen) = (0_u64, 0_u64);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let Ok(data) = entry.metadata() else { continue };
            // An entry that is empty takes its place too.
            bytes = bytes.saturating_add(data.blocks().saturating_mul(512).max(ENTRY_BYTES));
            seen += 1;
            if bytes > bytes_max || seen > ENTRIES_MAX {
                return true;
            }
            if data.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

/// How often the folder of a child is looked at that may not hold too much.
const DISK_LOOK_EVERY: Duration = Duration::from_millis(500);
/// What an entry of a folder counts for at least.
const ENTRY_BYTES: u64 = 256;
/// The most entries of a folder that is bounded.
const ENTRIES_MAX: u64 = 1_000_000;
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
    fn a_folder_is_weighed_whole_and_links_are_not_followed() {
        let scratch = Scratch::new().expect("a folder");
        std::os::unix::fs::symlink("/usr", scratch.path().join("link")).expect("a link");
        std::fs::create_dir(scratch.path().join("in")).expect("made");
        scratch.file("in/a", &"x".repeat(100_000)).expect("written");
        assert!(holds_more_than(scratch.path(), 99_000));
        assert!(!holds_more_than(scratch.path(), 200_000));
    }

    #[test]
    fn the_first_absolute_runtime_directory_is_the_parent() {
        let of = |value: &str| parent(Some(OsStr::new(value)));
        assert_eq!(of("/run/hero:/run/hero-x"), Path::new("/run/hero"));
        assert_eq!(of(""), std::env::temp_dir());
        assert_eq!(parent(None), std::env::temp_dir());
    }
}
