//! Changes of jobs that have not started.

use super::changes::with_fields;
use super::{Client, ClientError, JobValues};
use crate::proto::job::{InvalidJob, JobId, JobStatus};
use crate::proto::target::{Group, ScriptType};
use crate::store::EditOutcome;

impl Client {
    /// Changes the priority, the group, the earliest time or settings of a job that has not started. Returns its
    /// state. A job that moves to another queue goes to its end.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it has started, an actor is about to start
    /// it, or its queue is too long to take it out.
    pub async fn edit_job(&self, id: &JobId, values: &JobValues) -> Result<JobStatus, ClientError> {
        let state = self.edit_one(id, values).await?;
        self.note("job.edit", with_fields(id, &values.changes)).await;
        Ok(state)
    }

    /// Changes a job without a record of it.
    pub(super) async fn edit_one(
        &self,
        id: &JobId,
        values: &JobValues,
    ) -> Result<JobStatus, ClientError> {
        let wrong =
            |status: String| ClientError::WrongState { doing: "edit", id: id.clone(), status };
        if let Some(group) = &values.place.group {
            self.stays_within_bounds(id, group.as_ref()).await?;
        }
        let mut edit = values.place.clone();
        edit.corrections = self.corrections(id, &values.changes).await?;
        match self.of(id)?.edit(id, &edit).await? {
            EditOutcome::Edited(status) => Ok(status),
            EditOutcome::Refused(status) => Err(wrong(format!(
                "{status}; only a job that has not started can be changed: hero job clone {id}"
            ))),
            EditOutcome::Taken => Err(wrong("about to start".to_owned())),
            EditOutcome::LongQueue(queue) => {
                Err(wrong(format!("in the middle of {queue}, which is too long to be searched")))
            }
            EditOutcome::Illegal => Err(wrong("without a legal target".to_owned())),
            EditOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
        }
    }

    /// Refuses a group beside `where`, and one beyond the bounds of the token that submitted a job: no actor there would
    /// run it.
    async fn stays_within_bounds(
        &self,
        id: &JobId,
        group: Option<&Group>,
    ) -> Result<(), ClientError> {
        let job = self.get_job(id).await?;
        if group.is_some() && job.spec.r#where.is_some() {
            let why =
                "cannot stand beside the job's `where`: hero job clone submits a copy with another";
            return Err(InvalidJob::new("group", why).into());
        }
        let Some(bounds) = &job.bounds else { return Ok(()) };
        let script_type = job.spec.script_type.as_ref().map(ScriptType::as_str);
        match bounds.outside(script_type, group.map(Group::as_str)) {
            Some(why) => {
                let why = format!(
                    "would take the job beyond the bounds of the token that submitted it: {why}; hero job clone {id} \
                     submits a copy without them"
                );
                Err(InvalidJob::new("group", why).into())
            }
            None => Ok(()),
        }
    }
}
