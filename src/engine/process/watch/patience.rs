//! The patience with processes that outlive their child and hold its output, such as the `tee` of `exec > >(tee log)`.
//! A process that still wants the processor, or waits for a disk, has not had its time: on a busy machine it may not even
//! have begun. So of such a time only what the processes used of the processor counts.

use std::time::{Duration, Instant};

/// The longest silence of processes that hold the output of a child which has exited.
const SILENT_MAX: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Activity {
    /// One of them wants the processor, or waits for a disk.
    pub(super) wants_to_run: bool,
    /// The processor time that they have used; `None` if the kernel does not report it.
    pub(super) processor: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Patience {
    grace: Duration,
    had: Duration,
    silent: Duration,
    last: (Instant, Option<Duration>),
}

impl Patience {
    /// Gives them a time from now on.
    pub(super) fn new(grace: Duration, now: Instant, activity: Activity) -> Self {
        let (had, silent) = (Duration::ZERO, Duration::ZERO);
        Self { grace, had, silent, last: (now, activity.processor) }
    }

    /// Counts the time since the last call, in which they have written or not.
    pub(super) fn count(&mut self, now: Instant, has_written: bool, activity: Activity) {
        let passed = now.saturating_duration_since(self.last.0);
        let used = activity.processor.zip(self.last.1).map(|(now, last)| now.saturating_sub(last));
        let counts = match used {
            Some(used) if activity.wants_to_run => used.min(passed),
            _ => passed,
        };
        self.had += counts;
        self.silent = if has_written { Duration::ZERO } else { self.silent + counts };
        self.last = (now, activity.processor);
    }

    pub(super) fn is_over(&self) -> bool {
        self.had >= self.grace || self.silent >= SILENT_MAX
    }

    pub(super) fn next(&self) -> Instant {
        let left = self.grace.saturating_sub(self.had).min(SILENT_MAX.saturating_sub(self.silent));
        self.last.0 + left.min(LOOK_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(2);

    fn activity(wants_to_run: bool, processor_ms: u64) -> Activity {
        Activity { wants_to_run, processor: Some(Duration::from_millis(processor_ms)) }
    }

    /// Counts seconds, each with what the processes did in it. Returns after how many the patience is over.
    fn over_after(seconds: &[(bool, Activity)]) -> Option<usize> {
        let start = Instant::now();
        let mut patience = Patience::new(GRACE, start, activity(true, 0));
        let place = seconds.iter().enumerate().position(|(place, (has_written, activity))| {
            let now = start + Duration::from_secs(place as u64 + 1);
            patience.count(now, *has_written, *activity);
            patience.is_over()
        });
        place.map(|place| place + 1)
    }

    #[test]
    fn process_that_got_no_processor_is_waited_for() {
        let starved = (false, activity(true, 3));
        assert_eq!(over_after(&[starved; 100]), None);
        let mut then_sleeps = vec![starved; 100];
        then_sleeps.push((false, activity(false, 3)));
        assert_eq!(over_after(&then_sleeps), Some(101), "it has had its time");
    }

    #[test]
    fn process_that_sleeps_writes_or_computes_has_its_time_and_no_more() {
        assert_eq!(over_after(&[(false, activity(false, 0)); 9]), Some(1));
        assert_eq!(over_after(&[(true, activity(false, 0)); 9]), Some(2));
        let computes: Vec<_> = (1..9).map(|second| (true, activity(true, second * 500))).collect();
        assert_eq!(over_after(&computes), Some(4));
        let untold = Activity { wants_to_run: true, processor: None };
        assert_eq!(over_after(&[(true, untold); 9]), Some(2));
    }
}
