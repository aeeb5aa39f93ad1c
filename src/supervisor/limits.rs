//! Duty: jobs that a limit holds back try again when the time of a rate has come, or when a place
//! may be free that nobody told of.

use std::time::Duration;

use tracing::{debug, info};

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Limits that one round looks after; with more due, the next round follows at once.
const PER_ROUND: usize = 100;

/// Looks after held jobs.
pub(super) struct HeldJobs;

impl Duty for HeldJobs {
    const NAME: &'static str = "looking after limits";

    async fn round(own: &Round, _: &Tally) -> Result<Duration, StoreError> {
        let tended = own.store.tend_limits(PER_ROUND).await?;
        if tended.taken_back > 0 {
            info!(places = tended.taken_back, "took back places of jobs that do not run any more");
        }
        if tended.released > 0 {
            debug!(jobs = tended.released, "held jobs may try again");
        }
        // A limit that begins to hold jobs meanwhile is seen by the next sweep.
        Ok(tended.next.unwrap_or(Duration::MAX).min(own.settings.supervisor.sweep_interval))
    }
}
