//! The members of a job document that no field of the hash has: attempts, dependents, and the place in the queue.

use super::{Client, ClientError};
use crate::proto::job::{Job, JobAttempt, JobId, QUEUE_PLACE};

/// The dependents that the document of a job names.
const DEPENDENTS_NAMED_MAX: usize = 1000;

impl Client {
    /// Returns the latest attempts of a job, the running one included, the oldest first.
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

    /// Adds the place of a waiting job in its queue, on its shard.
    pub async fn add_queue_place(&self, job: &mut Job) -> Result<(), ClientError> {
        if let Some(place) = self.of(&job.id)?.queue_place(job).await? {
            job.extra.insert(QUEUE_PLACE.to_owned(), place.to_string());
        }
        Ok(())
    }

    /// Reads a job as one JSON object, its members named as the fields of the hash, with up to 1000 of its
    /// dependents, its attempts, and its place in the queue.
    ///
    /// # Errors
    /// As [`Client::get_job`].
    pub async fn job_document(&self, id: &JobId) -> Result<serde_json::Value, ClientError> {
        let mut job = self.get_job(id).await?;
        let all = job.dependents.len() as u64 + job.dependents_more;
        (job.dependents, _) = self.dependents(&job, 0, DEPENDENTS_NAMED_MAX).await?;
        job.dependents_more = all.saturating_sub(job.dependents.len() as u64);
        job.attempts = self.attempts(&job).await?;
        self.add_queue_place(&mut job).await?;
        Ok(job.to_json())
    }
}
