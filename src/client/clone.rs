//! Copies of jobs, with changes.

use serde_json::{Map, Value};

use super::{Client, ClientError};
use crate::proto::job::{Job, JobId};

/// Fields that a copy does not take over: each job has its own.
const OF_ONE_JOB: [&str; 4] = ["id", "unique_key", "run_at", "signature"];

impl Client {
    /// Returns a copy of a job with a new id, without its unique key, its time and its signature, and with these changes:
    /// members named as the fields of the hash, where null takes one away. It is not submitted.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] if the job or a change is not legal.
    pub async fn clone_of(
        &self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<Job, ClientError> {
        Ok(self.get_job(id).await?.copy_with(changes, &OF_ONE_JOB)?)
    }

    /// Submits a copy of a job, as [`Client::clone_of`] makes it. Returns its id.
    ///
    /// # Errors
    /// As [`Client::clone_of`] and [`Client::submit`].
    pub async fn clone_job(
        &self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<JobId, ClientError> {
        let copy = self.clone_of(id, changes).await?;
        self.submit_copy(id, copy).await
    }

    /// Submits a copy of a job, with the files of the job. Returns its id.
    ///
    /// # Errors
    /// As [`Client::submit_with_files`].
    pub async fn submit_copy(&self, of: &JobId, copy: Job) -> Result<JobId, ClientError> {
        let files = self.input_files(of).await?;
        self.submit_with_files(copy, &files).await
    }
}
