//! Decides what the end of an attempt means for its job. Pure.

use std::time::Duration;

use super::counts;
use crate::config::JobConfig;
use crate::engine::{Failure, StopReason, Success};
use crate::proto::job::{InvalidJob, Job};
use crate::store::{Counts, Verdict};

/// The jitter of a retry's delay, as a share of it.
const JITTER: f64 = 0.2;

/// Decides how an attempt is recorded. `None` if it is not: the job goes back to its queue, was given
/// back, or the lease was lost. `dice` is a random number from 0 to 1.
pub(super) fn decide(
    job: &Job,
    result: Result<Success, Failure>,
    config: &JobConfig,
    dice: f64,
) -> Option<Verdict> {
    let (error, exit_code) = match result {
        Ok(Success { output, exit_code }) => return Some(Verdict::Finished { output, exit_code }),
        Err(
            Failure::Stopped(StopReason::Shutdown | StopReason::LeaseLost)
            | Failure::Machine { .. },
        ) => return None,
        Err(Failure::Stopped(StopReason::Requested)) => {
            let error = "stopped_by_request".to_owned();
            return Some(Verdict::Error { error, exit_code: None, dead: false });
        }
        Err(Failure::Invalid { message: error }) => {
            return Some(Verdict::Error { error, exit_code: None, dead: false });
        }
        Err(Failure::Timeout) => ("timeout".to_owned(), None),
        Err(Failure::Script { message, exit_code }) => (message, exit_code),
    };
    if job.attempt > job.spec.retries.unwrap_or(config.retries) {
        return Some(Verdict::Error { error, exit_code, dead: true });
    }
    let delay = retry_delay(job.attempt, config, dice);
    Some(Verdict::Retry { error, exit_code, delay })
}

/// Returns the end of a job that cannot be run, and what it counts. It is never retried.
pub(super) fn refuse(invalid: &InvalidJob) -> (Verdict, Counts) {
    let verdict = Verdict::Error { error: invalid.to_string(), exit_code: None, dead: false };
    (verdict, counts::of_invalid())
}

/// Returns `retry_backoff · 2^(attempt-1)`, capped, with jitter.
fn retry_delay(attempt: u32, config: &JobConfig, dice: f64) -> Duration {
    let doubled = attempt.saturating_sub(1).min(31);
    let nominal = config.retry_backoff.saturating_mul(1 << doubled).min(config.retry_backoff_max);
    nominal.mul_f64(1.0 - JITTER + 2.0 * JITTER * dice.clamp(0.0, 1.0))
}

/// Checks a job against the bounds of the actor's configuration, and returns its timeout.
///
/// # Errors
/// [`InvalidJob`] if the job exceeds a bound.
pub(super) fn timeout_of(job: &Job, config: &JobConfig) -> Result<Duration, InvalidJob> {
    job.spec.check(&config.bounds())?;
    Ok(job.spec.timeout.unwrap_or(config.timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(attempt: u32, retries: Option<u32>) -> Job {
        let mut job = Job::new("j1".parse().expect("legal"), "1");
        job.attempt = attempt;
        job.spec.retries = retries;
        job
    }

    fn failed() -> Result<Success, Failure> {
        Err(Failure::Script { message: "no".to_owned(), exit_code: Some(3) })
    }

    #[test]
    fn failure_is_retried_until_the_attempts_are_used_up() {
        let config = JobConfig::default();
        let verdict = |attempt, retries| decide(&job(attempt, retries), failed(), &config, 0.5);
        assert!(matches!(verdict(1, Some(1)), Some(Verdict::Retry { .. })));
        assert!(matches!(verdict(2, Some(1)), Some(Verdict::Error { dead: true, .. })));
        assert!(matches!(verdict(1, None), Some(Verdict::Error { dead: true, .. })));
    }

    #[test]
    fn delay_doubles_up_to_its_cap_and_stays_within_the_jitter() {
        let config = JobConfig::default();
        let delay = |attempt, dice| retry_delay(attempt, &config, dice).as_secs_f64();
        let nominal = config.retry_backoff.as_secs_f64();
        assert!((delay(1, 0.5) - nominal).abs() < 1e-6);
        assert!((delay(4, 0.5) - 8.0 * nominal).abs() < 1e-6);
        assert!((delay(1, 0.0) - 0.8 * nominal).abs() < 1e-6);
        assert!((delay(1, 1.0) - 1.2 * nominal).abs() < 1e-6);
        let most = config.retry_backoff_max.as_secs_f64();
        assert!((delay(u32::MAX, 0.5) - most).abs() < 1e-6);
    }

    #[test]
    fn end_of_a_job_that_was_given_back_or_lost_is_not_recorded() {
        let config = JobConfig::default();
        for reason in [StopReason::Shutdown, StopReason::LeaseLost] {
            let stopped = Err(Failure::Stopped(reason));
            assert_eq!(decide(&job(1, None), stopped, &config, 0.5), None);
        }
    }

    #[test]
    fn stopped_job_is_never_retried() {
        let stopped = Err(Failure::Stopped(StopReason::Requested));
        let verdict = decide(&job(1, Some(5)), stopped, &JobConfig::default(), 0.5);
        assert!(matches!(verdict, Some(Verdict::Error { dead: false, .. })));
    }

    #[test]
    fn timeout_beyond_its_bound_makes_the_job_invalid() {
        let config = JobConfig::default();
        let mut long = job(1, None);
        assert_eq!(timeout_of(&long, &config), Ok(config.timeout));
        long.spec.timeout = Some(config.timeout_max + Duration::from_secs(1));
        assert_eq!(timeout_of(&long, &config).expect_err("too long").field, "timeout");
    }
}
