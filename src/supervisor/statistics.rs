//! Duty: throughput is sampled, and what retention has let expire leaves its index.

use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Least time between two samples of one type, whoever takes them.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Samples and tidies.
pub(super) struct Statistics;

impl Duty for Statistics {
    const NAME: &'static str = "sampling statistics";

    async fn round(own: &Round, _: &Tally) -> Result<Duration, StoreError> {
        own.store.sample(SAMPLE_INTERVAL).await?;
        Ok(own.settings.supervisor.sweep_interval.max(Duration::from_secs(1)))
    }
}
