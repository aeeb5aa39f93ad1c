//! Removes files and folders by descriptors, so a symbolic link that appears meanwhile is not
//! followed.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::context::{CallResult, SalJob};

/// The nesting limit of folders: each level keeps a descriptor open.
const FOLDER_DEPTH_MAX: usize = 200;

/// Removes a file, a folder with its content, or a link itself.
pub(super) fn remove(job: SalJob<'_>, path: &Path) -> CallResult<()> {
    if is_root(path) {
        return Err("the root folder cannot be deleted".into());
    }
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(data) if FileType::from_raw_mode(data.st_mode) == FileType::Directory => {
            remove_folder(job, CWD, path, FOLDER_DEPTH_MAX)
        }
        Ok(_) => Ok(unlinkat(CWD, path, AtFlags::empty())?),
    }
}

fn is_root(path: &Path) -> bool {
    path.parent().is_none() || path.canonicalize().is_ok_and(|real| real.parent().is_none())
}

fn remove_folder(
    job: SalJob<'_>,
    parent: impl AsFd,
    name: impl Arg + Copy,
    depth_left: usize,
) -> CallResult<()> {
    if depth_left == 0 {
        return Err(format!("folders are nested deeper than {FOLDER_DEPTH_MAX}").into());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder: OwnedFd = openat(&parent, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&folder)? {
        job.check_stop()?;
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if is_folder(&folder, name, entry.file_type())? {
            remove_folder(job, &folder, name, depth_left - 1)?;
        } else {
            unlinkat(&folder, name, AtFlags::empty())?;
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Returns whether an entry is a folder; some file systems do not store the type in the entry.
fn is_folder(folder: &OwnedFd, name: &CStr, kind: FileType) -> CallResult<bool> {
    if kind != FileType::Unknown {
        return Ok(kind == FileType::Directory);
    }
    let data = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(data.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_recognized_in_every_spelling() {
        for path in ["/", "//", "/.", "/..", "/tmp/.."] {
            assert!(is_root(Path::new(path)), "{path}");
        }
        assert!(!is_root(Path::new("/tmp")) && !is_root(Path::new("/no/such")));
    }
}
