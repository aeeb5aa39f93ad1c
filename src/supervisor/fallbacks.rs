//! Duty: moves jobs from group and instance queues without live actors to the next wider queue, where
//! they may go there.

use tracing::info;

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// Moves jobs that fall back.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let settings = &round.settings;
    let after = settings.supervisor.fallback_after;
    for note in round.store.fall_back(after, &settings.fallbacks).await? {
        info!(job_id = %note.job_id, script_type = %note.script_type, "{note}");
    }
    Ok(round.until(WorkKind::Queues, settings.supervisor.sweep_interval))
}
