//! Delays of jobs. A job is due by Redis's clock, so a delay is counted on it too: the clock of a
//! submitter's machine may be wrong.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;

use super::{Client, ClientError};
use crate::proto::job::{InvalidJob, Job};

/// Sets the delay of a job. Until it is submitted, this machine's clock says when it may start.
///
/// # Errors
/// [`InvalidJob`] if no timestamp is as late.
pub(crate) fn set_delay(job: &mut Job, delay: Duration) -> Result<(), InvalidJob> {
    job.delay = Some(delay);
    job.spec.run_at = Some(after(Timestamp::now(), delay)?);
    Ok(())
}

fn after(now: Timestamp, delay: Duration) -> Result<Timestamp, InvalidJob> {
    let time = now.checked_add(delay);
    time.map_err(|_| InvalidJob::new("run_at", "is too far in the future"))
}

impl Client {
    /// Counts the delays of jobs from now on by Redis's clock. Asks Redis only if a job has one.
    pub(super) async fn dated<'a>(&self, jobs: &'a [Job]) -> Result<Cow<'a, [Job]>, ClientError> {
        if jobs.iter().all(|job| job.delay.is_none()) {
            return Ok(Cow::Borrowed(jobs));
        }
        let now = self.store.now().await?;
        let mut jobs = jobs.to_vec();
        for job in &mut jobs {
            if let Some(delay) = job.delay {
                job.spec.run_at = Some(after(now, delay)?);
            }
        }
        Ok(Cow::Owned(jobs))
    }
}
