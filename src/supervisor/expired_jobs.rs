//! Duty: ends jobs that did not start within the time that their submitter gave them.

use tracing::info;

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// The jobs per round; if more are due, the next round follows at once.
const PER_ROUND: usize = 100;

/// Ends jobs that are too late.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let looked = round.store.expire_jobs(PER_ROUND, round.settings.job.kept()).await?;
    if looked.ended > 0 {
        info!(jobs = looked.ended, "jobs did not start in time: ended as expired");
    }
    Ok(round.until_due(WorkKind::Expiring, looked.next).unless_more(looked.jobs == PER_ROUND))
}
