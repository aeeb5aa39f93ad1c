//! The attempts of a job: those that its hash keeps, and the last one.

use jiff::Timestamp;
use serde::Deserialize;

use super::super::doc::JobDoc;
use super::super::parts::time_of;
use crate::proto::job::{AttemptOutcome, JobAttempt};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownAttempt {
    pub(super) number: Option<u64>,
    pub(super) started: Timestamp,
    pub(super) ended: Option<Timestamp>,
    pub(super) actor: String,
    pub(super) machine: String,
    /// The class of its end, as of a state.
    pub(super) class: &'static str,
    pub(super) word: &'static str,
    pub(super) error: String,
}

fn shown(end: AttemptOutcome) -> (&'static str, &'static str) {
    match end {
        AttemptOutcome::Running => ("running", "Running"),
        AttemptOutcome::Finished => ("finished", "Finished"),
        AttemptOutcome::Error => ("error", "Error"),
        AttemptOutcome::Crashed => ("error", "Actor died"),
        AttemptOutcome::ReturnedAttempt => ("queued", "Given back"),
        AttemptOutcome::Postponed => ("queued", "Postponed"),
    }
}

/// Returns the attempts of a job, the oldest first, the running one included.
pub(super) fn of(job: &JobDoc) -> Vec<ShownAttempt> {
    let attempts = job.get("attempts").and_then(|all| Vec::<JobAttempt>::deserialize(all).ok());
    attempts.into_iter().flatten().filter_map(shown_attempt).collect()
}

fn shown_attempt(attempt: JobAttempt) -> Option<ShownAttempt> {
    let (class, word) = shown(attempt.ended);
    Some(ShownAttempt {
        number: attempt.attempt.map(u64::from),
        started: time_of(&attempt.started_at)?,
        ended: attempt.ended_at.as_deref().and_then(time_of),
        actor: attempt.actor.unwrap_or_default(),
        machine: attempt.hostname.unwrap_or_default(),
        class,
        word,
        error: attempt.error.unwrap_or_default(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::web::job) fn job() -> JobDoc {
        JobDoc::from(json!({
            "id": "a", "status": "started", "attempt": 2, "retries": 3, "actor": "python:io:2",
            "started_at": "2026-01-31T12:59:20Z", "created_at": "2026-01-31T12:58:00Z",
            "progress_text": "<b>page 3",
            "attempts": [{
                "attempt": 1, "started_at": "2026-01-31T12:58:01Z", "ended_at": "2026-01-31T12:58:09Z",
                "actor": "python:io:1", "hostname": "<b>node-1", "ended": "error",
                "error": "<script>bad</script>\nmore",
            }, {
                "attempt": 2, "started_at": "2026-01-31T12:59:20Z", "actor": "python:io:2", "ended": "running",
            }],
        }))
    }

    #[test]
    fn running_attempt_follows_those_that_are_kept() {
        let words: Vec<&str> = of(&job()).iter().map(|attempt| attempt.word).collect();
        assert_eq!(words, ["Error", "Running"]);
    }

    #[test]
    fn job_that_never_ran_has_no_attempt() {
        let waits = JobDoc::from(json!({ "status": "dispatched", "attempts": "nonsense" }));
        assert_eq!(of(&waits), []);
    }
}
