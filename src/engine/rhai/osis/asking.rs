//! The running job as the functions of OSIS see it: it asks the store, and waits on the script's
//! own thread, no longer than the job may run.

use std::sync::Arc;
use std::time::Duration;

use ::rhai::EvalAltResult;
use crossbeam_channel::RecvTimeoutError;

use crate::config::{OsisConfig, RhaiLimits};
use crate::engine::Objects;
use crate::engine::rhai::running::{Running, terminated, with};
use crate::proto::object::{Answer, Ask, Context, Write, Written};

/// How often a wait looks whether the job must end.
const SLICE: Duration = Duration::from_millis(50);

/// What the functions keep to, and where the objects are.
#[derive(Debug)]
pub(in crate::engine::rhai) struct Settings {
    pub(in crate::engine::rhai) limits: RhaiLimits,
    pub(in crate::engine::rhai) config: OsisConfig,
    /// None where scripts are only looked at.
    pub(in crate::engine::rhai) objects: Option<Arc<dyn Objects>>,
}

/// Why a function gives nothing.
pub(super) enum Failed {
    Why(String),
    /// The job itself must end, which no script can catch.
    Ended,
}

/// What the parts of a function give each other.
pub(super) type Outcome<T> = Result<T, Failed>;
/// What a function gives its script.
pub(super) type Answered<T> = Result<T, Box<EvalAltResult>>;

impl<E: ToString> From<E> for Failed {
    fn from(why: E) -> Self {
        Self::Why(why.to_string())
    }
}

pub(super) const UNEXPECTED: &str = "the store answered another question";

/// The job that runs on this thread.
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
) -> Answered<T> {
    let result = with(|running| match running.osis {
        Some(settings) => work(Job { running, settings }),
        None => Err("no job of osis runs here".into()),
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
    let mut shown: String =
        text.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().count() > SHOWN_CHARS_MAX {
        shown.push('…');
    }
    shown
}

impl Job<'_> {
    /// Asks, and waits for the answer or for the end of the job.
    pub(super) fn ask(self, ask: Ask) -> Outcome<Answer> {
        let Some(objects) = &self.settings.objects else {
            return Err(
                "there is no store of objects here: the script is not run by an actor".into()
            );
        };
        let context = self.context()?;
        let answer = objects.ask(&context, ask);
        loop {
            match answer.recv_timeout(SLICE) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => return Err(error.into()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the actor ends before the store has answered".into());
                }
                Err(RecvTimeoutError::Timeout) if self.running.look().is_some() => {
                    return Err(Failed::Ended);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn context(self) -> Outcome<Context> {
        let chosen = self.running.context.borrow();
        Ok(chosen.as_deref().unwrap_or(self.running.script.context_id).parse()?)
    }

    pub(super) fn write(self, writes: Vec<Write>) -> Outcome<Vec<Written>> {
        match self.ask(Ask::Write(writes))? {
            Answer::Written(written) => Ok(written),
            _ => Err(UNEXPECTED.into()),
        }
    }
}
