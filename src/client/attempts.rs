//! The members of a job document that no field of the hash has: attempts, dependents, and the place in the queue; and dead
//! letters: jobs in `error` that used up their attempts.

use super::{Client, ClientError, Result};
use crate::proto::job::{Job, JobAttempt, JobId, JobStatus, QUEUE_PLACE};

const DEPENDENTS_NAMED_MAX: usize = 1000;

impl Client {
    /// Returns the latest attempts of a job, the running one included, the oldest first.
    pub async fn attempts(&self, job: &Job) -> Result<Vec<JobAttempt>> {
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

    /// Reads a job as one JSON object, its members named as the fields of the hash, with up to 1000 of its
    /// dependents, its attempts, and its place in its queue, on its shard.
    ///
    /// # Errors
    /// As [`Client::get_job`].
    pub async fn job_document(&self, id: &JobId) -> Result<serde_json::Value> {
        let mut job = self.get_job(id).await?;
        let all = job.dependents.len() as u64 + job.dependents_more;
        (job.dependents, _) = self.dependents(&job, 0, DEPENDENTS_NAMED_MAX).await?;
        job.dependents_more = all.saturating_sub(job.dependents.len() as u64);
        job.attempts = self.attempts(&job).await?;
        if let Some(place) = self.of(id)?.queue_place(&job).await? {
            job.extra.insert(QUEUE_PLACE.to_owned(), place.to_string());
        }
        Ok(job.to_json())
    }

    /// Reads a dead letter.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::NoDeadLetter`] if the job is not a dead letter.
    pub async fn dead_letter(&self, id: &JobId) -> Result<Job> {
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
