//! Duty: keeps ended jobs whose outputs and files other jobs may need: dependents that wait, and callbacks of their
//! graph.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// The jobs per round; if more are due, the next round follows at once.
const PER_ROUND: usize = 100;

/// Keeps ended jobs.
pub(super) struct AwaitedJobs;

impl Duty for AwaitedJobs {
    const NAME: &'static str = "keeping the outputs that jobs wait for";

    async fn round(round: &Round, _: &DutyCounts) -> Result<Next, StoreError> {
        let looked = round.store.keep_awaited(PER_ROUND).await?;
        Ok(if looked.jobs == PER_ROUND {
            Next::After(Duration::ZERO)
        } else {
            round.until_due(WorkKind::Awaited, looked.next)
        })
    }
}
