//! The running job as the functions of OSIS see it: it asks the store, and waits on the script's
//! own thread, no longer than the job may run.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::config::{OsisConfig, RhaiLimits};
use crate::engine::Objects;
use crate::engine::rhai::job;
use crate::proto::object::{Answer, Ask, Context, Write, Written};

pub(super) use job::{Answer as Answered, Failed, Outcome, shown};

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

pub(super) const UNEXPECTED: &str = "the store answered another question";

/// The job that runs on this thread.
pub(super) type Job<'a> = job::Job<'a, Settings>;

/// Does `work`, with an error that names the operation and its object.
pub(super) fn operation<T>(
    name: &str,
    object: &str,
    work: impl FnOnce(Job<'_>) -> Outcome<T>,
) -> Answered<T> {
    job::operation(name, object, |running| running.osis, work)
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
                Err(RecvTimeoutError::Timeout) => self.look()?,
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
