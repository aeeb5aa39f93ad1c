//! Removes files and folders by descriptors, so that no symbolic link that appears meanwhile is followed.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::NixPath;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::context::{CallResult, SalJob};

/// The nesting limit of folders: each level keeps a descriptor open.
const FOLDER_DEPTH_MAX: usize = 200;

pub(super) fn remove(job: SalJob<'_>, path: &Path) -> CallResult<()> {
    if is_root(path) {
        return Err("the root folder cannot be deleted".into());
    }
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(data) if data.is_dir() => remove_folder(job, AT_FDCWD, path, FOLDER_DEPTH_MAX),
        Ok(_) => Ok(fs::remove_file(path)?),
    }
}

fn is_root(path: &Path) -> bool {
    path.parent().is_none() || path.canonicalize().is_ok_and(|real| real.parent().is_none())
}

fn remove_folder(
    job: SalJob<'_>,
    parent: impl AsFd,
    name: &(impl NixPath + ?Sized),
    depth_left: usize,
) -> CallResult<()> {
    if depth_left == 0 {
        return Err(format!("folders are nested deeper than {FOLDER_DEPTH_MAX}").into());
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let folder: OwnedFd = openat(&parent, name, flags, Mode::empty())?;
    for entry in Dir::from_fd(folder.try_clone()?)?.iter() {
        job.check_stop()?;
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        match unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::EISDIR) => remove_folder(job, &folder, name, depth_left - 1)?,
            done => done?,
        }
    }
    Ok(unlinkat(parent, name, UnlinkatFlags::RemoveDir)?)
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
