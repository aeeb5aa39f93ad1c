//! Duty: finds dispatched jobs that stand in no queue. A program wrote and pushed such a job with plain
//! commands, and the actor that popped it died before its claim. Only a search through all keys finds
//! it, so this duty alone uses SCAN, a little at a time.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tracing::warn;

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// The time for a whole search, if Redis is not too large for it.
const SEARCH: Duration = Duration::from_secs(20);
/// The shortest pause between two steps.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest pause between two steps: a small Redis is searched more often.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The longest rest after a search.
const REST: Duration = Duration::from_secs(10);
/// The pause as a multiple of the time that the last step took: on a busy Redis the search slows down.
const PAUSE_FACTOR: u32 = 20;

/// Finds jobs in no queue.
pub(super) struct UnqueuedJobs;

impl Duty for UnqueuedJobs {
    const NAME: &'static str = "adopting jobs that stand in no queue";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Next, StoreError> {
        let began = Instant::now();
        let step = round.store.adopt_unqueued(round.settings.job.kept()).await?;
        if step.adopted > 0 {
            warn!(adopted = step.adopted, "{}", Self::NAME);
        }
        let even = (SEARCH / step.steps).clamp(PAUSE_MIN, PAUSE_MAX);
        let pause = even.max(began.elapsed() * PAUSE_FACTOR);
        // Rests after a search that has found nothing, while as many keys exist as at the end of the one
        // before.
        let is_same = step.is_last
            && step.adopted == 0
            && counts.keys_searched.swap(step.keys, Ordering::Relaxed) == step.keys;
        Ok(if is_same {
            Next::Seen { work: WorkKind::Keys, pause, at_latest: REST }
        } else {
            Next::After(pause)
        })
    }
}
