//! The files of the modules that a parent has imported: once one changes, another parent is started.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The shortest time between two looks at the files.
const LOOK_EACH: Duration = Duration::from_millis(500);

/// The files as they were after the import.
#[derive(Debug, Default)]
pub(super) struct ModuleFiles {
    files: Vec<(PathBuf, FileState)>,
    looked_at: Mutex<Option<Instant>>,
}

/// The device, inode, size and time of the last change: some of these change with the content.
type FileState = (u64, u64, u64, (i64, i64));

impl ModuleFiles {
    /// Looks at files.
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let files = paths.map(PathBuf::from).filter_map(|path| Some((state(&path)?, path)));
        Self { files: files.map(|(state, path)| (path, state)).collect(), ..Self::default() }
    }

    /// Returns a file that has changed or is gone. Looks twice a second at most.
    pub(super) fn changed(&self) -> Option<&PathBuf> {
        {
            let mut looked_at = self.looked_at.lock().ok()?;
            if looked_at.is_some_and(|at| at.elapsed() < LOOK_EACH) {
                return None;
            }
            *looked_at = Some(Instant::now());
        }
        let is_changed = |(path, before): &&(PathBuf, FileState)| state(path) != Some(*before);
        self.files.iter().find(is_changed).map(|(path, _)| path)
    }
}

fn state(path: &PathBuf) -> Option<FileState> {
    let of = metadata(path).ok()?;
    Some((of.dev(), of.ino(), of.size(), (of.mtime(), of.mtime_nsec())))
}
