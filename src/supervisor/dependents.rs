//! Duty: notifies the dependents that were too many for the step that ended their prerequisite.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// Notifies dependents.
pub(super) struct Dependents;

impl Duty for Dependents {
    const NAME: &'static str = "notifying dependents";

    async fn round(round: &Round, _: &DutyCounts) -> Result<Duration, StoreError> {
        let more = round.store.settle(round.settings.job.kept()).await?;
        Ok(if more { Duration::ZERO } else { round.settings.supervisor.sweep_interval })
    }
}
