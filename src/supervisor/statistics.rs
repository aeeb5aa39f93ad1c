//! Duty: samples throughput and counters, and removes expired jobs from their indexes.

use std::time::Duration;

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// The shortest time between two samples of one type by any supervisor.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Samples statistics.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let sampled = round.store.sample(SAMPLE_INTERVAL).await?;
    round.store.keep_sample().await?;
    let pause = round.long_pause().max(Duration::from_secs(1));
    // A rate is shown until the next sample. A queue is known until a sample finds it empty.
    Ok(if sampled.jobs_end { Next::After(pause) } else { round.until(WorkKind::Queues, pause) })
}
