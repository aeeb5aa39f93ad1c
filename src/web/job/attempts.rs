//! The attempts of a job: those that its hash keeps, and the last one.

use jiff::Timestamp;
use serde_json::Value;

use super::super::doc::JobDoc;
use crate::proto::job::JobStatus;

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownAttempt {
    pub(super) number: Option<u64>,
    pub(super) started: Timestamp,
    pub(super) ended: Option<Timestamp>,
    pub(super) actor: String,
    pub(super) machine: String,
    /// The class of its end, as of a state.
    pub(super) class: &'static str,
    /// The end as a word.
    pub(super) word: &'static str,
    pub(super) error: String,
}

/// The ends that an attempt has, as the hash stores them: the class and the word of each.
const ENDS: [(&str, &str, &str); 6] = [
    ("running", "running", "Running"),
    ("finished", "finished", "Finished"),
    ("error", "error", "Error"),
    ("crashed", "error", "Actor died"),
    ("given_back", "queued", "Given back"),
    ("postponed", "queued", "Postponed"),
];

fn end_of(word: &str) -> (&'static str, &'static str) {
    let end = ENDS.iter().find(|(stored, ..)| *stored == word);
    end.map_or(("created", "Unknown"), |(_, class, word)| (class, word))
}

/// Returns the attempts of a job, the oldest first: those that its hash keeps, and the last one.
pub(super) fn of(job: &JobDoc) -> Vec<ShownAttempt> {
    let kept = job.get("attempts").and_then(Value::as_array);
    let mut attempts: Vec<ShownAttempt> =
        kept.into_iter().flatten().filter_map(kept_attempt).collect();
    let last = last_attempt(job);
    let is_known = |last: &ShownAttempt| attempts.iter().any(|of| of.started == last.started);
    attempts.extend(last.filter(|last| !is_known(last)));
    attempts
}

fn kept_attempt(value: &Value) -> Option<ShownAttempt> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (class, word) = end_of(text("ended"));
    Some(ShownAttempt {
        number: value.get("attempt").and_then(Value::as_u64),
        started: text("started_at").parse().ok()?,
        ended: text("ended_at").parse().ok(),
        actor: text("actor").to_owned(),
        machine: text("hostname").to_owned(),
        class,
        word,
        error: text("error").to_owned(),
    })
}

/// Returns the attempt that the fields of the job describe.
fn last_attempt(job: &JobDoc) -> Option<ShownAttempt> {
    let (class, word) = match job.status() {
        JobStatus::Started => end_of("running"),
        JobStatus::Finished => end_of("finished"),
        JobStatus::Error => end_of("error"),
        _ => return None,
    };
    Some(ShownAttempt {
        number: job.whole("attempt"),
        started: job.time("started_at")?,
        ended: job.time("finished_at"),
        actor: job.text("actor").to_owned(),
        machine: String::new(),
        class,
        word,
        error: if class == "error" { job.text("error").to_owned() } else { String::new() },
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
            }],
        }))
    }

    #[test]
    fn running_attempt_follows_those_that_are_kept() {
        let words: Vec<&str> = of(&job()).iter().map(|attempt| attempt.word).collect();
        assert_eq!(words, ["Error", "Running"]);
    }

    #[test]
    fn attempt_that_is_kept_is_not_shown_twice() {
        let mut value = serde_json::to_value(job()).expect("an object");
        let running =
            json!({ "attempt": 2, "started_at": "2026-01-31T12:59:20Z", "ended": "running" });
        value["attempts"].as_array_mut().expect("a list").push(running);
        assert_eq!(of(&JobDoc::from(value)).len(), 2);
    }

    #[test]
    fn job_that_never_ran_has_no_attempt() {
        let waits = JobDoc::from(json!({ "status": "dispatched", "attempts": "nonsense" }));
        assert_eq!(of(&waits), []);
    }
}
