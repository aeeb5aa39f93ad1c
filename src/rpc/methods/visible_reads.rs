//! References to jobs; and reads of jobs and waits for them, which return something if the same job has the id afterwards: an id
//! that was deleted may belong to another job meanwhile.

use std::time::Duration;

use super::access::hidden;
use super::{CallContext, Result};
use crate::client::{AwaitedJob, ClientError};
use crate::proto::job::{Job, JobId, JobOutput, JobReference};
use crate::store::JobSummary;
use crate::view::blocker_words;

/// A job whose end was awaited, and the answer to the wait.
pub(super) type AfterWait = (Job, Result<JobOutput, ClientError>);

/// A job that the caller may see.
pub(super) struct VisibleJob {
    pub(super) id: JobId,
    /// The job; `None` for a caller that may read every job.
    job: Option<Job>,
}

impl CallContext {
    /// Returns the job of an id, or of a beginning that is unique among the jobs that the caller may
    /// see.
    pub(super) async fn job_named(&self, of: &JobReference) -> Result<JobId> {
        let sees = |job: &JobSummary| self.finds(job);
        Ok(self.client.jobs().id_among(of, Some(&self.caller.name), sees).await?)
    }

    /// Returns the job that an id or its unique beginning names, which the caller may see. [`CallContext::still`] must follow.
    pub(super) async fn seen(&self, of: JobReference) -> Result<VisibleJob> {
        let id = self.job_named(&of).await?;
        let job = if self.caller.is_bound() { Some(self.visible(&id).await?) } else { None };
        Ok(VisibleJob { id, job })
    }

    /// Returns what was read of a job if the same job has the id afterwards.
    pub(super) async fn still<T>(
        &self,
        seen: &VisibleJob,
        read: Result<T, ClientError>,
    ) -> Result<T> {
        if let Some(before) = &seen.job {
            self.same_job(before).await?;
        }
        Ok(read?)
    }

    /// Waits for the end of a job, however it ends, or for the end of the patience. `submitter` is the `caller_id` of the job
    /// that the caller has submitted, if it waits for that.
    pub(super) async fn after_end(
        &self,
        awaited: &AwaitedJob,
        submitter: Option<&str>,
        patience: Duration,
    ) -> Result<AfterWait> {
        if self.caller.reads() && !self.caller.is_bound() {
            let waited = self.client.await_end(awaited, Some(patience)).await;
            return Ok((self.client.get_job(&awaited.id).await?, waited));
        }
        let before = self.visible(&awaited.id).await?;
        let is_own = submitter == Some(before.spec.caller_id.as_str());
        if !is_own && !self.caller.reads() && !self.caller.operates() {
            return Err(hidden(&awaited.id));
        }
        let waited = self.client.await_end(awaited, Some(patience)).await;
        // What the wait returned may be of another job with this id.
        Ok((self.same_job(&before).await?, waited))
    }

    /// Returns why a job does not start, in words; nothing without an answer.
    pub(in crate::rpc) async fn waits_for(&self, id: &JobId) -> Option<String> {
        let blocker = self.client.queues().blocker(id).await.ok()??;
        Some(blocker_words(id, &blocker))
    }

    /// Reads a job again that the caller may see, unless a later one has its id.
    pub(super) async fn same_job(&self, before: &Job) -> Result<Job> {
        let after = self.visible(&before.id).await?;
        if after.created_at == before.created_at { Ok(after) } else { Err(hidden(&before.id)) }
    }
}
