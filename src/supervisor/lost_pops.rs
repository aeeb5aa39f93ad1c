//! Duty: puts jobs that were popped but never claimed back to the front of their queues.

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// Recovers lost pops.
pub(super) struct LostPops;

impl Duty for LostPops {
    const NAME: &'static str = "recovering lost pops";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Next, StoreError> {
        let recovered = round.store.recover_pops(round.settings.job.kept()).await?;
        counts.note(Self::NAME, recovered);
        Ok(round.until(WorkKind::Queues, round.settings.supervisor.sweep_interval))
    }
}
