//! The running job as functions of scripts see it, and how they fail. What the functions of one
//! engine keep to is a part of it.

use std::io;

use ::rhai::EvalAltResult;

use super::running::{Running, terminated, with};
use crate::engine::process::reason;
use crate::proto::object::{ObjectError, QueryError};
use crate::proto::target::IllegalName;

/// What a function gives its script.
pub(super) type Answer<T> = Result<T, Box<EvalAltResult>>;

/// What the parts of a function give each other.
pub(super) type Outcome<T> = Result<T, Failed>;

/// Why a function gives nothing.
#[derive(Debug)]
pub(super) enum Failed {
    /// It failed, for this reason.
    Why(String),
    /// The job itself must end, which no script can catch.
    Ended,
}

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

impl From<IllegalName> for Failed {
    fn from(error: IllegalName) -> Self {
        Self::Why(error.to_string())
    }
}

impl From<QueryError> for Failed {
    fn from(error: QueryError) -> Self {
        Self::Why(error.to_string())
    }
}

impl From<ObjectError> for Failed {
    fn from(error: ObjectError) -> Self {
        Self::Why(error.to_string())
    }
}

/// The job that runs on this thread, and what its functions keep to.
pub(super) struct Job<'a, S> {
    pub(super) running: &'a Running<'a>,
    pub(super) settings: &'a S,
}

impl<S> Clone for Job<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Job<'_, S> {}

impl<S> Job<'_, S> {
    /// Fails if the job must end. For loops and waits that may take long.
    pub(super) fn look(self) -> Outcome<()> {
        if self.running.look().is_some() { Err(Failed::Ended) } else { Ok(()) }
    }
}

/// Does `work` with what `settings` finds in the job of this thread; an error names the operation
/// and its object.
pub(super) fn operation<S, T>(
    name: &str,
    object: &str,
    settings: impl for<'a> FnOnce(&'a Running<'_>) -> Option<&'a S>,
    work: impl FnOnce(Job<'_, S>) -> Outcome<T>,
) -> Answer<T> {
    let result = with(|running| match settings(running) {
        Some(settings) => work(Job { running, settings }),
        None => Err("no job that has this function runs here".into()),
    });
    match result.unwrap_or_else(|| Err("no job runs here".into())) {
        Ok(value) => Ok(value),
        Err(Failed::Ended) => Err(terminated().into()),
        Err(Failed::Why(why)) => {
            let object = shown(object);
            let space = if object.is_empty() { "" } else { " " };
            Err(format!("{name}{space}{object}: {why}").into())
        }
    }
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
