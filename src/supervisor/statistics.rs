//! Duty: samples throughput and counters, and removes expired jobs from their indexes.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// The shortest time between two samples of one type by any supervisor.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Samples statistics.
pub(super) struct Statistics;

impl Duty for Statistics {
    const NAME: &'static str = "sampling statistics";

    async fn round(round: &Round, _: &DutyCounts) -> Result<Duration, StoreError> {
        round.store.sample(SAMPLE_INTERVAL).await?;
        round.store.keep_sample().await?;
        Ok(round.long_pause().max(Duration::from_secs(1)))
    }
}
