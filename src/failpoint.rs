//! Fail points: places at which a process of a test aborts, to prove that recovery finds what it
//! held. They exist only with the feature `failpoints`, which only the tests switch on.
//!
//! `HERO_FAILPOINT=NAME:N` makes the process die when it reaches the point NAME for the Nth time.

/// Between a pop and the claim of the popped id.
pub const AFTER_POP: &str = "after-pop";
/// Between a claim and the start of its jobs.
pub const AFTER_CLAIM: &str = "after-claim";
/// On the thread of the job, before its script.
pub const BEFORE_RUN: &str = "before-run";
/// On the thread of the job, after its script and before the report to the fetch loop.
pub const AFTER_RUN: &str = "after-run";
/// Just before endings are sent to Redis.
pub const BEFORE_FINISH: &str = "before-finish";
/// When endings are recorded, before the actor acts on that.
pub const AFTER_FINISH: &str = "after-finish";

/// Aborts here if `HERO_FAILPOINT` says so.
#[cfg(feature = "failpoints")]
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

/// Does nothing in this build.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn reached(_: &str) {}
