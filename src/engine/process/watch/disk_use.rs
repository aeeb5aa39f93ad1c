//! The space that a job takes on disks: its private folder, and open files without a name.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use crate::engine::process::tree;

const ENTRY_BYTES: u64 = 256;
/// A folder of this number of entries exceeds any limit.
const ENTRIES_MAX: u64 = 1_000_000;
/// The folders that stay open on the way into a tree. From deeper ones the way back is `..`.
const OPEN_MAX: usize = 16;
/// The measurements in a row that may be incomplete, as folders were moved meanwhile.
const INCOMPLETE_MAX: u32 = 20;

#[derive(Debug)]
pub(super) struct DiskUse<'a> {
    folder: &'a Path,
    bytes_max: u64,
    incomplete: u32,
}

impl<'a> DiskUse<'a> {
    pub(super) fn new(folder: &'a Path, bytes_max: u64) -> Self {
        Self { folder, bytes_max, incomplete: 0 }
    }

    /// Returns true if the job takes more than it may, or hides what it takes.
    pub(super) fn exceeds_limit(&mut self, processes: &[i32]) -> bool {
        let bytes = unnamed_bytes(processes);
        let mut walk = DiskWalk { bytes, ..DiskWalk::default() };
        let exceeds = walk.exceeds(self.folder, self.bytes_max);
        self.incomplete = if walk.is_incomplete { self.incomplete + 1 } else { 0 };
        exceeds || self.incomplete > INCOMPLETE_MAX
    }
}

/// A walk through a tree, which may change meanwhile.
#[derive(Default)]
struct DiskWalk {
    bytes: u64,
    entries: u64,
    /// True if a folder was moved while the walk was in it.
    is_incomplete: bool,
}

/// A folder on the way from the top to the current one.
struct Level {
    id: (u64, u64),
    folders: Vec<CString>,
    /// The folder while the walk is below it.
    open: Option<OwnedFd>,
}

impl DiskWalk {
    /// Returns true if a folder takes more than `bytes_max`, or has more than [`ENTRIES_MAX`] entries. Follows no links.
    fn exceeds(&mut self, folder: &Path, bytes_max: u64) -> bool {
        let readable = Mode::S_IRUSR | Mode::S_IXUSR;
        let Ok(mut current) = tree::open_path(folder, readable) else { return false };
        let mut levels: Vec<Level> = self.visit(&current, bytes_max).into_iter().collect();
        while let Some(level) = levels.last_mut() {
            if self.is_over(bytes_max) {
                return true;
            }
            if let Some(name) = level.folders.pop() {
                let Ok(inner) = tree::open(current.as_fd(), &name, readable) else { continue };
                let Some(visited) = self.visit(&inner, bytes_max) else { continue };
                let left = std::mem::replace(&mut current, inner);
                level.open = Some(left);
                levels.push(visited);
                if let Some(level) = levels.len().checked_sub(2).filter(|above| *above >= OPEN_MAX)
                {
                    levels[level].open = None;
                }
            } else {
                levels.pop();
                match self.leave(&current, &mut levels) {
                    Some(above) => current = above,
                    None => break,
                }
            }
        }
        self.is_over(bytes_max)
    }

    fn is_over(&self, bytes_max: u64) -> bool {
        self.bytes > bytes_max || self.entries > ENTRIES_MAX
    }

    /// Counts the entries of a folder; `None` if it cannot be read.
    fn visit(&mut self, folder: &OwnedFd, bytes_max: u64) -> Option<Level> {
        let names = tree::names(folder.as_fd(), usize::MAX).ok()?;
        let mut folders = Vec::new();
        for name in names {
            if self.is_over(bytes_max) {
                break;
            }
            let Ok(data) = fstatat(folder, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else {
                continue;
            };
            let blocks = u64::try_from(data.st_blocks).unwrap_or_default();
            self.bytes = self.bytes.saturating_add(blocks.saturating_mul(512).max(ENTRY_BYTES));
            self.entries += 1;
            if SFlag::from_bits_truncate(data.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR {
                folders.push(name);
            }
        }
        let id = id_of(&fstat(folder).ok()?);
        Some(Level { id, folders, open: None })
    }

    /// Returns to the folder above, or to the next open one if that was moved or removed. `None` at the end of the walk.
    fn leave(&mut self, current: &OwnedFd, levels: &mut Vec<Level>) -> Option<OwnedFd> {
        let level = levels.last_mut()?;
        if let Some(open) = level.open.take() {
            return Some(open);
        }
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let above = openat(current, c"..", flags, Mode::empty()).ok();
        let is_above = |above: &OwnedFd| fstat(above).is_ok_and(|data| id_of(&data) == level.id);
        if let Some(above) = above.filter(is_above) {
            return Some(above);
        }
        self.is_incomplete = true;
        while levels.last()?.open.is_none() {
            levels.pop();
        }
        levels.last_mut()?.open.take()
    }
}

fn id_of(data: &FileStat) -> (u64, u64) {
    (data.st_dev, data.st_ino)
}

/// Returns the space of open files without a name: removed ones, those that never had a name, files in memory.
fn unnamed_bytes(processes: &[i32]) -> u64 {
    let mut seen = BTreeSet::new();
    let folders = processes.iter().map(|pid| format!("/proc/{pid}/fd"));
    let open = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    // The kernel adds this to their names, which saves asking their file systems for all others.
    let unnamed = open.map(|entry| entry.path()).filter(|path| {
        fs::read_link(path)
            .is_ok_and(|name| name.as_os_str().as_encoded_bytes().ends_with(b" (deleted)"))
    });
    let files = unnamed.filter_map(|path| fs::metadata(path).ok());
    let files = files.filter(|data| data.is_file() && data.nlink() == 0);
    files
        .filter(|data| seen.insert((data.dev(), data.ino())))
        .map(|data| data.blocks().saturating_mul(512))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceeds(folder: &Path, bytes_max: u64) -> bool {
        DiskUse::new(folder, bytes_max).exceeds_limit(&[])
    }

    #[test]
    fn subfolders_are_measured_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        std::os::unix::fs::symlink("/usr", folder.join("link")).expect("a link");
        fs::create_dir(folder.join("in")).expect("created");
        fs::write(folder.join("in/a"), "x".repeat(100_000)).expect("written");
        assert!(exceeds(folder, 99_000));
        assert!(!exceeds(folder, 200_000));
    }

    #[test]
    fn tree_that_is_deeper_than_a_path_is_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("deep");
        fs::create_dir_all(deep.join("side")).expect("created");
        let deepest = tree::tests::nest(&deep, 3000);
        let space = || {
            let mut walk = DiskWalk::default();
            assert!(!walk.exceeds(folder.path(), u64::MAX) && !walk.is_incomplete);
            walk.bytes
        };
        let before = space();
        let create = OFlag::O_CREAT | OFlag::O_WRONLY;
        let file = openat(&deepest, c"file", create, Mode::S_IRUSR).expect("created");
        nix::unistd::write(&file, &vec![b'x'; 100_000]).expect("written");
        // A file of the first folders is counted as well, after the way back.
        fs::write(deep.join("side/file"), vec![b'x'; 100_000]).expect("written");
        assert!((200_000..300_000).contains(&(space() - before)));
        drop((deepest, file));
        tree::remove(&deep).expect("removed");
    }

    #[test]
    fn files_without_a_name_are_measured_once() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1).expect("resized");
        let copy = file.try_clone().expect("copied");
        std::io::Write::write_all(&mut &file, &vec![b'x'; 1_000_000]).expect("written");
        let this = i32::try_from(std::process::id()).expect("a pid");
        let before = unnamed_bytes(&[this, this]);
        assert!((1_000_000..50_000_000).contains(&before), "{before}");
        drop((file, copy));
    }
}
