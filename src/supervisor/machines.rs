//! Duty: notes the machines of live actors, so that jobs for every machine name those that are switched off too.

use super::duty::{Next, Round};
use crate::store::StoreError;

/// The pause between two rounds, as a multiple of the sweep interval.
const PAUSE_FACTOR: u32 = 30;

/// Notes the machines.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let live = round.store.actors(None).await?;
    round.store.note_machines(&live, round.settings.supervisor.machines_kept).await?;
    Ok(Next::After(round.settings.supervisor.sweep_interval.saturating_mul(PAUSE_FACTOR)))
}
