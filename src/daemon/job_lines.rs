//! Selects the log lines about jobs by `log.jobs`, and bounds their number: the journal drops lines of
//! a unit that writes too many, and with them those that matter.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::config::{LogConfig, LoggedJobs};
use crate::proto::report::{JOB_COURSE, JOB_FAILURE};
use crate::proto::text::counted;
use crate::proto::units::millis;

/// The period for counting lines, the same as of the journal's own limit.
const PERIOD: Duration = Duration::from_secs(30);
/// The lines of each kind in one period. By default the journal takes 10 000 of a unit.
const LINES_MAX: u32 = 4000;

/// The selection in force, and the lines that the period has left. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct JobLines(Arc<State>);

#[derive(Default)]
struct State {
    jobs: AtomicU8,
    slow_ms: AtomicU64,
    course: AtomicU32,
    failures: AtomicU32,
    left_out: AtomicU64,
    /// Notified at the first line that is left out.
    is_full: Notify,
}

impl JobLines {
    /// Selects lines by the configuration.
    pub(super) fn set(&self, config: &LogConfig) {
        self.0.slow_ms.store(millis(config.slow), Ordering::Relaxed);
        self.0.jobs.store(config.jobs as u8, Ordering::Relaxed);
    }

    /// Says in the log when lines are left out, and how many were.
    pub(super) async fn report(self) {
        loop {
            tokio::select! {
                () = self.0.is_full.notified() => {
                    warn!("more than {LINES_MAX} lines about jobs within {} s: the next ones are left out", PERIOD.as_secs());
                    continue;
                }
                () = sleep(PERIOD) => {}
            }
            let lines = self.begin_period();
            if lines > 0 {
                let left_out = counted(lines, "line", "lines");
                warn!(lines, "left out {left_out} about jobs; log.jobs selects which are written");
            }
        }
    }

    /// Returns how many lines the last period left out.
    fn begin_period(&self) -> u64 {
        self.0.course.store(0, Ordering::Relaxed);
        self.0.failures.store(0, Ordering::Relaxed);
        self.0.left_out.swap(0, Ordering::Relaxed)
    }

    /// Returns true if a line about the usual course of a job is selected.
    fn selects(&self, took_ms: Option<u64>) -> bool {
        match self.0.jobs.load(Ordering::Relaxed) {
            jobs if jobs == LoggedJobs::All as u8 => true,
            jobs if jobs == LoggedJobs::Slow as u8 => {
                took_ms.is_some_and(|took| took >= self.0.slow_ms.load(Ordering::Relaxed))
            }
            _ => false,
        }
    }

    /// Counts a line. Returns false if the period has none left.
    fn take(&self, lines: &AtomicU32) -> bool {
        if lines.fetch_add(1, Ordering::Relaxed) < LINES_MAX {
            return true;
        }
        if self.0.left_out.fetch_add(1, Ordering::Relaxed) == 0 {
            self.0.is_full.notify_one();
        }
        false
    }
}

impl<S: Subscriber> Layer<S> for JobLines {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let target = event.metadata().target();
        if target == JOB_COURSE {
            let mut took = TookMs(None);
            event.record(&mut took);
            self.selects(took.0) && self.take(&self.0.course)
        } else {
            target != JOB_FAILURE || self.take(&self.0.failures)
        }
    }
}

/// The field `took_ms` of an event.
struct TookMs(Option<u64>);

impl Visit for TookMs {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "took_ms" {
            self.0 = Some(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tracing::info;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Count(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Count {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many of the events pass.
    fn passed(lines: &JobLines, events: impl FnOnce()) -> usize {
        let count = Count::default();
        let subscriber = tracing_subscriber::registry().with(count.clone()).with(lines.clone());
        tracing::subscriber::with_default(subscriber, events);
        count.0.load(Ordering::Relaxed)
    }

    fn selecting(jobs: LoggedJobs) -> JobLines {
        let lines = JobLines::default();
        lines.set(&LogConfig { jobs, ..LogConfig::default() });
        lines
    }

    fn one_of_each() {
        info!(target: JOB_COURSE, "starts");
        info!(target: JOB_COURSE, took_ms = 999_u64, "quick");
        info!(target: JOB_COURSE, took_ms = 1000_u64, "slow");
        info!(target: JOB_FAILURE, took_ms = 1_u64, "failed");
        info!("of another kind");
    }

    #[test]
    fn configuration_selects_the_lines_of_successful_jobs() {
        assert_eq!(passed(&selecting(LoggedJobs::All), one_of_each), 5);
        assert_eq!(passed(&selecting(LoggedJobs::Slow), one_of_each), 3);
        assert_eq!(passed(&selecting(LoggedJobs::Failed), one_of_each), 2);
    }

    #[test]
    fn lines_beyond_the_limit_are_counted_and_other_kinds_pass() {
        let lines = selecting(LoggedJobs::All);
        let limit = usize::try_from(LINES_MAX).expect("a size");
        let flood = || (0..limit + 7).for_each(|_| info!(target: JOB_COURSE, "starts"));
        assert_eq!(passed(&lines, flood), limit);
        assert_eq!(passed(&lines, one_of_each), 2, "the failure and the line of another kind");
        assert_eq!(lines.begin_period(), 10);
        assert_eq!(passed(&lines, one_of_each), 5, "of the next period");
    }
}
