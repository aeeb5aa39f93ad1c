//! Additions of the submission to jobs: unique keys of their content, their delays and their signatures. A job is due by Redis's clock, so a delay is counted on it too: the clock of a
//! submitter's machine may be wrong.

use std::borrow::Cow;

use super::{Client, ClientError};
use crate::proto::job::Job;
use crate::store::Store;

impl Client {
    /// Sets what only the submission tells: the unique keys of jobs that are unique by their content,
    /// the times of delays, by the clock of the Redis that gets them, and signatures. Asks Redis only if a job has a delay.
    pub(super) async fn completed<'a>(
        &self,
        on: &Store,
        jobs: &'a [Job],
    ) -> Result<Cow<'a, [Job]>, ClientError> {
        let (has_delay, has_content) =
            (|job: &Job| job.delay.is_some(), |job: &Job| job.spec.unique_by.is_some());
        let is_signing = self.signer.is_some();
        if !is_signing && !jobs.iter().any(|job| has_delay(job) || has_content(job)) {
            return Ok(Cow::Borrowed(jobs));
        }
        let mut jobs = jobs.to_vec();
        for job in &mut jobs {
            let key = job.spec.key_of_content();
            job.spec.unique_key = key.or(job.spec.unique_key.take());
        }
        if jobs.iter().any(has_delay) {
            let now = on.now().await?;
            for job in &mut jobs {
                if let Some(delay) = job.delay {
                    job.set_delay(delay, now)?;
                }
            }
        }
        self.sign(&mut jobs)?;
        Ok(Cow::Owned(jobs))
    }
}
