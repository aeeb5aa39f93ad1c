//! Changes of jobs that have not started.

use std::time::Duration;

use super::{Client, ClientError};
use crate::proto::job::{JobId, JobStatus};
use crate::store::{EditOutcome, JobEdit};

impl Client {
    /// Changes the priority, the group or the earliest time of a job that has not started. Returns its
    /// state. A job that moves to another queue goes to its end.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it has started, an actor is about to start
    /// it, or its queue is too long to take it out.
    pub async fn edit_job(&self, id: &JobId, edit: &JobEdit) -> Result<JobStatus, ClientError> {
        let wrong =
            |status: String| ClientError::WrongState { doing: "edit", id: id.clone(), status };
        match self.of(id)?.edit(id, edit).await? {
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

    /// The same, with the earliest time as a delay from now by Redis's clock.
    ///
    /// # Errors
    /// As [`Client::edit_job`].
    pub async fn edit_job_after(
        &self,
        id: &JobId,
        mut edit: JobEdit,
        delay: Duration,
    ) -> Result<JobStatus, ClientError> {
        let now = self.of(id)?.now().await?;
        edit.run_at = Some(now.checked_add(delay).unwrap_or(jiff::Timestamp::MAX));
        self.edit_job(id, &edit).await
    }
}
