//! The log file of a job, for jobs that name one: inside the log folder and nowhere else.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

use crate::proto::job::InvalidJob;

/// Readable by the group, which operators are in; not by others.
const FILE_MODE: Mode = Mode::from_raw_mode(0o640);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o750);

/// Opens the log file that a job names, for appending. `log_path` is relative to `folder`, or
/// absolute and inside it; folders below it are made as needed.
///
/// # Errors
/// [`InvalidJob`] names `log_path` if it leads out of the folder, by `..` or by a link, or cannot
/// be opened.
pub(super) fn open_in(folder: &Path, log_path: &str) -> Result<File, InvalidJob> {
    let refused = |reason: String| InvalidJob::new("log_path", reason);
    let inside = relative(folder, log_path).ok_or_else(|| {
        let shown: String = log_path.chars().take(200).flat_map(char::escape_debug).collect();
        refused(format!("`{shown}` is not inside {}", folder.display()))
    })?;
    let failed = |error: rustix::io::Errno| {
        refused(format!(
            "cannot be opened in {}: {}",
            folder.display(),
            std::io::Error::from(error)
        ))
    };
    let base = open(folder, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed)?;
    let file = open_below(base, &inside).map_err(failed)?;
    let file = File::from(file);
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        _ => Err(refused("is no plain file".to_owned())),
    }
}

/// The path below the folder, of plain names only.
fn relative(folder: &Path, log_path: &str) -> Option<PathBuf> {
    let path = Path::new(log_path);
    let inside = if path.is_absolute() { path.strip_prefix(folder).ok()? } else { path };
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    let legal = plain && inside.file_name().is_some() && !log_path.ends_with('/');
    legal.then(|| inside.to_owned())
}

/// Opens a file some folders below `folder`, one step at a time and following no link at any of
/// them, so that nothing can be swapped in between. (`openat2` does the same in one call, but a
/// service with systemd's `RestrictSUIDSGID=` cannot make it.)
fn open_below(mut folder: OwnedFd, inside: &Path) -> rustix::io::Result<OwnedFd> {
    for part in inside.parent().into_iter().flatten() {
        match mkdirat(&folder, part, FOLDER_MODE) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = openat(&folder, part, flags, Mode::empty())?;
    }
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NONBLOCK;
    openat(&folder, inside.file_name().unwrap_or_default(), flags, FILE_MODE)
}

/// Appends one line. A full disk must not end the job; what could not be written is in the live
/// log all the same.
pub(super) fn append(file: &mut File, line: &str) {
    let _ = file.write_all(&[line.as_bytes(), b"\n"].concat());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn a_log_file_is_made_inside_the_folder_and_appended_to() {
        let folder = folder();
        for line in ["one", "two"] {
            append(&mut open_in(folder.path(), "a/b/job.log").expect("opens"), line);
        }
        let path = folder.path().join("a/b/job.log");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "one\ntwo\n");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o137, 0, "not for others, not to run");
        let absolute = path.to_str().expect("UTF-8");
        assert!(open_in(folder.path(), absolute).is_ok());
    }

    #[test]
    fn nothing_outside_the_folder_is_opened() {
        let folder = folder();
        let outside = tempfile::tempdir().expect("a folder");
        symlink(outside.path(), folder.path().join("link")).expect("a link");
        symlink(outside.path().join("f"), folder.path().join("file")).expect("a link");
        for path in
            ["../x", "a/../../x", "/etc/passwd", "link/x", "file", "", ".", "a/", "a/./b/.."]
        {
            let error = open_in(folder.path(), path).expect_err(path);
            assert_eq!(error.field, "log_path", "{path}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_pipe_in_the_folder_neither_blocks_nor_is_written_to() {
        let folder = folder();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, FILE_MODE, 0).expect("a pipe");
        assert!(open_in(folder.path(), "pipe").is_err());
    }
}
