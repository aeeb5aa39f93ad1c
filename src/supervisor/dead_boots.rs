//! Duty: puts the jobs of dead actors back to the front of their queues.

use std::time::Duration;

use super::duty::{Next, Round};
use crate::store::StoreError;

/// The pause after an outage, in which leases expire. Live actors renew theirs within a second after it.
pub(super) const AFTER_OUTAGE: Duration = Duration::from_secs(3);

/// Recovers the jobs of dead actors.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let recovered = round
        .store
        .recover_boots(None, round.settings.job.crash_limit, round.settings.job.kept())
        .await?;
    round.counts.note(round.name, recovered);
    // A lease that is renewed ends later; a boot that appears meanwhile begins with a whole one.
    let sweep = round.settings.supervisor.sweep_interval;
    let next = round.store.next_lease_end().await?.unwrap_or(Duration::MAX);
    Ok(Next::After(next.clamp(sweep, round.long_pause())))
}
