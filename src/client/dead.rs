//! Dead letters: jobs in `error` that used up their attempts.

use super::{Client, ClientError};
use crate::proto::job::{Job, JobId, JobStatus};

impl Client {
    /// Reads a dead letter.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::NoDeadLetter`] if the job is not a dead letter.
    pub async fn dead_letter(&self, id: &JobId) -> Result<Job, ClientError> {
        let job = self.get_job(id).await?;
        let dead = match &job.spec.script_type {
            Some(script_type) if job.status == JobStatus::Error => {
                self.of(id)?.is_dead(script_type, id).await?
            }
            _ => false,
        };
        if dead {
            Ok(job)
        } else {
            Err(ClientError::NoDeadLetter { id: id.clone(), status: job.status })
        }
    }
}
