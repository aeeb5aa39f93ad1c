//! Duty: puts jobs that foreign actors popped and never started back to the front of their queues.

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// Recovers foreign pops.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let recovered = round.store.recover_pops(round.settings.job.kept()).await?;
    round.counts.note(round.name, recovered);
    Ok(round.until(WorkKind::Queues, round.settings.supervisor.sweep_interval))
}
