//! Duty: ends jobs that did not start within the time that their submitter gave them.

use std::time::Duration;

use tracing::info;

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// The jobs per round; if more are due, the next round follows at once.
const PER_ROUND: usize = 100;

/// Ends jobs that are too late.
pub(super) struct ExpiredJobs;

impl Duty for ExpiredJobs {
    const NAME: &'static str = "ending jobs that did not start in time";

    async fn round(round: &Round, _: &DutyCounts) -> Result<Next, StoreError> {
        let looked = round.store.expire_jobs(PER_ROUND, round.settings.job.kept()).await?;
        if looked.ended > 0 {
            info!(jobs = looked.ended, "jobs did not start in time: ended as expired");
        }
        Ok(if looked.jobs == PER_ROUND {
            Next::After(Duration::ZERO)
        } else {
            round.until_due(WorkKind::Expiring, looked.next)
        })
    }
}
