//! The job as script functions see it: its run, the settings of the functions, and their errors.

use std::io;
use std::sync::mpsc::Receiver;

use ::rhai::EvalAltResult;

use super::run::{ScriptRun, terminated, with};
use crate::error::reason;
use crate::proto::object::{ObjectError, QueryError};
use crate::proto::target::IllegalName;

pub(crate) type RhaiResult<T> = Result<T, Box<EvalAltResult>>;

pub(crate) type CallResult<T> = Result<T, CallError>;

#[derive(Debug)]
pub(crate) enum CallError {
    /// The call failed, for this reason; the script can catch it.
    Failed(String),
    /// The job must end; no script can catch this.
    JobEnded,
}

impl From<String> for CallError {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        Self::Failed(reason(&error))
    }
}

impl From<nix::errno::Errno> for CallError {
    fn from(error: nix::errno::Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// Errors that are reported as they print.
macro_rules! told {
    ($($error:ty),*) => { $(
        impl From<$error> for CallError {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        }
    )* };
}

told!(&str, IllegalName, QueryError, ObjectError);

/// The job of this thread with the settings `S` of the functions that it calls.
pub(crate) struct JobContext<'a, S> {
    pub(crate) run: &'a ScriptRun<'a>,
    pub(crate) settings: &'a S,
}

impl<S> Clone for JobContext<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for JobContext<'_, S> {}

impl<S> JobContext<'_, S> {
    /// Fails if the job must end. For loops and waits that may take long.
    pub(crate) fn check_stop(self) -> CallResult<()> {
        if self.run.check_now().is_some() { Err(CallError::JobEnded) } else { Ok(()) }
    }

    /// Waits for an answer until the job must end; `disconnected` is the error if none can come.
    pub(crate) fn receive<T>(self, answers: &Receiver<T>, disconnected: &str) -> CallResult<T> {
        let answer = self.run.receive(answers).map_err(|_| CallError::JobEnded)?;
        answer.ok_or_else(|| disconnected.into())
    }
}

/// Runs `work` with the settings that `settings` selects. An error gets the operation and its object in front.
pub(crate) fn operation<S, T>(
    name: &str,
    object: &str,
    settings: impl for<'a> FnOnce(&'a ScriptRun<'_>) -> Option<&'a S>,
    work: impl FnOnce(JobContext<'_, S>) -> CallResult<T>,
) -> RhaiResult<T> {
    let result = with(|run| match settings(run) {
        Some(settings) => work(JobContext { run, settings }),
        None => Err("this script type does not have this function".into()),
    });
    match result.unwrap_or_else(|| Err("no job runs on this thread".into())) {
        Ok(value) => Ok(value),
        Err(CallError::JobEnded) => Err(terminated().into()),
        Err(CallError::Failed(reason)) => {
            let object = excerpt(object);
            let space = if object.is_empty() { "" } else { " " };
            Err(format!("{name}{space}{object}: {reason}").into())
        }
    }
}

/// Returns the first line of a script's text, escaped and short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let mut excerpt: String = line.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if line.len() < text.len() || line.chars().count() > CHARS_MAX {
        excerpt.push('…');
    }
    excerpt
}
