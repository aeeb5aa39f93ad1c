//! Duty: puts the jobs of dead actors back to the front of their queues.

use std::time::Duration;

use super::clock_watch::uptime;
use super::duty::{Next, Round};
use crate::store::StoreError;

/// The pause after an outage, in which leases expire. Live actors renew theirs within a second after it.
pub(super) const AFTER_OUTAGE: Duration = Duration::from_secs(3);

/// A look at the leases is no later than this. A larger distance is a step of Redis's clock.
const LATE: Duration = Duration::from_secs(2);

/// Recovers the jobs of dead actors.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let (limit, kept) = (round.settings.job.crash_limit, round.settings.job.kept());
    let pause = round.long_pause() + LATE;
    let recovered = round.store.recover_boots(None, pause, limit, kept).await?;
    round.counts.note(round.name, recovered);
    // A lease that is renewed ends later; a boot that appears meanwhile begins with a whole one.
    let sweep = round.settings.supervisor.sweep_interval;
    let called = uptime();
    let (next, now) = round.store.next_lease_end().await?;
    if let Some(now) = now {
        round.counts.clock.note(called, now, &round.counts.of_shard());
    }
    let next = next.unwrap_or(Duration::MAX);
    Ok(Next::After(next.clamp(sweep, round.long_pause())))
}
