//! Duty: what was popped and never claimed goes back to the front of its queue.

use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Recovers what was popped and never claimed.
pub(super) struct LostPops;

impl Duty for LostPops {
    const NAME: &'static str = "recovering lost pops";

    async fn round(own: &Round, tally: &Tally) -> Result<Duration, StoreError> {
        let recovered = own.store.recover_pops(own.settings.job.kept()).await?;
        tally.note(Self::NAME, recovered);
        Ok(own.settings.supervisor.sweep_interval)
    }
}
