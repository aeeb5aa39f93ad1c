//! Log lines about the jobs of an actor: start, success, retry, end in error. Each names the job
//! and its script type in its text, and has the job's id as a field, so that the journal finds it.

use std::time::Duration;

use tracing::{info, warn};

use super::running_job::RunningJob;
use crate::engine::Failure;
use crate::proto::job::Job;
use crate::proto::report::{JOB_COURSE, JOB_FAILURE};
use crate::proto::target::ActorId;
use crate::proto::units::millis;
use crate::store::Verdict;

/// Logs a line about an attempt with its fields; the time that it took is not known at its start.
macro_rules! log {
    ($level:ident, $target:expr, ($run:expr, $actor:expr, $took:expr), $($text:tt)+) => {
        $level!(
            target: $target,
            job_id = %$run.job.id,
            script_type = %$actor.script_type,
            group = %$actor.group,
            instance = %$actor.instance,
            queue = %$run.queue,
            attempt = $run.job.attempt,
            waited_ms = waited(&$run.job).map(millis),
            caller_id = %$run.job.spec.caller_id,
            context_id = %$run.job.spec.context_id,
            trace_id = trace_id($run),
            took_ms = $took.map(millis),
            $($text)+
        )
    };
}

/// Logs that a job starts, with what its journal has not reported: a submission happens elsewhere.
pub(super) fn started(run: &RunningJob, actor: &ActorId) {
    let job = &run.job;
    log!(
        info,
        JOB_COURSE,
        (run, actor, None),
        "job {} of {} starts from queue {}{}{}",
        job.id,
        actor.script_type,
        run.queue,
        attempt(job),
        origin(job)
    );
}

/// Logs what the end of an attempt means: success, a retry, or the end in `error`. Without a verdict
/// the job goes back to its queue.
pub(super) fn ended(
    run: &RunningJob,
    actor: &ActorId,
    failure: Option<&Failure>,
    verdict: Option<&Verdict>,
    took: Duration,
) {
    let (id, script_type, attempted) = (&run.job.id, &actor.script_type, Some(took));
    let (took_text, attempt) = (shown(took), attempt(&run.job));
    let why = failure.map(ToString::to_string).unwrap_or_default();
    let why = run.log.hide(&why);
    match verdict {
        Some(Verdict::Finished { .. }) => {
            log!(
                info,
                JOB_COURSE,
                (run, actor, attempted),
                "job {id} of {script_type} finished in {took_text}{attempt}"
            );
        }
        Some(Verdict::Retry { delay, .. }) => {
            let delay = shown(*delay);
            log!(
                info,
                JOB_FAILURE,
                (run, actor, attempted),
                "job {id} of {script_type} failed in {took_text}{attempt}; it is retried in {delay}: {why}"
            );
        }
        Some(later @ (Verdict::Postpone { delay, .. } | Verdict::Wait { delay, .. })) => {
            let (within, delay) = (later_by(later), shown(*delay));
            log!(
                info,
                JOB_COURSE,
                (run, actor, attempted),
                "job {id} of {script_type} asked after {took_text}{attempt} to run again {within} {delay}: {why}"
            );
        }
        Some(Verdict::Error { dead: true, .. }) => {
            log!(
                warn,
                JOB_FAILURE,
                (run, actor, attempted),
                "job {id} of {script_type} ended in error in {took_text}{attempt}; it is a dead letter: {why}"
            );
        }
        Some(Verdict::Error { .. }) => {
            log!(
                info,
                JOB_FAILURE,
                (run, actor, attempted),
                "job {id} of {script_type} ended in error in {took_text}{attempt}: {why}"
            );
        }
        None => {
            log!(
                info,
                JOB_FAILURE,
                (run, actor, attempted),
                "job {id} of {script_type} goes back to queue {} after {took_text}{attempt}: {why}",
                run.queue
            );
        }
    }
}

/// Returns the word before the time after which a job runs again: a wait may end before.
fn later_by(verdict: &Verdict) -> &'static str {
    if matches!(verdict, Verdict::Wait { .. }) { "within" } else { "in" }
}

/// Returns the id of the job's trace, for the journal; without one the line has no such field.
fn trace_id(run: &RunningJob) -> Option<String> {
    run.traceparent.map(|trace| trace.trace_id())
}

/// Returns the attempt in words, unless it is the first and only one.
fn attempt(job: &Job) -> String {
    match job.attempt {
        0 | 1 => String::new(),
        number => format!(", attempt {number}"),
    }
}

/// Returns who submitted the job, and how long ago, by Redis's clock.
fn origin(job: &Job) -> String {
    let caller = match job.spec.caller_id.as_str() {
        "" => String::new(),
        caller => format!(" by {caller}"),
    };
    let ago = since(job.created_at, job).map(|age| format!(" {} ago", shown(age)));
    let waited = waited(job).map(|waited| format!(", waited {}", shown(waited)));
    if caller.is_empty() && ago.is_none() {
        return String::new();
    }
    format!("; submitted{}{caller}{}", ago.unwrap_or_default(), waited.unwrap_or_default())
}

/// Returns how long the job stood in its queue. A new job has no change of state yet.
pub(super) fn waited(job: &Job) -> Option<Duration> {
    since(job.updated_at.or(job.created_at), job)
}

/// Returns the time from `begin` to the start of the attempt. Both are of Redis's clock.
fn since(begin: Option<jiff::Timestamp>, job: &Job) -> Option<Duration> {
    job.started_at?.duration_since(begin?).try_into().ok()
}

/// Returns a duration as a person reads it: in ms below a second, in s above.
fn shown(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        1000..100_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ => format!("{} s", duration.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(attempt: u32) -> Job {
        let mut job = Job::new("j1".parse().expect("legal"), "1");
        job.attempt = attempt;
        job.created_at = "2026-01-31T12:00:00.000Z".parse().ok();
        job.updated_at = "2026-01-31T12:00:01.000Z".parse().ok();
        job.started_at = "2026-01-31T12:00:03.250Z".parse().ok();
        job
    }

    #[test]
    fn origin_of_a_job_has_its_age_its_caller_and_its_wait() {
        let mut job = job(1);
        assert_eq!(origin(&job), "; submitted 3.2 s ago, waited 2.2 s");
        job.spec.caller_id = "alice".to_owned();
        assert_eq!(origin(&job), "; submitted 3.2 s ago by alice, waited 2.2 s");
        // A foreign program writes no times, and its clock may be ahead.
        job.updated_at = "2026-01-31T13:00:00.000Z".parse().ok();
        assert_eq!(origin(&job), "; submitted 3.2 s ago by alice");
        job.created_at = None;
        assert_eq!(origin(&job), "; submitted by alice");
    }

    #[test]
    fn durations_are_short() {
        let of = |ms| shown(Duration::from_millis(ms));
        assert_eq!([of(0), of(999), of(1500), of(123_456)], ["0 ms", "999 ms", "1.5 s", "123 s"]);
    }

    #[test]
    fn first_attempt_is_not_numbered() {
        assert_eq!([attempt(&job(1)), attempt(&job(2))], ["", ", attempt 2"]);
    }
}
