//! Duty: checks what Redis keeps of the accepted jobs, which may change while it runs, and logs a
//! change.

use std::time::Duration;

use tracing::{info, warn};

use super::duty::{Next, Round};
use crate::store::StoreError;

/// The longest time between two checks.
const INTERVAL_MAX: Duration = Duration::from_mins(1);

/// Checks what Redis keeps.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let state = round.store.redis_state(false).await?;
    // The daemon logs what Redis keeps at its start.
    if round.counts.note_redis_state(&state) {
        info!("redis at {} now keeps {}", round.store.address(), state.keeps());
        for danger in state.dangers() {
            warn!("{danger}");
        }
    }
    let pause = round.settings.supervisor.sweep_interval.saturating_mul(10);
    Ok(Next::After(pause.min(INTERVAL_MAX)))
}
