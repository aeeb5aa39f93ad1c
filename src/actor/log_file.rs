//! Opens the log file that a job names, inside the log folder and nowhere else.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mkdirat};

use crate::proto::job::InvalidJob;

/// Readable by the group, which operators are in; not by others.
const FILE_MODE: Mode = Mode::from_bits_truncate(0o640);
const FOLDER_MODE: Mode = Mode::from_bits_truncate(0o750);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoLogFile {
    /// The job must not have it.
    #[error(transparent)]
    Invalid(InvalidJob),
    /// The job can run without.
    #[error("{0}")]
    Unavailable(String),
}

#[derive(Debug, Clone)]
pub(super) struct LogFolder {
    pub(super) path: PathBuf,
    /// A file of this size, in bytes, gets no further lines.
    pub(super) file_size_max: u64,
    /// The most files and folders in it.
    pub(super) files_max: u64,
}

impl LogFolder {
    /// A folder with room.
    #[cfg(test)]
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), file_size_max: 1000, files_max: 1000 }
    }

    /// Refuses a new file if there are too many.
    fn has_room_for(&self, inside: &Path) -> Result<(), NoLogFile> {
        let most = self.files_max;
        if self.path.join(inside).symlink_metadata().is_ok() || entries(&self.path, most) < most {
            return Ok(());
        }
        let reason = format!(
            "{} has {most} files and folders, as many as job.log_files_max allows",
            self.path.display()
        );
        Err(NoLogFile::Unavailable(reason))
    }
}

/// Counts the files and folders below a folder, up to a number. No link is followed.
fn entries(folder: &Path, most: u64) -> u64 {
    let (mut folders, mut number) = (vec![folder.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            number += 1;
            if number >= most {
                return number;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    number
}

/// Opens the log file that a job names, for appending. `log_path` is relative to the folder, or
/// absolute and inside it; missing folders below it are created.
///
/// # Errors
/// [`NoLogFile::Invalid`] names `log_path` if it leads out of the folder, by `..` or by a link, is no
/// regular file, or cannot be opened. [`NoLogFile::Unavailable`] if a bound of the folder is reached.
pub(super) fn open_in(of: &LogFolder, log_path: &str) -> Result<File, NoLogFile> {
    let folder = of.path.as_path();
    let refused = |reason: String| NoLogFile::Invalid(InvalidJob::new("log_path", reason));
    let inside = relative(folder, log_path).ok_or_else(|| {
        let shown: String = log_path.chars().take(200).flat_map(char::escape_debug).collect();
        refused(format!("`{shown}` is not inside {}", folder.display()))
    })?;
    let failed = |error: Errno| {
        let reason = io::Error::from(error);
        refused(format!("cannot be opened in {}: {reason}", folder.display()))
    };
    of.has_room_for(&inside)?;
    let base = OFlag::O_DIRECTORY | OFlag::O_PATH | OFlag::O_CLOEXEC;
    let base = open(folder, base, Mode::empty()).map_err(failed)?;
    let file = File::from(open_below(base, &inside).map_err(failed)?);
    match file.metadata() {
        Ok(metadata) if metadata.is_file() && metadata.len() < of.file_size_max => Ok(file),
        Ok(metadata) if metadata.is_file() => Err(NoLogFile::Unavailable(format!(
            "it has {} bytes, and job.log_file_size_max allows {}",
            metadata.len(),
            of.file_size_max
        ))),
        _ => Err(refused("is not a regular file".to_owned())),
    }
}

/// Returns the path below the folder; `None` if it has parts other than plain names.
fn relative(folder: &Path, log_path: &str) -> Option<PathBuf> {
    let path = Path::new(log_path);
    let inside = if path.is_absolute() { path.strip_prefix(folder).ok()? } else { path };
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    let legal = plain && inside.file_name().is_some() && !log_path.ends_with('/');
    legal.then(|| inside.to_owned())
}

/// Opens a file below `folder` one step at a time and follows no link, so that nothing can be
/// swapped in between. (`openat2` does the same in one call, but a service with systemd's
/// `RestrictSUIDSGID=` cannot make it.)
fn open_below(mut folder: OwnedFd, inside: &Path) -> nix::Result<OwnedFd> {
    for part in inside.parent().into_iter().flatten() {
        match mkdirat(&folder, part, FOLDER_MODE) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error),
        }
        let flags = OFlag::O_DIRECTORY | OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        folder = openat(&folder, part, flags, Mode::empty())?;
    }
    // Without O_NONBLOCK, opening a pipe would wait for a reader.
    let flags = OFlag::O_WRONLY
        | OFlag::O_CREAT
        | OFlag::O_APPEND
        | OFlag::O_NOFOLLOW
        | OFlag::O_CLOEXEC
        | OFlag::O_NONBLOCK;
    openat(&folder, inside.file_name().unwrap_or_default(), flags, FILE_MODE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn folder_has_as_many_files_and_each_file_as_many_bytes_as_allowed() {
        let folder = folder();
        let bounded = LogFolder { file_size_max: 8, files_max: 3, ..LogFolder::at(folder.path()) };
        let unavailable = |path: &str| match open_in(&bounded, path) {
            Err(NoLogFile::Unavailable(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let mut file = open_in(&bounded, "a/one").expect("there is room");
        file.write_all(b"4444").expect("written");
        open_in(&bounded, "two").expect("there is room");
        assert!(unavailable("three").contains("job.log_files_max"), "a folder counts too");
        assert!(unavailable("b/three").contains("job.log_files_max"));
        assert!(!folder.path().join("b").exists());
        let mut file = open_in(&bounded, "a/one").expect("it has room");
        file.write_all(b"4444").expect("written");
        assert!(unavailable("a/one").contains("8 bytes, and job.log_file_size_max"));
    }

    #[test]
    fn log_file_is_created_inside_the_folder_and_appended_to() {
        let folder = folder();
        for line in ["one\n", "two\n"] {
            let mut file = open_in(&LogFolder::at(folder.path()), "a/b/job.log").expect("opens");
            file.write_all(line.as_bytes()).expect("written");
        }
        let path = folder.path().join("a/b/job.log");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "one\ntwo\n");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o137, 0, "not for others, not executable");
        let absolute = path.to_str().expect("UTF-8");
        assert!(open_in(&LogFolder::at(folder.path()), absolute).is_ok());
    }

    #[test]
    fn path_outside_the_folder_is_rejected() {
        let folder = folder();
        let outside = tempfile::tempdir().expect("a folder");
        symlink(outside.path(), folder.path().join("link")).expect("a link");
        symlink(outside.path().join("f"), folder.path().join("file")).expect("a link");
        for path in
            ["../x", "a/../../x", "/etc/passwd", "link/x", "file", "", ".", "a/", "a/./b/.."]
        {
            let error = open_in(&LogFolder::at(folder.path()), path).expect_err(path);
            let names_it = |of: &InvalidJob| of.field == "log_path";
            assert!(matches!(&error, NoLogFile::Invalid(of) if names_it(of)), "{path}: {error}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).expect("readable").count(), 0);
    }

    #[test]
    fn pipe_and_device_in_the_folder_are_rejected_at_once() {
        let folder = folder();
        nix::unistd::mkfifo(&folder.path().join("pipe"), FILE_MODE).expect("a pipe");
        assert!(open_in(&LogFolder::at(folder.path()), "pipe").is_err());
        assert!(open_in(&LogFolder::at(Path::new("/dev")), "full").is_err());
    }
}
