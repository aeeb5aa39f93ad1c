//! Duty: notices the end of jobs that foreign actors run, and recovers those that never end.

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// Checks the jobs of foreign actors.
pub(super) struct ForeignActors;

impl Duty for ForeignActors {
    const NAME: &'static str = "checking jobs of foreign actors";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Next, StoreError> {
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
        Ok(round.until(WorkKind::Foreign, round.settings.supervisor.sweep_interval))
    }
}
