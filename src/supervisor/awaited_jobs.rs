//! Duty: keeps ended jobs whose outputs and files other jobs may need: dependents that wait, and callbacks of their
//! graph.

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// The jobs per round; if more are due, the next round follows at once.
const PER_ROUND: usize = 100;

/// Keeps ended jobs.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let looked = round.store.keep_awaited(PER_ROUND).await?;
    Ok(round.until_due(WorkKind::Awaited, looked.next).unless_more(looked.jobs == PER_ROUND))
}
