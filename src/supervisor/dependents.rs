//! Duty: goes on with what takes more than one step: notifies the dependents that were too many for
//! the step that ended their prerequisite, and commits atomic batches whose client has gone.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// Notifies dependents.
pub(super) struct Dependents;

impl Duty for Dependents {
    const NAME: &'static str = "notifying dependents";

    async fn round(round: &Round, _: &DutyCounts) -> Result<Duration, StoreError> {
        let kept = round.settings.job.kept();
        let more_to_tell = round.store.settle(kept).await?;
        let more_to_commit = round.store.commit_left(kept).await?;
        Ok(if more_to_tell || more_to_commit {
            Duration::ZERO
        } else {
            round.settings.supervisor.sweep_interval
        })
    }
}
