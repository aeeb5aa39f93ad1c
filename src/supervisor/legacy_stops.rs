//! Duty: what older clients ask for in the stop queues of old workers is done for jobs of ours.

use std::time::Duration;

use tracing::info;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Serves the stop queues of old workers.
pub(super) struct LegacyStops;

impl Duty for LegacyStops {
    const NAME: &'static str = "serving stop queues of old workers";

    async fn round(own: &Round, _: &Tally) -> Result<Duration, StoreError> {
        let done = own.store.serve_legacy_stops(own.settings.job.kept()).await?;
        if done > 0 {
            info!(requests = done, "{}", Self::NAME);
        }
        Ok(own.settings.supervisor.sweep_interval)
    }
}
