//! Duty: scheduled jobs, retries among them, are dispatched when their time has come.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Jobs of one type that one round dispatches; with more due, the next round follows at once.
const PER_ROUND: usize = 500;

/// Dispatches what is due.
pub(super) struct DueJobs;

impl Duty for DueJobs {
    const NAME: &'static str = "dispatching due jobs";

    async fn round(own: &Round, tally: &Tally) -> Result<Duration, StoreError> {
        let (dispatched, next) = own.store.dispatch_due(PER_ROUND).await?;
        tally.dispatched.fetch_add(dispatched as u64, Ordering::Relaxed);
        // What is scheduled meanwhile for an earlier time is seen by the next sweep.
        Ok(next.unwrap_or(Duration::MAX).min(own.settings.supervisor.sweep_interval))
    }
}
