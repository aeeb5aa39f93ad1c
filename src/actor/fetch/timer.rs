//! The time when the loop turns though nothing happens.

use std::time::{Duration, Instant};

use super::Fetch;

/// The time between two checks of a lease that is in doubt.
const DOUBT_LATENCY: Duration = Duration::from_millis(20);

impl Fetch {
    /// Returns when the loop must turn though nothing happens.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        let now = Instant::now();
        let due = if self.boot.health.lease_in_doubt() {
            Some(now + DOUBT_LATENCY)
        } else {
            let back = self.jobs.take_waiting_at().filter(|_| !self.claiming.is_claiming());
            let due = [
                self.recording.flush_due(),
                self.jobs.spread_at(),
                back,
                self.leaves_tasks_at(),
                self.looks_again_at,
                self.selectors.due_at(),
                self.waiting.wakes_again_at(),
            ];
            self.retry.until.or_else(|| due.into_iter().flatten().min())
        };
        [due, self.draining.deadline(now), self.unit_signals.next()].into_iter().flatten().min()
    }
}
