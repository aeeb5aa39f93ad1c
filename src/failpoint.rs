//! Fail points: places where a process of a test aborts or hangs, to prove that its jobs are
//! recovered. Development builds have them, optimised builds have not.
//!
//! `HERO_FAILPOINT=NAME:N` aborts the process when it reaches the point NAME for the Nth time;
//! `HERO_STALL=NAME` blocks each thread that reaches it.

/// Between the wake-up of an idle actor and its claim.
pub const AFTER_WAKE: &str = "after-wake";
/// Between a claim and the start of its jobs.
pub const AFTER_CLAIM: &str = "after-claim";
/// On the thread of the job, before its script.
pub const BEFORE_RUN: &str = "before-run";
/// On the thread of the job, after its script, before the fetch loop knows.
pub const AFTER_RUN: &str = "after-run";
/// Before ends are sent to Redis.
pub const BEFORE_FINISH: &str = "before-finish";
/// After ends are recorded, before anything follows from that.
pub const AFTER_FINISH: &str = "after-finish";
/// On the thread that writes log files, before it opens one.
pub const LOG_FILE: &str = "log-file";

/// Aborts the process here if the environment says so.
#[cfg(debug_assertions)]
pub fn reached(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static WANTED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static REACHED: AtomicU32 = AtomicU32::new(0);
    let wanted = WANTED.get_or_init(|| {
        let wanted = std::env::var("HERO_FAILPOINT").ok()?;
        let (name, number) = wanted.split_once(':')?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    if let Some((wanted, number)) = wanted
        && wanted == name
        && REACHED.fetch_add(1, Ordering::Relaxed) + 1 == *number
    {
        std::process::abort();
    }
}

/// Blocks this thread for ever if `HERO_STALL` names the point, as a disk does that hangs.
#[cfg(debug_assertions)]
pub fn stalls_at(name: &str) {
    while std::env::var("HERO_STALL").is_ok_and(|stalled| stalled == name) {
        std::thread::park();
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
#[inline]
pub fn reached(_: &str) {}

/// Does nothing.
#[cfg(not(debug_assertions))]
#[inline]
pub fn stalls_at(_: &str) {}
