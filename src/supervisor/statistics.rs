//! Duty: samples throughput and counters, and removes expired jobs from their indexes.

use std::time::Duration;

use tracing::info;

use super::duty::{Next, Round};
use crate::proto::text::counted;
use crate::store::{Store, StoreError, WorkKind};

/// The shortest time between two samples of one type by any supervisor.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Reports the progress of an upgrade: lists are complete once all ended jobs are sorted by their ends.
async fn report_sorted(store: &Store, sorted: u64) -> Result<(), StoreError> {
    let left = store.count_jobs().await?.unsorted;
    let jobs = counted(sorted, "ended job", "ended jobs");
    if left == 0 {
        info!("sorted {jobs} of an older version by their ends: done, lists are complete");
    } else {
        info!("sorted {jobs} of an older version by their ends; {left} are left, which lists lack");
    }
    Ok(())
}

/// Samples statistics.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let sampled = round.store.sample(SAMPLE_INTERVAL).await?;
    if sampled.sorted > 0 {
        report_sorted(&round.store, sampled.sorted).await?;
    }
    round.store.keep_sample().await?;
    let pause = round.long_pause().max(Duration::from_secs(1));
    // A rate is shown until the next sample. A queue is known until a sample finds it empty.
    Ok(if sampled.jobs_end || sampled.sorted > 0 {
        Next::After(pause)
    } else {
        round.until(WorkKind::Queues, pause)
    })
}
