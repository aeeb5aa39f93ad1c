//! Duty: notices the end of jobs that foreign actors run, and recovers those that never end.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// Checks the jobs of foreign actors.
pub(super) struct ForeignActors;

impl Duty for ForeignActors {
    const NAME: &'static str = "checking jobs of foreign actors";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Duration, StoreError> {
        let recovered = round
            .store
            .recover_foreign(
                round.settings.job.timeout,
                round.settings.supervisor.sweep_interval,
                round.settings.job.crash_limit,
                round.settings.job.kept(),
            )
            .await?;
        counts.note(Self::NAME, recovered);
        Ok(round.settings.supervisor.sweep_interval)
    }
}
