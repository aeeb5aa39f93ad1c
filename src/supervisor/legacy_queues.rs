//! Duty: notices what old workers do with jobs that are in their queues as well.

use super::duty::{Next, Round};
use crate::store::{Recovered, StoreError};

/// Checks legacy queues.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let found = round.store.recover_legacy(round.settings.job.kept()).await?;
    let foreign = found.started + found.ended;
    let put_back = found.put_back;
    round.counts.note(round.name, Recovered { put_back, foreign, ..Recovered::default() });
    Ok(Next::After(round.settings.supervisor.sweep_interval).unless_more(found.more))
}
