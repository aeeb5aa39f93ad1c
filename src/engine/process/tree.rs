//! Opens, lists and removes trees of folders that a job may have filled with anything. Each step takes one name
//! below an open folder, so a tree may be deeper than a path is long, and links are never followed.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use tracing::warn;

/// The names that are read of a folder at once.
const NAMES_AT_ONCE: usize = 10_000;
/// The time limit of a removal. The rest then belongs to nobody, and the next daemon removes it.
const REMOVE_WITHIN: Duration = Duration::from_mins(1);

/// Opens a folder below another. A folder of this user without one of the `needed` permissions for
/// its owner gets it. Fails if it does not exist, is a link or no folder, or belongs to another user.
pub(super) fn open(parent: BorrowedFd<'_>, name: &CStr, needed: Mode) -> nix::Result<OwnedFd> {
    let only = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let place = openat(parent, name, only | OFlag::O_PATH, Mode::empty())?;
    match openat(&place, c".", only, Mode::empty()) {
        // Without the right to enter it, not even "." is found.
        Ok(opened) if has(&opened, needed)? => return Ok(opened),
        Ok(_) | Err(Errno::EACCES) => {}
        Err(error) => return Err(error),
    }
    // A descriptor that only names its folder has no other way to change it.
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    let mode = Mode::from_bits_truncate(fstat(&place)?.st_mode) | needed;
    fchmodat(AT_FDCWD, path.as_str(), mode, FchmodatFlags::FollowSymlink)?;
    openat(&place, c".", only, Mode::empty())
}

fn has(folder: &OwnedFd, needed: Mode) -> nix::Result<bool> {
    Ok(Mode::from_bits_truncate(fstat(folder)?.st_mode).contains(needed))
}

/// Opens a folder by its path, whose last name is not followed if it is a link.
pub(super) fn open_path(path: &Path, needed: Mode) -> nix::Result<OwnedFd> {
    open(AT_FDCWD, &name_of(path.as_os_str())?, needed)
}

/// Gives this user the permissions back that a job has taken away from a folder of the daemon: no rule for files
/// keeps a script from changing the modes of files of its user. Another user's folder stays as it is.
/// Fails if it does not exist, or is below a folder without the right to enter it.
pub(super) fn repair(path: &Path) -> io::Result<()> {
    let data = std::fs::symlink_metadata(path)?;
    let is_own = data.is_dir() && data.uid() == geteuid().as_raw();
    if is_own && data.mode() & Mode::S_IRWXU.bits() != Mode::S_IRWXU.bits() {
        drop(open_path(path, Mode::S_IRWXU)?);
        warn!(
            "a job took the permissions of {} away; they are back: chmod = false in the sandbox of its type \
             forbids it",
            path.display()
        );
    }
    Ok(())
}

/// Does the same as [`repair`] for a folder and all below it, down to a depth: files get the permissions to be read
/// and executed.
pub(super) fn repair_below(path: &Path, depth_left: usize) -> io::Result<()> {
    repair(path)?;
    for entry in std::fs::read_dir(path)?.flatten() {
        let Ok(data) = entry.metadata() else { continue };
        if data.is_dir() && depth_left > 0 {
            repair_below(&entry.path(), depth_left - 1)?;
        } else if data.is_file() && data.uid() == geteuid().as_raw() && data.mode() & 0o400 == 0 {
            let mode = Permissions::from_mode(data.mode() & 0o777 | 0o500);
            std::fs::set_permissions(entry.path(), mode)?;
        }
    }
    Ok(())
}

/// Creates a folder that only this user can enter, and the missing ones above it.
pub(super) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a new file that only this user can read.
pub(super) fn create_file(file: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)
}

fn name_of(text: &OsStr) -> nix::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| Errno::EINVAL)
}

/// Lists the names in an open folder, or at least some of many.
pub(super) fn names(folder: BorrowedFd<'_>, count_max: usize) -> nix::Result<Vec<CString>> {
    // Another position in the folder than of earlier lists.
    let mut listed = Dir::openat(folder, c".", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    let names =
        listed.iter().filter_map(|entry| entry.ok().map(|entry| entry.file_name().to_owned()));
    let names = names.filter(|name| ![c".", c".."].contains(&name.as_c_str()));
    Ok(names.take(count_max).collect())
}

/// Removes a folder with all that is in it, if it exists. A folder in a folder is first moved to the
/// top: so no tree is too deep, and an interrupted removal can be repeated.
/// Fails with the first error when nothing more can be removed, or with a timeout.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let top = match open_path(path, Mode::S_IRWXU) {
        Err(Errno::ENOENT) => return Ok(()),
        opened => opened?,
    };
    let (until, mut moved) = (Instant::now() + REMOVE_WITHIN, 0);
    loop {
        let names = names(top.as_fd(), NAMES_AT_ONCE)?;
        if names.is_empty() {
            return std::fs::remove_dir(path);
        }
        let (mut error, mut removed) = (Errno::EIO, 0);
        for name in &names {
            match remove_entry(top.as_fd(), name, &mut moved) {
                Ok(()) => removed += 1,
                Err(why) => error = why,
            }
        }
        if removed == 0 {
            return Err(error.into());
        }
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// Removes one entry of the top folder; of a folder at least the entries directly in it.
fn remove_entry(top: BorrowedFd<'_>, name: &CStr, moved: &mut u64) -> nix::Result<()> {
    match unlinkat(top, name, UnlinkatFlags::NoRemoveDir) {
        Err(Errno::EISDIR) => {}
        done => return done,
    }
    let folder = open(top, name, Mode::S_IRWXU)?;
    for inner in names(folder.as_fd(), NAMES_AT_ONCE)? {
        match unlinkat(&folder, inner.as_c_str(), UnlinkatFlags::NoRemoveDir) {
            Err(Errno::EISDIR) => {
                // Only the owner of a folder with the right to write in it can move it.
                drop(open(folder.as_fd(), &inner, Mode::S_IRWXU)?);
                move_to(folder.as_fd(), &inner, top, moved)?;
            }
            done => done?,
        }
    }
    match unlinkat(top, name, UnlinkatFlags::RemoveDir) {
        // It has more entries than were read at once.
        Err(Errno::ENOTEMPTY) => Ok(()),
        done => done,
    }
}

/// Moves a folder to the top under a name that is free there.
fn move_to(
    from: BorrowedFd<'_>,
    name: &CStr,
    top: BorrowedFd<'_>,
    moved: &mut u64,
) -> nix::Result<()> {
    loop {
        *moved += 1;
        match renameat(from, name, top, format!("{moved}").as_str()) {
            Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR | Errno::EINVAL) => {}
            done => return done,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use nix::sys::stat::mkdirat;

    use super::*;

    /// Makes folders that are each in the one before. Returns the deepest.
    pub(in crate::process) fn nest(path: &Path, depth: usize) -> OwnedFd {
        let mut deepest = open_path(path, Mode::S_IRWXU).expect("opened");
        for _ in 0..depth {
            mkdirat(&deepest, c"d", Mode::S_IRWXU).expect("a folder");
            deepest = open(deepest.as_fd(), c"d", Mode::S_IRWXU).expect("opened");
        }
        deepest
    }

    #[test]
    fn deep_tree_is_removed_with_few_descriptors() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().join("top");
        fs::create_dir(&top).expect("a folder");
        drop(nest(&top, 3_000));
        // Names that a moved folder would get.
        fs::write(top.join("1"), "").expect("written");
        fs::create_dir_all(top.join("2/x")).expect("folders");
        remove(&top).expect("removed");
        assert!(!top.exists());
        remove(&top).expect("nothing to remove");
    }

    #[test]
    fn folder_without_permissions_is_removed_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (top, kept) = (folder.path().join("top"), folder.path().join("kept"));
        fs::create_dir_all(top.join("a/b/c")).expect("folders");
        fs::create_dir(&kept).expect("a folder");
        fs::write(kept.join("file"), "").expect("written");
        symlink(&kept, top.join("link")).expect("a link");
        symlink(&kept, top.join("a/b/link")).expect("a link");
        for (closed, mode) in [("a/b/c", 0o000), ("a/b", 0o500), ("a", 0o300), ("", 0o000)] {
            let mode = Permissions::from_mode(mode);
            fs::set_permissions(top.join(closed), mode).expect("closed");
        }
        remove(&top).expect("removed");
        assert!(!top.exists() && kept.join("file").exists());
        symlink(&kept, &top).expect("a link");
        assert!(remove(&top).is_err(), "a link is no folder");
        assert!(kept.join("file").exists());
    }
}
