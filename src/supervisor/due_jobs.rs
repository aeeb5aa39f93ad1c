//! Duty: dispatches scheduled jobs and retries when they are due.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// The jobs of one type per round; if more are due, the next round follows at once.
const PER_ROUND: usize = 500;

/// Dispatches due jobs.
pub(super) struct DueJobs;

impl Duty for DueJobs {
    const NAME: &'static str = "dispatching due jobs";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Duration, StoreError> {
        let (dispatched, next) = round.store.dispatch_due(PER_ROUND).await?;
        counts.dispatched.fetch_add(dispatched as u64, Ordering::Relaxed);
        // The next sweep finds jobs that are scheduled for an earlier time meanwhile.
        Ok(next.unwrap_or(Duration::MAX).min(round.settings.supervisor.sweep_interval))
    }
}
