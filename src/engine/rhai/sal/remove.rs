//! Removes files and whole folders, by descriptors: a link that is put in the way while it runs
//! leads nowhere else.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::context::{CallResult, SalJob};

/// Each level of folders holds a descriptor open.
const FOLDERS_DEEP_MAX: usize = 200;

/// Removes what is at the path, a folder with all that is in it; a link, not what it leads to.
pub(super) fn remove(job: SalJob<'_>, path: &Path) -> CallResult<()> {
    if is_root(path) {
        return Err("the root is not deleted".into());
    }
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(data) if FileType::from_raw_mode(data.st_mode) == FileType::Directory => {
            remove_folder(job, CWD, path, FOLDERS_DEEP_MAX)
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
        return Err(format!("its folders nest deeper than {FOLDERS_DEEP_MAX}").into());
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

/// Some file systems do not say with the entry what it is.
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
    fn the_root_is_known_by_any_of_its_names() {
        for path in ["/", "//", "/.", "/..", "/tmp/.."] {
            assert!(is_root(Path::new(path)), "{path}");
        }
        assert!(!is_root(Path::new("/tmp")) && !is_root(Path::new("/no/such")));
    }
}
