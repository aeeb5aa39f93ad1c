//! The job as the functions of `osis` see it: it sends requests to the store and waits for the
//! answers on the script's own thread, until the job must end.

use crate::engine::Backends;
use crate::engine::rhai::runtime::context::{self, JobContext};
use crate::proto::object::{
    Answer, Ask, Change, Context, ObjectError, ObjectId, ObjectType, Right, Write, Written,
};

pub(super) use context::{CallError, CallResult, RhaiResult, excerpt};

pub(super) const UNEXPECTED: &str = "unexpected answer from the store";

pub(super) type OsisJob<'a> = JobContext<'a, Backends>;

pub(super) fn operation<T>(
    name: &str,
    object: &str,
    work: impl FnOnce(OsisJob<'_>) -> CallResult<T>,
) -> RhaiResult<T> {
    context::operation(name, object, |run| run.osis, work)
}

impl OsisJob<'_> {
    pub(super) fn ask(self, ask: Ask) -> CallResult<Answer> {
        Ok(self.try_ask(ask)??)
    }

    /// As [`OsisJob::ask`], with the error of the store apart. Every request comes through here: it
    /// is checked against the declared types and the rights on them.
    fn try_ask(self, ask: Ask) -> CallResult<Result<Answer, ObjectError>> {
        let (right, types) = ask.needs();
        for object_type in types {
            self.check_right(object_type, right)?;
        }
        if let Ask::Write(writes) = &ask {
            writes.iter().try_for_each(|write| self.check_schema(write))?;
        }
        let Some(objects) = &self.settings.objects else {
            return Err("no object store: the script does not run in an actor".into());
        };
        let answers = objects.ask(&self.context()?, ask);
        self.receive(&answers, "the actor stopped before the store answered")
    }

    /// Returns whether a type is declared, so that the `sid` of its objects is their id.
    pub(super) fn is_declared(self, object_type: &str) -> bool {
        let object_type = object_type.parse::<ObjectType>();
        object_type.is_ok_and(|of| self.settings.osis.schema_of(&of).is_some())
    }

    /// Fails unless the caller of the job has a right on the objects of a type.
    pub(super) fn check_right(self, object_type: &ObjectType, right: Right) -> CallResult<()> {
        let caller = self.run.script.caller_id;
        match self.settings.osis.forbids(caller, object_type, right) {
            None => Ok(()),
            Some(key) => Err(format!(
                "not allowed: {key} does not give the right to {right} to the caller `{}`",
                excerpt(caller)
            )
            .into()),
        }
    }

    fn check_schema(self, write: &Write) -> CallResult<()> {
        let Change::Set { body, .. } = &write.change else { return Ok(()) };
        let Some((key, schema)) = self.settings.osis.schema_of(&write.object_type) else {
            return Ok(());
        };
        Ok(schema.check(body).map_err(|mistake| format!("{mistake} ({key})"))?)
    }

    fn context(self) -> CallResult<Context> {
        let chosen = self.run.context.borrow();
        let context = chosen.as_deref().unwrap_or(self.run.script.context_id);
        self.check_bounds(context)?;
        Ok(context.parse()?)
    }

    /// Fails for a context beyond the bounds of the token that submitted the job.
    pub(super) fn check_bounds(self, context: &str) -> CallResult<()> {
        let bounds = self.run.script.token_bounds;
        if bounds.is_none_or(|bounds| bounds.allow_objects_of(context)) {
            return Ok(());
        }
        let (context, why) =
            (excerpt(context), "is not among the contexts of the token that submitted this job");
        Err(format!("not allowed: the context `{context}` {why}").into())
    }

    pub(super) fn write(self, writes: Vec<Write>) -> CallResult<Vec<Written>> {
        Ok(self.try_write(writes)??)
    }

    /// Notes that the script has made an object of this id by `osis_new`.
    pub(super) fn note_made(self, id: &ObjectId) {
        self.note_version(id.to_string(), 0);
    }

    fn note_version(self, key: String, version: u64) {
        /// Later ones are not noted: stored twice they are stale.
        const MADE_MAX: usize = 10_000;
        let mut made = self.run.made.borrow_mut();
        if made.len() < MADE_MAX || made.contains_key(&key) {
            made.insert(key, version);
        }
    }

    /// As [`OsisJob::write`]. An object of `osis_new` that this script has stored before is given with its version 0 again,
    /// as functions of Rhai get values: it stands for the version that the script has stored.
    pub(super) fn write_made(self, mut writes: Vec<Write>) -> CallResult<Vec<Written>> {
        let context = self.context()?;
        let mut stored = Vec::new();
        for (place, write) in writes.iter_mut().enumerate() {
            let made = self.run.made.borrow();
            if write.expected == Some(0) && made.contains_key(write.id.as_str()) {
                let key = format!("{context} {} {}", write.object_type, write.id);
                write.expected = Some(made.get(&key).copied().unwrap_or(0));
                stored.push((place, key));
            }
        }
        let written = self.write(writes)?;
        for (place, key) in stored {
            self.note_version(key, written.get(place).map_or(0, |written| written.version));
        }
        Ok(written)
    }

    /// As [`OsisJob::write`], with the error of the store apart.
    pub(super) fn try_write(
        self,
        writes: Vec<Write>,
    ) -> CallResult<Result<Vec<Written>, ObjectError>> {
        match self.try_ask(Ask::Write(writes))? {
            Ok(Answer::Written(written)) => Ok(Ok(written)),
            Ok(_) => Err(UNEXPECTED.into()),
            Err(error) => Ok(Err(error)),
        }
    }
}
