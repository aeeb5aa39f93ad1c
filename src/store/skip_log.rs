//! The log of skipped ids: a flood of entries of work queues that are no jobs is reported once a second by a process.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::warn;

/// The shortest time between two log lines.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct SkipLog(Mutex<Untold>);

#[derive(Debug, Default)]
struct Untold {
    /// Ids that were not reported yet.
    skipped: u64,
    told_at: Option<Instant>,
}

impl SkipLog {
    /// Logs that `skipped` ids were skipped: `some` of them, each with the reason.
    pub(super) fn note(&self, skipped: u64, some: &[(String, String)]) {
        if some.is_empty() {
            return;
        }
        let mut untold = self.0.lock();
        untold.skipped += skipped;
        if untold.told_at.is_none_or(|at| at.elapsed() >= INTERVAL) {
            let some: Vec<String> = some.iter().map(|(id, why)| format!("{id}: {why}")).collect();
            warn!(ids = untold.skipped, "skipped ids in work queues: {}", some.join(", "));
            *untold = Untold { skipped: 0, told_at: Some(Instant::now()) };
        }
    }
}
