//! The running job as the functions of SAL see it, and how they fail.

use std::io;
use std::path::{Path, PathBuf};

use ::rhai::{Dynamic, EvalAltResult};

use super::access::{Settings, Use};
use crate::engine::process::{SYSTEM_PATH, reason};
use crate::engine::rhai::running::{Running, terminated, with};

/// What a function gives its script.
pub(super) type Answer<T> = Result<T, Box<EvalAltResult>>;

/// Why a function gives nothing.
#[derive(Debug)]
pub(super) enum Failed {
    /// It failed, for this reason.
    Why(String),
    /// The job itself must end, which no script can catch.
    Ended,
}

/// What the parts of a function give each other.
pub(super) type Outcome<T> = Result<T, Failed>;

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self::Why(why)
    }
}

impl From<&str> for Failed {
    fn from(why: &str) -> Self {
        Self::Why(why.to_owned())
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Why(reason(&error))
    }
}

impl From<rustix::io::Errno> for Failed {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// The job that runs on this thread, and what it may do.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) running: &'a Running<'a>,
    pub(super) settings: &'a Settings,
}

/// Does `work`, with an error that names the operation and its object.
pub(super) fn operation<T>(
    name: &str,
    object: &str,
    work: impl FnOnce(Job<'_>) -> Outcome<T>,
) -> Answer<T> {
    let result = with(|running| match running.sal {
        Some(settings) => work(Job { running, settings }),
        None => Err("no job of SAL runs here".into()),
    });
    let object = shown(object);
    let named = if object.is_empty() { name.to_owned() } else { format!("{name} {object}") };
    match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(Failed::Why(why))) => Err(format!("{named}: {why}").into()),
        Some(Err(Failed::Ended)) => Err(terminated().into()),
        None => Err(format!("{named}: no job runs here").into()),
    }
}

impl<'a> Job<'a> {
    /// Fails if the job must end. For loops that may take long.
    pub(super) fn look(self) -> Outcome<()> {
        if self.running.look().is_some() { Err(Failed::Ended) } else { Ok(()) }
    }

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

/// The start of a text from the script, safe and short enough for a message.
pub(super) fn shown(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 80;
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String =
        line.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
    if line.len() < text.len() || line.chars().count() > SHOWN_CHARS_MAX {
        shown.push('…');
    }
    shown
}
