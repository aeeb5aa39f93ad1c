//! Duty: what old workers do with jobs that stand in their queues too is noticed.

use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::{Recovered, StoreError};

/// Looks after legacy queues.
pub(super) struct LegacyQueues;

impl Duty for LegacyQueues {
    const NAME: &'static str = "looking after legacy queues";

    async fn round(own: &Round, tally: &Tally) -> Result<Duration, StoreError> {
        let found = own.store.recover_legacy(own.settings.job.kept()).await?;
        let foreign = found.started + found.ended;
        let put_back = found.put_back;
        tally.note(Self::NAME, Recovered { put_back, foreign, ..Recovered::default() });
        let pause = own.settings.supervisor.sweep_interval;
        Ok(if found.more { Duration::ZERO } else { pause })
    }
}
