//! Duty: finds jobs and attempts that have not ended by the time by which their submitter expected it.

use tracing::warn;

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// The entries per round; if more are due, the next round follows at once.
const PER_ROUND: usize = 100;

/// Finds late and slow jobs.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let found = round.store.find_late(PER_ROUND).await?;
    for id in &found.late {
        warn!(job_id = %id, "job {id} is late: it has not ended within its expect_within");
    }
    for id in &found.slow {
        warn!(job_id = %id, "job {id} is slow: its attempt runs for longer than its slow_after");
    }
    Ok(round.until_due(WorkKind::Expected, found.next).unless_more(found.looked_at == PER_ROUND))
}
