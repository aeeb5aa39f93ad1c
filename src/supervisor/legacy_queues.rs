//! Duty: notices what old workers do with jobs that are in their queues as well.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{Recovered, StoreError};

/// Checks legacy queues.
pub(super) struct LegacyQueues;

impl Duty for LegacyQueues {
    const NAME: &'static str = "checking legacy queues";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Next, StoreError> {
        let found = round.store.recover_legacy(round.settings.job.kept()).await?;
        let foreign = found.started + found.ended;
        let put_back = found.put_back;
        counts.note(Self::NAME, Recovered { put_back, foreign, ..Recovered::default() });
        let pause = round.settings.supervisor.sweep_interval;
        Ok(Next::After(if found.more { Duration::ZERO } else { pause }))
    }
}
