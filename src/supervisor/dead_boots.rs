//! Duty: puts the jobs of dead actors back to the front of their queues.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::StoreError;

/// Recovers the jobs of dead actors.
pub(super) struct DeadBoots;

impl Duty for DeadBoots {
    const NAME: &'static str = "recovering jobs of dead actors";
    // Leases expire during an outage. Live actors renew theirs within a second after it.
    const AFTER_OUTAGE: Duration = Duration::from_secs(3);

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Next, StoreError> {
        let recovered = round
            .store
            .recover_boots(None, round.settings.job.crash_limit, round.settings.job.kept())
            .await?;
        counts.note(Self::NAME, recovered);
        // A lease that is renewed ends later; a boot that appears meanwhile begins with a whole one.
        let sweep = round.settings.supervisor.sweep_interval;
        let next = round.store.next_lease_end().await?.unwrap_or(Duration::MAX);
        Ok(Next::After(next.clamp(sweep, round.long_pause())))
    }
}
