//! Duty: serves the stop requests of older clients in the stop queues of old workers, for Hero's
//! jobs.

use tracing::info;

use super::duty::{Next, Round};
use crate::store::StoreError;

/// Serves the stop queues of old workers.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let done = round.store.serve_legacy_stops(round.settings.job.kept()).await?;
    if done > 0 {
        info!(requests = done, "{}", round.name);
    }
    Ok(Next::After(round.settings.supervisor.sweep_interval))
}
