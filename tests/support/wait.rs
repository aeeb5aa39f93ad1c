//! The one place where tests wait.

use std::time::{Duration, Instant};

use super::{Redis, keys};

/// Far longer than anything takes on a machine that works.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two looks: short at first, and longer while the condition stays away, so that tests that wait
/// leave the processors to those that work.
const POLL: Duration = Duration::from_millis(2);
const POLL_MAX: Duration = Duration::from_millis(25);
/// The pause is longer than the look before it by this factor, up to a bound: a look that starts a program leaves the
/// processors to what it waits for.
const LOOK_FACTOR: u32 = 5;
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(200);

/// Waits until a condition holds, and fails the test by the condition's name if it never does.
#[expect(clippy::disallowed_methods, reason = "the waits of all tests are built on this sleep")]
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    loop {
        let look = Instant::now();
        if condition() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
        let pause = (began.elapsed() / 20).clamp(POLL, POLL_MAX);
        std::thread::sleep(pause.max((look.elapsed() * LOOK_FACTOR).min(LOOK_PAUSE_MAX)));
    }
}

/// Waits until a job is in a state.
#[track_caller]
pub(crate) fn until(redis: &Redis, id: &str, status: &str) {
    wait_until(&format!("job {id} is {status}"), || {
        redis.field(&keys::job(id), "status").as_deref() == Some(status)
    });
}
