//! Duty: forwards control messages for a script type, or for a group of it, to each of its live actors.

use std::sync::atomic::Ordering;

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// Forwards control messages.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let (lease, kept) = (round.settings.actor.lease, round.settings.job.kept());
    let handed_on = round.store.fan_out(lease, kept, None).await?;
    round.counts.forwarded.fetch_add(handed_on.messages, Ordering::Relaxed);
    let pause = round.settings.supervisor.sweep_interval;
    // The next round has to notice when foreign actors have taken them.
    Ok(if handed_on.are_left { Next::After(pause) } else { round.until(WorkKind::Control, pause) })
}
