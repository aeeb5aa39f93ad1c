//! The running job as the functions of SAL see it: its folders, and the paths that it may use.

use std::path::{Path, PathBuf};

use ::rhai::Dynamic;

use super::access::{Settings, Use};
use crate::engine::process::{SYSTEM_PATH, reason};
use crate::engine::rhai::job;

pub(super) use job::{Answer, Failed, Outcome, shown};

/// The job that runs on this thread, and what it may do.
pub(super) type Job<'a> = job::Job<'a, Settings>;

/// Does `work`, with an error that names the operation and its object.
pub(super) fn operation<T>(
    name: &str,
    object: &str,
    work: impl FnOnce(Job<'_>) -> Outcome<T>,
) -> Answer<T> {
    job::operation(name, object, |running| running.sal, work)
}

impl<'a> Job<'a> {
    /// The script's own folder.
    pub(super) fn own_folder(self) -> Outcome<&'a Path> {
        let folder = self.running.scratch();
        folder
            .map_err(|error| format!("cannot make the script's folder: {}", reason(&error)).into())
    }

    /// Where the script's relative paths and its commands start.
    pub(super) fn folder(self) -> Outcome<PathBuf> {
        Ok(match self.running.folder() {
            Some(folder) => folder,
            None => self.own_folder()?.to_owned(),
        })
    }

    /// A path that may be read.
    pub(super) fn to_read(self, path: &str) -> Outcome<PathBuf> {
        self.allowed(path, Use::Read, true)
    }

    /// A path that may be written, a link by where it leads.
    pub(super) fn to_write(self, path: &str) -> Outcome<PathBuf> {
        self.allowed(path, Use::Write, true)
    }

    /// A path of which the entry itself may be changed: made, moved or removed.
    pub(super) fn to_change(self, path: &str) -> Outcome<PathBuf> {
        self.allowed(path, Use::Write, false)
    }

    fn allowed(self, path: &str, of: Use, follow_last: bool) -> Outcome<PathBuf> {
        if path.is_empty() {
            return Err("the path is empty".into());
        }
        if path.contains('\0') {
            return Err("the path holds a NUL".into());
        }
        let path = self.folder()?.join(path);
        self.settings.check(&path, self.own_folder()?, of, follow_last)?;
        Ok(path)
    }

    /// Where this job's programs are looked for.
    pub(super) fn search_path(self) -> &'a str {
        self.running.script.env.get("PATH").map_or(SYSTEM_PATH, String::as_str)
    }
}

/// A path as scripts see it.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A value of text, or unit for none.
pub(super) fn or_unit(text: Option<String>) -> Dynamic {
    text.map_or(Dynamic::UNIT, Into::into)
}
