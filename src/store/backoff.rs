//! The wait before Redis is tried again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
/// The longest wait: short enough for everything to work again soon after Redis does.
const LONGEST: Duration = Duration::from_secs(1);

/// Doubles from one failure to the next, with jitter, so that processes do not come back in step.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts a failure, and returns the wait after it.
    pub fn failed(&mut self) -> Duration {
        let nominal = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        nominal.mul_f64(0.5 + 0.5 * fastrand::f64())
    }

    /// Forgets the failures. Returns true if there were any.
    pub fn succeeded(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }
}

/// Whole milliseconds, at least one: zero would mean "never" or "at once" to Redis.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).clamp(1, u64::MAX >> 12)
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Reads a time from now in microseconds, -1 for none.
pub(super) fn from_now(us: i64) -> Option<Duration> {
    u64::try_from(us).ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_bound_and_restart_after_a_success() {
        let mut backoff = Backoff::default();
        assert!(backoff.failed() <= FIRST);
        for _ in 0..100 {
            assert!(backoff.failed() <= LONGEST);
        }
        assert!(backoff.failed() >= LONGEST / 2);
        assert!(backoff.succeeded() && !backoff.succeeded());
        assert!(backoff.failed() <= FIRST);
    }
}
