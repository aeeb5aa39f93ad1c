//! Duty: notices the end of jobs that foreign actors run, and recovers those that never end.

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// Checks the jobs of foreign actors.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let recovered = round
        .store
        .recover_foreign(
            round.settings.job.timeout,
            round.settings.supervisor.sweep_interval,
            round.settings.job.crash_limit,
            round.settings.job.kept(),
        )
        .await?;
    round.counts.note(round.name, recovered);
    Ok(round.until(WorkKind::Foreign, round.settings.supervisor.sweep_interval))
}
