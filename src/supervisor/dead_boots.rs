//! Duty: the jobs of actors that died go back to the front of their queues.

use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Recovers what dead actors ran.
pub(super) struct DeadBoots;

impl Duty for DeadBoots {
    const NAME: &'static str = "recovering jobs of dead actors";
    // Leases run out while nobody can renew them. Actors that live do so within a second.
    const AFTER_OUTAGE: Duration = Duration::from_secs(3);

    async fn round(own: &Round, tally: &Tally) -> Result<Duration, StoreError> {
        let recovered = own
            .store
            .recover_boots(None, own.settings.job.crash_limit, own.settings.job.kept())
            .await?;
        tally.note(Self::NAME, recovered);
        Ok(own.settings.supervisor.sweep_interval)
    }
}
