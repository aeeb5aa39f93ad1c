//! Counters of a script type that an attempt adds to, beside its end. Pure.

use std::time::Duration;

use crate::engine::Failure;
use crate::proto::times::TimeHistogram;
use crate::store::{Counts, Verdict};

/// Returns the counters of the attempt's times and, if its job ends in `error`, of the reason.
pub(super) fn of_attempt(
    waited: Option<Duration>,
    took: Duration,
    failure: Option<&Failure>,
    verdict: &Verdict,
) -> Counts {
    let mut counts: Counts = TimeHistogram::Run.counts(took).into();
    counts.extend(waited.into_iter().flat_map(|waited| TimeHistogram::Wait.counts(waited)));
    if let (Verdict::Error { .. }, Some(reason)) = (verdict, failure.and_then(reason)) {
        counts.push((format!("failed_{reason}"), 1));
    }
    counts
}

/// Returns the reason as its counter names it; `None` for a job that was stopped, which has not failed.
fn reason(failure: &Failure) -> Option<&'static str> {
    match failure {
        // A job that is postponed or waits does not end.
        Failure::Script { .. } | Failure::Postponed { .. } | Failure::Waits { .. } => {
            Some("script")
        }
        Failure::Discarded { .. } => Some("discarded"),
        Failure::Invalid { .. } => Some("invalid"),
        Failure::Timeout => Some("timeout"),
        Failure::Stopped(_) => None,
        Failure::Machine { .. } | Failure::Killed { .. } => Some("machine"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(failure: Option<&Failure>, verdict: &Verdict) -> Vec<String> {
        let waited = Some(Duration::from_millis(2));
        let counts = of_attempt(waited, Duration::from_secs(3), failure, verdict);
        counts.into_iter().map(|(name, by)| format!("{name}={by}")).collect()
    }

    #[test]
    fn attempt_counts_its_times_and_the_reason_of_a_last_failure() {
        let done = Verdict::Finished { output: "".into(), exit_code: None };
        let times = ["run_le_5=1", "run_us=3000000", "wait_le_0.005=1", "wait_us=2000"];
        assert_eq!(counted(None, &done), times);
        let error = "timeout".to_owned();
        let again = Verdict::Retry { error: error.clone(), exit_code: None, delay: Duration::ZERO };
        assert_eq!(counted(Some(&Failure::Timeout), &again), times);
        let last = Verdict::Error { error, exit_code: None, dead: true };
        assert_eq!(
            counted(Some(&Failure::Timeout), &last).last().expect("one"),
            "failed_timeout=1"
        );
    }
}
