//! Decides what the end of an attempt means for its job, and for the counters of its script type. Pure.

use std::time::Duration;

use crate::config::{DeadLetters, JobConfig};
use crate::engine::{Failure, StopReason, Success};
use crate::proto::job::{AskedWait, InvalidJob, Job, RetryDelays};
use crate::proto::target::ActorId;
use crate::proto::times::TimeHistogram;
use crate::proto::units::{brief, format_duration};
use crate::store::{Counts, Verdict};

/// The jitter of a retry's delay, as a share of it.
const JITTER: f64 = 0.2;
/// The exit code of a temporary failure in `sysexits(3)`. It postpones a job that names it in `retry_if`.
const TEMPORARY_FAILURE: i32 = 75;
/// The shortest wait of a postponed job, so that a job that always asks keeps no actor busy.
const POSTPONED_MIN: Duration = Duration::from_secs(1);

/// Decides how an attempt is recorded. `None` if it is not: the job goes back to its queue, was given
/// back, or the lease was lost. `dead_letters` is of its type; `dice` is a random number from 0 to 1.
pub(super) fn decide(
    job: &Job,
    result: Result<Success, Failure>,
    config: &JobConfig,
    dead_letters: DeadLetters,
    dice: f64,
) -> Option<Verdict> {
    let result = if job.session > 0 { result.map_err(without_another_run) } else { result };
    let (error, exit_code) = match result {
        Ok(Success { output, exit_code }) => return Some(Verdict::Finished { output, exit_code }),
        Err(
            Failure::Stopped(StopReason::Shutdown | StopReason::LeaseLost)
            | Failure::Machine { .. },
        ) => return None,
        Err(Failure::Stopped(StopReason::Requested)) => {
            return Some(ends("stopped_by_request".to_owned(), None));
        }
        Err(Failure::Killed { message, exit_code }) => {
            // A job that always takes the memory of all must end.
            let (crashes, limit) = (job.crashes.saturating_add(1), config.crash_limit);
            return (crashes >= limit).then(|| Verdict::Error {
                error: format!("{message}; crash {crashes} of {limit}"),
                exit_code,
                dead: true,
            });
        }
        Err(Failure::Invalid { message }) => return Some(ends(message, None)),
        Err(Failure::Postponed { message: error, exit_code, delay }) => {
            return Some(postpone(job, error, exit_code, delay, config, dice));
        }
        Err(Failure::Waits { wait, exit_code }) => match wait_of(job, &wait, config) {
            Ok(delay) => {
                return Some(Verdict::Wait { wait: wait.to_json(), exit_code, delay });
            }
            Err(error) => (error, exit_code),
        },
        Err(Failure::Discarded { message, exit_code }) => return Some(ends(message, exit_code)),
        Err(Failure::Timeout) => ("timeout".to_owned(), None),
        Err(Failure::Script { message, exit_code }) => (message, exit_code),
    };
    let discards = job.spec.discard_if.as_ref().zip(exit_code);
    if discards.is_some_and(|(codes, code)| codes.contains(code)) {
        return Some(ends(error, exit_code));
    }
    if let (Some(may_pass), Some(code)) = (&job.spec.retry_if, exit_code) {
        if !may_pass.contains(code) {
            return Some(ends(error, exit_code));
        }
        if code == TEMPORARY_FAILURE {
            return Some(postpone(job, error, exit_code, None, config, dice));
        }
    }
    let retries = job.spec.retries.unwrap_or(config.retries);
    if job.attempt > retries {
        // A job that nobody wants to run again by itself has not died: it failed.
        let dead = retries > 0 || dead_letters == DeadLetters::All;
        return Some(Verdict::Error { error, exit_code, dead });
    }
    let delay = retry_delay(job, job.attempt, config, dice);
    Some(Verdict::Retry { error, exit_code, delay })
}

/// Returns the end of a job that is no dead letter.
fn ends(error: String, exit_code: Option<i32>) -> Verdict {
    Verdict::Error { error, exit_code, dead: false }
}

/// Returns the line of the log after an attempt that failed, and is followed by another.
pub(super) fn told(attempt: u32, error: &str, delay: Duration) -> String {
    const CHARS_MAX: usize = 200;
    let why: String = error.lines().next().unwrap_or_default().chars().take(CHARS_MAX).collect();
    format!("attempt {attempt} failed: {why}; the next one in {}", brief(delay))
}

/// Returns the failure of a session: another run would be another session, without what it kept.
fn without_another_run(failure: Failure) -> Failure {
    let exit_code = failure.exit_code();
    let message = match failure {
        Failure::Stopped(StopReason::Shutdown) => "session lost: its actor shut down".to_owned(),
        Failure::Killed { message, .. } => format!("session lost: {message}"),
        Failure::Postponed { .. } | Failure::Waits { .. } => {
            "a session cannot run again later: end the call, and call it again".to_owned()
        }
        other => return other,
    };
    Failure::Discarded { message, exit_code }
}

/// Lets a job run again later with no attempt lost, or ends it if it was postponed for too long. `delay` is the
/// wait that its script asked for; without it, the job waits as before retries.
fn postpone(
    job: &Job,
    error: String,
    exit_code: Option<i32>,
    delay: Option<Duration>,
    config: &JobConfig,
    dice: f64,
) -> Verdict {
    // The time of a wait does not count.
    let first = job.first_started_at.or(job.started_at).max(job.wait_ended_at);
    let since =
        first.zip(job.started_at).map(|(first, last)| last.duration_since(first).unsigned_abs());
    if since.unwrap_or_default() >= config.postponed_max {
        let most = format_duration(config.postponed_max);
        let error = format!("postponed for longer than job.postponed_max ({most}): {error}");
        return Verdict::Error { error, exit_code, dead: true };
    }
    let nominal = || retry_delay(job, job.postponed.saturating_add(1), config, dice);
    let delay = delay.unwrap_or_else(nominal).clamp(POSTPONED_MIN, RetryDelays::MAX);
    Verdict::Postpone { error, exit_code, delay }
}

/// Returns the length of a wait that the script of a job asks for.
///
/// # Errors
/// The reason why the job cannot wait so: the attempt has failed.
fn wait_of(job: &Job, wait: &AskedWait, config: &JobConfig) -> Result<Duration, String> {
    let length = wait.length.unwrap_or(config.wait_max);
    if length > config.wait_max {
        let (asked, most) = (format_duration(length), format_duration(config.wait_max));
        return Err(format!("wait: {asked} are longer than job.wait_max ({most})"));
    }
    if job.waits >= config.waits_max {
        return Err(format!("wait: the job has waited {} times, job.waits_max", job.waits));
    }
    if wait.jobs.contains(&job.id) {
        return Err("wait: a job cannot wait for its own end".to_owned());
    }
    Ok(length)
}

/// Returns the end of a job that cannot be run, and its counters. It is never retried.
pub(super) fn refuse(invalid: &InvalidJob) -> (Verdict, Counts) {
    (ends(invalid.to_string(), None), vec![("failed_invalid".to_owned(), 1)])
}

/// The wait of a job whose claims cut the connection to Redis.
const CUT_WAIT: Duration = Duration::from_mins(1);
pub(super) const CUTS_CONNECTION: &str = "redis has cut the connection twice as this job was claimed, and serves other \
     calls: its fields or inputs are larger than client-output-buffer-limit or maxmemory-clients of redis allows; raise \
     that, or make them smaller; it is tried again every minute";

/// Returns the verdict on a job whose claims cut the connection to Redis: it waits, and is not charged.
pub(super) fn cuts_connection() -> (Verdict, Counts) {
    let error = CUTS_CONNECTION.to_owned();
    (Verdict::Postpone { error, exit_code: None, delay: CUT_WAIT }, Counts::new())
}

/// Returns the end of a job that starts too late, and its counters; `None` if it may start, or has started before.
pub(super) fn expired(job: &Job) -> Option<(Verdict, Counts)> {
    let within = job.spec.expires?;
    let started_before = job.attempt > 1
        || job.crashes > 0
        || job.first_started_at.is_some()
        || !job.attempts.is_empty();
    let waited: Duration =
        job.started_at?.duration_since(job.created_at.max(job.spec.run_at)?).try_into().ok()?;
    if started_before || waited <= within {
        return None;
    }
    let error = format!("expired: it did not start within {}", format_duration(within));
    Some((ends(error, None), vec![("failed_expired".to_owned(), 1)]))
}

/// Returns the wait before a retry of this number, with jitter: by the job, or by the configuration.
fn retry_delay(job: &Job, retry: u32, config: &JobConfig, dice: f64) -> Duration {
    let (first, longest) = (config.retry_backoff, config.retry_backoff_max);
    let nominal = job.spec.backoff.unwrap_or(RetryDelays { first, longest }).before(retry);
    nominal.mul_f64(1.0 - JITTER + 2.0 * JITTER * dice.clamp(0.0, 1.0))
}

/// Checks a job against the bounds of the actor's configuration, and returns its timeout.
pub(super) fn timeout_of(job: &Job, config: &JobConfig) -> Result<Duration, InvalidJob> {
    job.spec.check(&config.bounds())?;
    Ok(job.spec.timeout.unwrap_or(config.timeout))
}

/// Checks a job against the bounds of the token that submitted it: a program that moved it gives it the files and secrets of no
/// other type or group.
pub(super) fn check_bounds(job: &Job, actor: &ActorId) -> Result<(), InvalidJob> {
    let Some(bounds) = &job.bounds else { return Ok(()) };
    match bounds.outside(Some(actor.script_type.as_str()), Some(actor.group.as_str())) {
        Some(why) => Err(InvalidJob::new(
            "bounds",
            format!("of the token that submitted it do not allow actor {actor}: {why}"),
        )),
        None if bounds.limit_jobs() => job.spec.check_bound_log_file(),
        None => Ok(()),
    }
}

/// Returns the counters of the attempt's times and, if its job ends in `error`, of the reason.
pub(super) fn counts_of_attempt(
    waited: Option<Duration>,
    took: Duration,
    failure: Option<&Failure>,
    verdict: &Verdict,
) -> Counts {
    let mut counts: Counts = TimeHistogram::Run.counts(took).into();
    counts.extend(waited.into_iter().flat_map(|waited| TimeHistogram::Wait.counts(waited)));
    if let (Verdict::Error { .. }, Some(reason)) = (verdict, failure.and_then(counted_reason)) {
        counts.push((format!("failed_{reason}"), 1));
    }
    counts
}

/// Returns the reason as its counter names it; `None` for a job that was stopped, which has not failed.
fn counted_reason(failure: &Failure) -> Option<&'static str> {
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
    fn session_never_runs_again() {
        let mut session = job(1, Some(3));
        session.session = 60;
        let wait = Box::new(AskedWait::of_json(r#"{"for": "1s"}"#).expect("legal"));
        let killed = "killed for memory".to_owned();
        for (failure, told) in [
            (Failure::Stopped(StopReason::Shutdown), "session lost: its actor shut down"),
            (
                Failure::Killed { message: killed, exit_code: None },
                "session lost: killed for memory",
            ),
            (Failure::postponed(None, String::new(), Some(75)), "a session cannot run again later"),
            (Failure::Waits { wait, exit_code: Some(0) }, "a session cannot run again later"),
        ] {
            let config = JobConfig::default();
            let verdict = decide(&session, Err(failure), &config, DeadLetters::All, 0.5);
            let Some(Verdict::Error { error, dead: false, .. }) = verdict else {
                panic!("{verdict:?}")
            };
            assert!(error.starts_with(told), "{error}");
        }
        let lost = Err(Failure::Stopped(StopReason::LeaseLost));
        assert!(decide(&session, lost, &JobConfig::default(), DeadLetters::All, 0.5).is_none());
    }

    #[test]
    fn failure_is_retried_until_the_attempts_are_used_up() {
        let config = JobConfig::default();
        let verdict = |attempt, retries| {
            decide(&job(attempt, retries), failed(), &config, DeadLetters::Retried, 0.5)
        };
        assert!(matches!(verdict(1, Some(1)), Some(Verdict::Retry { .. })));
        assert!(matches!(verdict(2, Some(1)), Some(Verdict::Error { dead: true, .. })));
        assert!(matches!(verdict(3, Some(1)), Some(Verdict::Error { dead: true, .. })));
    }

    #[test]
    fn failure_without_retries_is_a_dead_letter_only_if_its_type_asks_for_it() {
        let is_dead = |config: &JobConfig, retries, kept| match decide(
            &job(9, retries),
            failed(),
            config,
            kept,
            0.5,
        ) {
            Some(Verdict::Error { dead, .. }) => dead,
            other => panic!("{other:?}"),
        };
        let none = JobConfig { retries: 0, ..JobConfig::default() };
        let two = JobConfig { retries: 2, ..JobConfig::default() };
        for (config, retries, kept, dead) in [
            (&none, None, DeadLetters::Retried, false),
            (&none, None, DeadLetters::All, true),
            (&none, Some(1), DeadLetters::Retried, true),
            (&two, None, DeadLetters::Retried, true),
            (&two, Some(0), DeadLetters::Retried, false),
            (&two, Some(0), DeadLetters::All, true),
        ] {
            assert_eq!(is_dead(config, retries, kept), dead, "{retries:?} {kept:?}");
        }
    }

    #[test]
    fn postponed_job_loses_no_attempt_and_waits_as_it_asks_within_bounds() {
        let config = JobConfig::default();
        let wait = |delay, postponed| {
            let mut job = job(9, Some(0));
            job.postponed = postponed;
            let failure = Failure::postponed(delay, String::new(), Some(75));
            match decide(&job, Err(failure), &config, DeadLetters::Retried, 0.5) {
                Some(Verdict::Postpone { delay, .. }) => delay.as_secs(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(wait(Some(Duration::from_mins(5)), 0), 300);
        assert_eq!([0, 1, 3].map(|times| wait(None, times)), [1, 2, 8]);
        assert_eq!(wait(Some(Duration::ZERO), 0), 1);
        assert_eq!(wait(Some(Duration::MAX), 0), RetryDelays::MAX.as_secs());
    }

    #[test]
    fn job_waits_as_it_asks_within_bounds_and_else_fails() {
        let config = JobConfig { waits_max: 2, ..JobConfig::default() };
        let of = |waits, asked: &str| {
            let mut job = job(1, Some(0));
            job.waits = waits;
            let wait = Box::new(AskedWait::of_json(asked).expect("legal"));
            let failure = Failure::Waits { wait, exit_code: Some(0) };
            match decide(&job, Err(failure), &config, DeadLetters::Retried, 0.5) {
                Some(Verdict::Wait { wait, delay, .. }) => format!("{wait} {}", delay.as_secs()),
                Some(Verdict::Error { error, .. }) => error,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of(1, r#"{"event":"a","for":"1h"}"#), r#"{"event":"a"} 3600"#);
        assert_eq!(of(0, r#"{"event":"a"}"#), r#"{"event":"a"} 2592000"#);
        assert_eq!(of(0, r#"{"for":"31d"}"#), "wait: 31d are longer than job.wait_max (30d)");
        assert_eq!(of(2, r#"{"for":"1s"}"#), "wait: the job has waited 2 times, job.waits_max");
        assert_eq!(of(0, r#"{"jobs":["j1"]}"#), "wait: a job cannot wait for its own end");
    }

    #[test]
    fn exit_code_75_postpones_only_a_job_that_names_it() {
        let config = JobConfig::default();
        let failure = || Err(Failure::Script { message: "busy".to_owned(), exit_code: Some(75) });
        let verdict = decide(&job(1, None), failure(), &config, DeadLetters::Retried, 0.5);
        assert!(matches!(verdict, Some(Verdict::Error { .. })), "{verdict:?}");
        let mut names_it = job(1, None);
        names_it.spec.retry_if = Some("75".parse().expect("legal"));
        let verdict = decide(&names_it, failure(), &config, DeadLetters::Retried, 0.5);
        assert!(matches!(verdict, Some(Verdict::Postpone { .. })), "{verdict:?}");
    }

    #[test]
    fn only_a_job_that_has_not_started_expires_after_its_submission_or_its_time() {
        let at = |text: &str| text.parse().ok();
        let mut late = job(1, None);
        late.spec.expires = Some(Duration::from_hours(2));
        late.created_at = at("2026-01-01T00:00:00Z");
        late.started_at = at("2026-01-01T02:00:00.001Z");
        let error = "expired: it did not start within 2h".to_owned();
        let end = Verdict::Error { error, exit_code: None, dead: false };
        assert_eq!(expired(&late).map(|(end, _)| end), Some(end));
        let may_start = |change: &dyn Fn(&mut Job)| {
            let mut job = late.clone();
            change(&mut job);
            assert_eq!(expired(&job), None, "{job:?}");
        };
        may_start(&|job| job.spec.expires = None);
        may_start(&|job| job.started_at = at("2026-01-01T02:00:00Z"));
        may_start(&|job| job.spec.run_at = at("2026-01-01T00:00:00.001Z"));
        may_start(&|job| job.attempt = 2);
        may_start(&|job| job.first_started_at = at("2026-01-01T00:00:01Z"));
    }

    #[test]
    fn job_that_was_postponed_for_too_long_fails() {
        let config = JobConfig::default();
        let ends = |first: &str| {
            let mut job = job(1, Some(5));
            job.first_started_at = first.parse().ok();
            job.started_at = "2026-01-02T00:00:00Z".parse().ok();
            decide(
                &job,
                Err(Failure::postponed(None, "busy".to_owned(), None)),
                &config,
                DeadLetters::Retried,
                0.5,
            )
        };
        let early = ends("2026-01-01T00:00:01Z");
        assert!(matches!(early, Some(Verdict::Postpone { .. })), "{early:?}");
        let error = "postponed for longer than job.postponed_max (1d): busy".to_owned();
        let late = Some(Verdict::Error { error, exit_code: None, dead: true });
        assert_eq!(ends("2026-01-01T00:00:00Z"), late);
    }

    #[test]
    fn job_that_is_discarded_or_failed_for_good_is_neither_retried_nor_a_dead_letter() {
        let config = JobConfig::default();
        let discarded = Failure::discarded("no".to_owned(), Some(65));
        let verdict = decide(&job(1, Some(5)), Err(discarded), &config, DeadLetters::Retried, 0.5);
        assert!(matches!(verdict, Some(Verdict::Error { dead: false, .. })), "{verdict:?}");
        let mut picky = job(1, Some(5));
        picky.spec.retry_if = Some("1-2".parse().expect("legal"));
        let verdict = decide(&picky, failed(), &config, DeadLetters::Retried, 0.5);
        assert!(matches!(verdict, Some(Verdict::Error { dead: false, .. })), "{verdict:?}");
        let mut discards = job(1, Some(5));
        discards.spec.discard_if = Some("3,65".parse().expect("legal"));
        let verdict = decide(&discards, failed(), &config, DeadLetters::Retried, 0.5);
        assert!(matches!(verdict, Some(Verdict::Error { dead: false, .. })), "{verdict:?}");
        let other = Err(Failure::Script { message: "no".to_owned(), exit_code: Some(4) });
        let verdict = decide(&discards, other, &config, DeadLetters::Retried, 0.5);
        assert!(matches!(verdict, Some(Verdict::Retry { .. })), "{verdict:?}");
        let timeout = decide(&picky, Err(Failure::Timeout), &config, DeadLetters::Retried, 0.5);
        assert!(matches!(timeout, Some(Verdict::Retry { .. })), "{timeout:?}");
    }

    #[test]
    fn job_with_waits_of_its_own_uses_them() {
        let mut own = job(3, Some(5));
        own.spec.backoff = Some("10s..30s".parse().expect("legal"));
        let verdict = decide(&own, failed(), &JobConfig::default(), DeadLetters::Retried, 0.5);
        assert!(
            matches!(verdict, Some(Verdict::Retry { delay, .. }) if delay.as_secs() == 30),
            "{verdict:?}"
        );
    }

    #[test]
    fn delay_doubles_up_to_its_cap_and_stays_within_the_jitter() {
        let config = JobConfig::default();
        let job = job(1, None);
        let delay = |attempt, dice| retry_delay(&job, attempt, &config, dice).as_secs_f64();
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
            assert_eq!(decide(&job(1, None), stopped, &config, DeadLetters::Retried, 0.5), None);
        }
    }

    #[test]
    fn job_that_was_killed_for_the_memory_of_all_runs_again_until_the_crash_limit() {
        let config = JobConfig { crash_limit: 3, ..JobConfig::default() };
        let of = |crashes| {
            let mut killed = job(1, Some(0));
            killed.crashes = crashes;
            let message = "out of memory: its unit".to_owned();
            decide(
                &killed,
                Err(Failure::Killed { message, exit_code: None }),
                &config,
                DeadLetters::Retried,
                0.5,
            )
        };
        assert_eq!((of(0), of(1)), (None, None));
        let error = "out of memory: its unit; crash 3 of 3".to_owned();
        assert_eq!(of(2), Some(Verdict::Error { error, exit_code: None, dead: true }));
    }

    #[test]
    fn stopped_job_is_never_retried() {
        let stopped = Err(Failure::Stopped(StopReason::Requested));
        let verdict =
            decide(&job(1, Some(5)), stopped, &JobConfig::default(), DeadLetters::Retried, 0.5);
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

    fn counted(failure: Option<&Failure>, verdict: &Verdict) -> Vec<String> {
        let waited = Some(Duration::from_millis(2));
        let counts = counts_of_attempt(waited, Duration::from_secs(3), failure, verdict);
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
