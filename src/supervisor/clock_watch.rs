//! Notices steps of Redis's clock: differences to this machine's monotonic clock.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tracing::{error, warn};

use crate::proto::message::ClockStep;

/// A step that is told; a slow answer of Redis is none.
const STEP_MIN: Duration = Duration::from_secs(2);
/// The time for which a step is a problem.
const TOLD: Duration = Duration::from_hours(1);

/// The clock of one Redis.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    /// The latest time by Redis's clock, and when it was read.
    latest: Mutex<Option<(Instant, Duration)>>,
    /// The latest step, and when it was noticed.
    step: Mutex<Option<(Instant, ClockStep)>>,
}

impl ClockWatch {
    /// Notes the time by Redis's clock, and logs a step of it.
    pub(super) fn note(&self, now: Duration, of_shard: &str) {
        let read = Instant::now();
        let Some((at, then)) = self.latest.lock().replace((read, now)) else { return };
        let due = then + read.duration_since(at);
        let difference = now.abs_diff(due);
        if difference <= STEP_MIN {
            return;
        }
        let seconds = i64::try_from(difference.as_secs()).unwrap_or(i64::MAX);
        let seconds = if now > due { seconds } else { -seconds };
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
        *self.step.lock() = Some((read, step));
    }

    /// Returns the latest step, for an hour.
    pub(super) fn step(&self) -> Option<ClockStep> {
        let step = self.step.lock();
        let recent = step.as_ref().filter(|(noticed, _)| noticed.elapsed() < TOLD);
        recent.map(|(_, step)| step.clone())
    }
}
