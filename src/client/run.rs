//! The one way to run a job and to wait for its end. A submitter that waits says so when it submits: then the job
//! pushes a reply, and its end costs no call but the wait for the reply.

use std::time::Duration;

use super::{Client, Result, Submission};
use crate::proto::job::{Job, JobFiles, JobId, JobOutput};

/// A job whose end its submitter or another waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedJob {
    pub id: JobId,
    /// True if it is known to push a reply.
    replies: bool,
}

impl From<JobId> for AwaitedJob {
    /// A job that was submitted before, perhaps by one who does not wait.
    fn from(id: JobId) -> Self {
        Self { id, replies: false }
    }
}

impl Client {
    /// Submits a job, waits for its end and returns its output. `patience` bounds the wait, not
    /// the job; without it the wait has no bound.
    ///
    /// # Errors
    /// As [`Client::submit`]; `ClientError::JobFailed` if it ends in `error`; `ClientError::GaveUp`.
    pub async fn run_job_and_await_result(
        &self,
        job: Job,
        patience: Option<Duration>,
    ) -> Result<JobOutput> {
        let job = self.submit_awaited(job, &JobFiles::default()).await?;
        self.await_end(&job, patience).await
    }

    /// Submits a job with files, whose end the caller waits for: [`Client::await_end`].
    pub async fn submit_awaited(&self, mut job: Job, files: &JobFiles) -> Result<AwaitedJob> {
        self.scripts().resolve(&mut job).await?;
        self.place(&mut job)?;
        let (own, replies) = (job.id.clone(), job.spec.reply);
        // Its future holds the script, and each that awaits it would be as large.
        let id = Box::pin(self.store_with_files(job, files, Submission::Run)).await?;
        // Another job that holds its unique key has a submitter of its own.
        Ok(AwaitedJob { replies: replies && id == own, id })
    }

    /// Waits for the end of a job and returns its output. The actor may push a reply or only
    /// write the job's hash.
    ///
    /// One waiter gets the reply; others see the end in the hash within a second.
    ///
    /// # Errors
    /// `ClientError::NoSuchJob`, `ClientError::JobFailed`, `ClientError::GaveUp`.
    pub async fn await_end(
        &self,
        job: &AwaitedJob,
        patience: Option<Duration>,
    ) -> Result<JobOutput> {
        // Its future holds connections, and would make the future of each caller large.
        Box::pin(self.waiters(&job.id)?.wait(&job.id, patience, job.replies)).await
    }

    /// Waits for the end of a job that was submitted before, as [`Client::await_end`] does.
    pub async fn await_result(&self, id: &JobId, patience: Option<Duration>) -> Result<JobOutput> {
        self.await_end(&id.clone().into(), patience).await
    }
}
