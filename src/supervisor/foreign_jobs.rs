//! Duty: adopts jobs that programs pushed with plain commands, so that they are seen, counted and
//! recovered as all others.

use tracing::debug;

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// Adopts foreign jobs.
pub(super) struct ForeignJobs;

impl Duty for ForeignJobs {
    const NAME: &'static str = "adopting jobs of foreign programs";

    async fn round(round: &Round, _: &DutyCounts) -> Result<Next, StoreError> {
        let adopted = round.store.adopt_queued(round.settings.job.kept()).await?;
        if adopted > 0 {
            debug!(adopted, "{}", Self::NAME);
        }
        Ok(round.until(WorkKind::Queues, round.settings.supervisor.sweep_interval))
    }
}
