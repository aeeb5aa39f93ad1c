//! Duty: puts jobs that foreign actors popped and never started back to the front of their queues.

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// Recovers foreign pops.
pub(super) struct ForeignPops;

impl Duty for ForeignPops {
    const NAME: &'static str = "recovering foreign pops";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Next, StoreError> {
        let recovered = round.store.recover_pops(round.settings.job.kept()).await?;
        counts.note(Self::NAME, recovered);
        Ok(round.until(WorkKind::Queues, round.settings.supervisor.sweep_interval))
    }
}
