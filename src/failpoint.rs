//! Fail points: places at which a process of a test dies at once, without a word to anybody, to
//! prove that whatever it held is found again. Only with the feature `failpoints`, which the
//! tests switch on and no other build has; else they are nothing.
//!
//! `HERO_FAILPOINT=NAME:N` makes the process die when it reaches the point NAME for the Nth time.

/// Between a pop and the claim of what it brought.
pub const AFTER_POP: &str = "after-pop";
/// Between a claim and the start of its jobs.
pub const AFTER_CLAIM: &str = "after-claim";
/// On the thread of the job, just before its script.
pub const BEFORE_RUN: &str = "before-run";
/// On the thread of the job, when the script has ended and nobody else knows.
pub const AFTER_RUN: &str = "after-run";
/// Just before endings are sent.
pub const BEFORE_FINISH: &str = "before-finish";
/// When endings are recorded, and before anything follows from that.
pub const AFTER_FINISH: &str = "after-finish";

/// Dies here if the environment says so.
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

/// Nothing.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn reached(_: &str) {}
