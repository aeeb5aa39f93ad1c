//! Notices steps of Redis's clock: differences to this machine's clock since its start.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use nix::time::ClockId;
use parking_lot::Mutex;
use tracing::{error, warn};

use crate::proto::message::ClockStep;

/// A step that is reported; the drift of a clock is none.
const STEP_MIN: Duration = Duration::from_secs(2);
/// The time for which a step is a problem.
const TOLD: Duration = Duration::from_hours(1);

/// Returns the time since this machine started, with the time that it was suspended: Redis's clock goes on then.
pub(super) fn uptime() -> Duration {
    ClockId::CLOCK_BOOTTIME.now().map(Duration::from).unwrap_or_default()
}

/// A time by Redis's clock. It is of some time between the call and its answer: either process may stop meanwhile.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    called: Duration,
    answered: Duration,
    redis: Duration,
}

impl ClockReading {
    /// Returns how far the clock was set forward since a reading before, at least, and how far back.
    fn steps_since(&self, before: &Self) -> (Duration, Duration) {
        let least = before.redis + self.called.saturating_sub(before.answered);
        let most = before.redis + self.answered.saturating_sub(before.called);
        (self.redis.saturating_sub(most), least.saturating_sub(self.redis))
    }
}

#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    latest: Mutex<Option<ClockReading>>,
    /// The latest step, and when it was noticed.
    step: Mutex<Option<(Instant, ClockStep)>>,
}

impl ClockWatch {
    /// Notes the time by Redis's clock, which it was asked for at `called`, and logs a step of it.
    pub(super) fn note(&self, called: Duration, now: Duration, of_shard: &str) {
        let reading = ClockReading { called, answered: uptime(), redis: now };
        let Some(before) = self.latest.lock().replace(reading) else { return };
        let (forward, back) = reading.steps_since(&before);
        let difference = forward.max(back);
        if difference <= STEP_MIN {
            return;
        }
        let seconds = i64::try_from(difference.as_secs()).unwrap_or(i64::MAX);
        let seconds = if forward > back { seconds } else { -seconds };
        let when = Timestamp::from_duration(SignedDuration::try_from(now).unwrap_or_default());
        let at = when.map(|at| format!("{at:.0}")).unwrap_or_default();
        let step = ClockStep { at, seconds };
        let what = step.text(of_shard);
        if step.is_long() {
            error!(
                "{what}: times of jobs and schedules are off by as much; check the time of its machine"
            );
        } else {
            warn!("{what}");
        }
        *self.step.lock() = Some((Instant::now(), step));
    }

    /// Returns the latest step, for an hour.
    pub(super) fn step(&self) -> Option<ClockStep> {
        let step = self.step.lock();
        let recent = step.as_ref().filter(|(noticed, _)| noticed.elapsed() < TOLD);
        recent.map(|(_, step)| step.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a reading: of the call, of its answer, and of Redis's clock.
    fn reading([called, answered, redis]: [u64; 3]) -> ClockReading {
        let [called, answered, redis] = [called, answered, redis].map(Duration::from_secs);
        ClockReading { called, answered, redis }
    }

    #[test]
    fn step_is_what_no_wait_for_an_answer_explains() {
        let before = reading([100, 100, 1000]);
        for (now, forward, back, why) in [
            ([110, 110, 1010], 0, 0, "no step"),
            ([110, 170, 1010], 0, 0, "this process was stopped after Redis had answered"),
            ([110, 170, 1070], 0, 0, "Redis was stopped before it answered"),
            ([110, 110, 1070], 60, 0, "set forward"),
            ([110, 110, 950], 0, 60, "set back"),
            ([110, 115, 1075], 60, 0, "set forward during a slow answer"),
        ] {
            let steps = reading(now).steps_since(&before);
            assert_eq!(steps, (Duration::from_secs(forward), Duration::from_secs(back)), "{why}");
        }
        // A reading after one whose answer was late.
        let late = reading([110, 170, 1010]);
        assert_eq!(reading([171, 171, 1071]).steps_since(&late), Default::default());
    }

    #[test]
    fn step_that_was_noticed_is_reported() {
        let watch = ClockWatch::default();
        let now = Duration::from_hours(490_896);
        watch.note(uptime(), now, "");
        assert_eq!(watch.step(), None);
        watch.note(uptime(), now + Duration::from_hours(1), "");
        assert_eq!(watch.step().map(|step| step.seconds > 3590), Some(true));
    }
}
