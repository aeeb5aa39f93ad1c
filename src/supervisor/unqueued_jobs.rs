//! Duty: finds dispatched jobs that stand in no queue. A program wrote and pushed such a job with plain
//! commands, and the actor that popped it died before its claim. Only a search through all keys finds
//! it, so this duty alone uses SCAN, a little at a time.

use std::time::{Duration, Instant};

use tracing::warn;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// The time for a whole search, if Redis is not too large for it.
const SEARCH: Duration = Duration::from_secs(20);
/// The shortest pause between two steps.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest pause between two steps: a small Redis is searched more often.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The pause as a multiple of the time that the last step took: on a busy Redis the search slows down.
const PAUSE_FACTOR: u32 = 20;

/// Finds jobs in no queue.
pub(super) struct UnqueuedJobs;

impl Duty for UnqueuedJobs {
    const NAME: &'static str = "adopting jobs that stand in no queue";

    async fn round(round: &Round, _: &DutyCounts) -> Result<Duration, StoreError> {
        let began = Instant::now();
        let step = round.store.adopt_unqueued(round.settings.job.kept()).await?;
        if step.adopted > 0 {
            warn!(adopted = step.adopted, "{}", Self::NAME);
        }
        let even = (SEARCH / step.steps).clamp(PAUSE_MIN, PAUSE_MAX);
        Ok(even.max(began.elapsed() * PAUSE_FACTOR))
    }
}
