//! Whether it is worth it to make something ahead.

use std::time::{Duration, Instant};

/// How old may be what was made ahead: the files that its rules name may have been replaced since, as
/// they may be under a child that has just begun.
pub(super) const FRESH: Duration = Duration::from_millis(100);

/// Tells whether jobs come one after the other.
#[derive(Debug, Default)]
pub(super) struct Demand {
    ended_at: Option<Instant>,
    is_lively: bool,
}

impl Demand {
    /// A job comes.
    pub(super) fn comes(&mut self, now: Instant) {
        self.is_lively = self.ended_at.is_some_and(|at| is_fresh(at, now));
    }

    /// A job ends. Returns whether the last that came did so soon after another had ended: then the
    /// next may, too.
    pub(super) fn ends(&mut self, now: Instant) -> bool {
        self.ended_at = Some(now);
        self.is_lively
    }
}

/// Whether what was made at `made_at` may still be used.
pub(super) fn is_fresh(made_at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(made_at) < FRESH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_expected_where_one_came_soon_after_another_however_long_they_take() {
        let (mut demand, start) = (Demand::default(), Instant::now());
        demand.comes(start);
        assert!(!demand.ends(start + 10 * FRESH), "one alone says nothing of a second");
        demand.comes(start + 10 * FRESH + FRESH / 2);
        assert!(demand.ends(start + 20 * FRESH));
        demand.comes(start + 21 * FRESH);
        assert!(!demand.ends(start + 21 * FRESH), "it came late");
    }
}
