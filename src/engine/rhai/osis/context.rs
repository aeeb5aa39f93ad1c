//! The job as the functions of `osis` see it: it sends requests to the store and waits for the
//! answers on the script's own thread, until the job must end.

use crate::engine::rhai::runtime::context::{self, JobContext};
use crate::engine::rhai::runtime::settings::OsisSettings;
use crate::proto::object::{Answer, Ask, Context, Write, Written};

pub(super) use context::{CallError, CallResult, RhaiResult, excerpt};

pub(super) const UNEXPECTED: &str = "unexpected answer from the store";

/// The job of this thread.
pub(super) type OsisJob<'a> = JobContext<'a, OsisSettings>;

/// Runs `work`; an error gets the names of the operation and its object in front.
pub(super) fn operation<T>(
    name: &str,
    object: &str,
    work: impl FnOnce(OsisJob<'_>) -> CallResult<T>,
) -> RhaiResult<T> {
    context::operation(name, object, |run| run.osis, work)
}

impl OsisJob<'_> {
    /// Sends a request and waits for its answer.
    pub(super) fn ask(self, ask: Ask) -> CallResult<Answer> {
        let Some(objects) = &self.settings.objects else {
            return Err("no object store: the script does not run in an actor".into());
        };
        let answers = objects.ask(&self.context()?, ask);
        Ok(self.receive(&answers, "the actor stopped before the store answered")??)
    }

    fn context(self) -> CallResult<Context> {
        let chosen = self.run.context.borrow();
        Ok(chosen.as_deref().unwrap_or(self.run.script.context_id).parse()?)
    }

    pub(super) fn write(self, writes: Vec<Write>) -> CallResult<Vec<Written>> {
        match self.ask(Ask::Write(writes))? {
            Answer::Written(written) => Ok(written),
            _ => Err(UNEXPECTED.into()),
        }
    }
}
