//! A time to wait for, as the kernel wants to be told.

use std::time::Instant;

use rustix::event::Timespec;

/// The time from now until `at`, as `poll` wants it; rounded up so that it never wakes early.
pub(in crate::engine) fn timeout_until(at: Instant) -> Timespec {
    let left = at.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}
