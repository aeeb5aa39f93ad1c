//! Duty: forwards control messages for a script type, or for a group of it, to each of its live actors.

use std::sync::atomic::Ordering;

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// Forwards control messages.
pub(super) struct ControlFanOut;

impl Duty for ControlFanOut {
    const NAME: &'static str = "forwarding control messages";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Next, StoreError> {
        let handed_on =
            round.store.fan_out(round.settings.actor.lease, round.settings.job.kept()).await?;
        counts.forwarded.fetch_add(handed_on.messages, Ordering::Relaxed);
        let pause = round.settings.supervisor.sweep_interval;
        // The next round has to notice when foreign actors have taken them.
        Ok(if handed_on.are_left {
            Next::After(pause)
        } else {
            round.until(WorkKind::Control, pause)
        })
    }
}
