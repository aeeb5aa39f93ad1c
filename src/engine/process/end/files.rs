//! Collects the files that a script has left. Everything in the folder is the script's own: a name may be anything, and
//! an entry may be a link, a device or a pipe. Only regular files are read, through their folder. The log
//! and the job name the entries that are not kept.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use crate::artifacts::{ArtifactError, Contents};
use crate::engine::process::prepare::WAY_TO_OUTPUT;
use crate::engine::process::tree;
use crate::engine::{Log, Stream};
use crate::proto::job::{FileBody, FileName, JobFiles, NamedFiles};
use crate::proto::text::shown;

const NOTES_MAX: usize = 10;

#[derive(Debug, Default)]
pub(in crate::process) struct Collected {
    pub(in crate::process) files: NamedFiles,
    /// The entries that are not, with their reasons, on one line; empty if all are kept.
    pub(in crate::process) not_kept: String,
    /// True if some are not kept that could be: they exceed a bound, or cannot be stored.
    pub(in crate::process) lacks_some: bool,
}

struct RejectedFile {
    why: String,
    /// True if the entry is a file like those that are kept.
    is_lost: bool,
}

impl From<String> for RejectedFile {
    fn from(why: String) -> Self {
        Self { why, is_lost: false }
    }
}

/// Returns the files that the script left in its folder for them, at most [`JobFiles::COUNT_MAX`] with
/// `bytes_max` bytes in memory; larger ones are in the folder of contents, if there is one. `home` is the
/// folder of its job, into which nobody writes any more.
pub(in crate::process) fn collect(
    home: &Path,
    bytes_max: u64,
    contents: &Contents,
    log: &dyn Log,
) -> Collected {
    let mut collected = Collected::default();
    let files = &mut collected.files;
    let mut notes = Vec::new();
    let (mut names, opened) = match listed(home) {
        Ok(listed) => listed,
        Err(error) => {
            let note = format!("no file of HERO_OUTPUT_DIR is kept: {}", error.desc());
            log.line(Stream::Stderr, &note);
            return Collected { not_kept: note, ..collected };
        }
    };
    names.sort();
    if names.len() > JobFiles::COUNT_MAX {
        notes.push(format!(
            "HERO_OUTPUT_DIR has more than {} files: some are not kept",
            JobFiles::COUNT_MAX
        ));
        names.truncate(JobFiles::COUNT_MAX);
        collected.lacks_some = true;
    }
    let mut room = bytes_max;
    for name in &names {
        match read(opened.as_fd(), name, (contents, room)) {
            Ok((name, content)) => {
                room = room.saturating_sub(content.redis_bytes());
                files.insert(name, content);
            }
            Err(RejectedFile { why, is_lost }) => {
                let name = String::from_utf8_lossy(name.to_bytes());
                notes.push(format!("the file `{}` is not kept: {why}", shown(&name)));
                collected.lacks_some |= is_lost;
            }
        }
    }
    let more = notes.len().saturating_sub(NOTES_MAX);
    notes.truncate(NOTES_MAX);
    if more > 0 {
        notes.push(format!("{more} more files are not kept"));
    }
    for note in &notes {
        log.line(Stream::Stderr, note);
    }
    collected.not_kept = notes.join("; ");
    collected
}

/// Opens the folder, step by step, as the script may have replaced each by a link. Returns some of its names.
fn listed(home: &Path) -> nix::Result<(Vec<CString>, OwnedFd)> {
    let mut folder = tree::open_path(home, Mode::S_IRWXU)?;
    for name in WAY_TO_OUTPUT {
        folder = tree::open(folder.as_fd(), name, Mode::S_IRWXU)?;
    }
    Ok((tree::names(folder.as_fd(), JobFiles::COUNT_MAX + 1)?, folder))
}

fn read(
    folder: BorrowedFd<'_>,
    name: &CStr,
    (contents, room): (&Contents, u64),
) -> Result<(FileName, FileBody), RejectedFile> {
    let legal = || name.to_str().ok()?.parse::<FileName>().ok();
    let legal = legal().ok_or_else(|| format!("its name is not legal: {}", FileName::FORM))?;
    // A pipe or a device does not block, and is not read.
    let flags = OFlag::O_RDONLY
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_NOCTTY
        | OFlag::O_CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty()).map_err(|error| match error {
        Errno::ELOOP => "it is a link".to_owned(),
        error => error.desc().to_lowercase(),
    })?;
    let mut file = File::from(opened);
    let data = file.metadata().map_err(|error| error.to_string())?;
    if data.is_dir() {
        return Err("it is a folder".to_owned().into());
    }
    if !data.is_file() {
        return Err("it is not a regular file".to_owned().into());
    }
    // Another name of a file that the script may not read.
    if data.nlink() != 1 {
        return Err("it has another name".to_owned().into());
    }
    let content = contents.take(&mut file, room).map_err(|error| {
        let bytes = data.len();
        let why = match error {
            ArtifactError::TooLarge { bytes_max, key } => {
                let (of_all, remedy) = if key == "job.files_size_max" {
                    (
                        "with the files before it ",
                        "; for larger files set artifacts.dir, see hero.toml(5)",
                    )
                } else {
                    ("", "")
                };
                format!("it has {bytes} bytes, {of_all}more than {key} ({bytes_max}){remedy}")
            }
            error => error.to_string(),
        };
        RejectedFile { why, is_lost: true }
    })?;
    Ok((legal, content))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::sync::Mutex;

    use nix::unistd::mkfifo;

    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Log for Lines {
        fn line(&self, _: Stream, line: &str) {
            self.0.lock().expect("a lock").push(line.to_owned());
        }
    }

    /// A folder of a job, with the folder for its files.
    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().expect("a folder");
        let output = home.path().join("hero/output");
        std::fs::create_dir_all(&output).expect("folders");
        (home, output)
    }

    fn collected(home: &Path, bytes_max: u64) -> (Vec<String>, Vec<String>) {
        let log = Lines::default();
        let contents = Contents::of(&crate::config::JobConfig::default());
        let collected = collect(home, bytes_max, &contents, &log);
        let kept = collected.files.keys().map(ToString::to_string).collect();
        let notes = log.0.into_inner().expect("a lock");
        assert_eq!(
            collected.not_kept,
            notes.join("; "),
            "the job names the files that the log names"
        );
        (kept, notes)
    }

    #[test]
    fn only_regular_files_of_the_folder_itself_are_kept() {
        let (home, folder) = home();
        let at = |name: &str| folder.join(name);
        for name in ["good.csv", ".hidden", "-rf", "a\nb", "twice"] {
            std::fs::write(at(name), "12345").expect("written");
        }
        std::fs::hard_link(at("twice"), at("again")).expect("a link");
        symlink("/etc/passwd", at("link")).expect("a link");
        symlink("good.csv", at("near")).expect("a link");
        mkfifo(&at("pipe"), Mode::S_IRWXU).expect("a pipe");
        std::fs::create_dir(at("below")).expect("a folder");
        let (kept, notes) = collected(home.path(), 100);
        assert_eq!(kept, ["good.csv"]);
        assert_eq!(notes.len(), 9, "{notes:?}");
        for why in [
            "the file `pipe` is not kept: it is not a regular file",
            "the file `link` is not kept: it is a link",
            "the file `below` is not kept: it is a folder",
            "the file `twice` is not kept: it has another name",
        ] {
            assert!(notes.iter().any(|note| note == why), "{why}: {notes:?}");
        }
    }

    #[test]
    fn files_over_the_bounds_are_left_out_and_said() {
        let (home, folder) = home();
        for number in 0..3 {
            std::fs::write(folder.join(format!("f{number}")), "1234").expect("written");
        }
        let (kept, notes) = collected(home.path(), 9);
        assert_eq!((kept.len(), notes.len()), (2, 1));
        let why = "it has 4 bytes, with the files before it more than job.files_size_max (8388608); for larger files \
                   set artifacts.dir, see hero.toml(5)";
        assert_eq!(notes[0], format!("the file `f2` is not kept: {why}"));
        let contents = Contents::of(&crate::config::JobConfig::default());
        assert!(collect(home.path(), 9, &contents, &Lines::default()).lacks_some);
        for number in 0..100 {
            std::fs::write(folder.join(format!("g{number}")), "").expect("written");
        }
        let (kept, notes) = collected(home.path(), 100);
        assert_eq!((kept.len(), notes.len()), (64, 1), "{notes:?}");
    }

    #[test]
    fn replaced_or_closed_folder_is_no_escape() {
        let elsewhere = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(elsewhere.path().join("output")).expect("a folder");
        std::fs::write(elsewhere.path().join("output/secret"), "1").expect("written");
        let (home, folder) = home();
        std::fs::remove_dir(&folder).expect("removed");
        assert_eq!(collected(home.path(), 100).1.len(), 1, "it is gone");
        symlink(elsewhere.path().join("output"), &folder).expect("a link");
        let (kept, notes) = collected(home.path(), 100);
        assert_eq!((kept.len(), notes.len()), (0, 1));
        std::fs::remove_dir_all(home.path().join("hero")).expect("removed");
        symlink(elsewhere.path(), home.path().join("hero")).expect("a link");
        let (kept, notes) = collected(home.path(), 100);
        assert_eq!((kept.len(), notes.len()), (0, 1));
        std::fs::remove_file(home.path().join("hero")).expect("removed");
        std::fs::create_dir_all(&folder).expect("folders");
        std::fs::write(folder.join("a"), "1").expect("written");
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o0)).expect("closed");
        assert_eq!(collected(home.path(), 100).0, ["a"]);
    }
}
