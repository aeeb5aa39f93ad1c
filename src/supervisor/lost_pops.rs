//! Duty: puts jobs that were popped but never claimed back to the front of their queues.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// Recovers lost pops.
pub(super) struct LostPops;

impl Duty for LostPops {
    const NAME: &'static str = "recovering lost pops";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Duration, StoreError> {
        let recovered = round.store.recover_pops(round.settings.job.kept()).await?;
        counts.note(Self::NAME, recovered);
        Ok(round.settings.supervisor.sweep_interval)
    }
}
