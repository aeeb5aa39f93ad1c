//! Duty: forwards control messages for a script type to each live actor of the type.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// Forwards control messages.
pub(super) struct ControlFanOut;

impl Duty for ControlFanOut {
    const NAME: &'static str = "forwarding control messages";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Duration, StoreError> {
        let forwarded = round.store.fan_out(round.settings.actor.lease).await?;
        counts.forwarded.fetch_add(forwarded, Ordering::Relaxed);
        Ok(round.settings.supervisor.sweep_interval)
    }
}
