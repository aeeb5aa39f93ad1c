//! Duty: control messages for a whole type go to each of its live actors.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Hands on control messages.
pub(super) struct ControlFanOut;

impl Duty for ControlFanOut {
    const NAME: &'static str = "handing on control messages";

    async fn round(own: &Round, tally: &Tally) -> Result<Duration, StoreError> {
        let handed_on = own.store.fan_out(own.settings.actor.lease).await?;
        tally.handed_on.fetch_add(handed_on, Ordering::Relaxed);
        Ok(own.settings.supervisor.sweep_interval)
    }
}
