//! The attempts of a job.

use super::{Client, ClientError};
use crate::proto::job::{Job, JobAttempt, JobId};

impl Client {
    /// Returns the latest attempts of a job, the running one included, the oldest first.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn attempts(&self, job: &Job) -> Result<Vec<JobAttempt>, ClientError> {
        let mut all = job.attempts.clone();
        if let Some(mut last) = job.last_attempt() {
            if let (None, Some(boot)) = (&last.hostname, &job.boot_id) {
                // Unknown to a user of Redis whose access list is of an older version.
                last.hostname = self.of(&job.id)?.hostname_of(boot).await.unwrap_or_default();
            }
            all.push(last);
        }
        Ok(all)
    }

    /// Reads a job as one JSON object, its members named as the fields of the hash, with all its dependents
    /// and attempts.
    ///
    /// # Errors
    /// As [`Client::get_job`].
    pub async fn job_document(&self, id: &JobId) -> Result<serde_json::Value, ClientError> {
        let mut job = self.get_job(id).await?;
        job.dependents = self.dependents(&job).await?;
        job.attempts = self.attempts(&job).await?;
        Ok(job.to_json())
    }
}
