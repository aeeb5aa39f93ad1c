//! Duty: dependents that were too many for the step that ended their prerequisite are told.

use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Tells dependents.
pub(super) struct LargeFanOut;

impl Duty for LargeFanOut {
    const NAME: &'static str = "telling dependents";

    async fn round(own: &Round, _: &Tally) -> Result<Duration, StoreError> {
        let more = own.store.settle(own.settings.job.kept()).await?;
        Ok(if more { Duration::ZERO } else { own.settings.supervisor.sweep_interval })
    }
}
