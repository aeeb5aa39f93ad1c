//! The last attempt of a job, which its own fields tell. The field `attempts` has those before it.

use super::attempts::{AttemptOutcome, JobAttempt};
use super::record::Job;
use super::status::JobStatus;
use super::value::HashValue;

impl Job {
    /// Returns the last attempt, as the fields of the job tell it; `None` if the job has not started, or its
    /// last attempt is among the earlier ones already.
    pub fn last_attempt(&self) -> Option<JobAttempt> {
        let started_at = self.started_at?.write();
        if self.attempts.last().is_some_and(|last| last.started_at == started_at) {
            return None;
        }
        let (ended, error) = match self.status {
            JobStatus::Started => (AttemptOutcome::Running, None),
            JobStatus::Finished => (AttemptOutcome::Finished, None),
            _ => (AttemptOutcome::Error, self.error.clone()),
        };
        Some(JobAttempt {
            attempt: Some(self.attempt).filter(|number| *number > 0),
            started_at,
            ended_at: self.finished_at.map(|time| time.write()),
            actor: self.actor.as_ref().map(ToString::to_string),
            hostname: self.hostname.clone(),
            ended,
            error,
            script: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(fields: &[(&str, &str)]) -> Job {
        let id = "a".parse().expect("legal");
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Job::from_hash(id, fields).expect("a job")
    }

    const STARTED: (&str, &str) = ("started_at", "2026-01-01T00:00:01.000Z");

    #[test]
    fn fields_of_a_job_report_its_last_attempt() {
        assert_eq!(job(&[("script", "1")]).last_attempt(), None);
        let failed = job(&[("script", "1"), STARTED, ("status", "error"), ("error", "no luck")]);
        let last = failed.last_attempt().expect("an attempt");
        assert_eq!((last.ended, last.error.as_deref()), (AttemptOutcome::Error, Some("no luck")));
        let running = job(&[("script", "1"), STARTED, ("status", "started"), ("error", "old")]);
        let last = running.last_attempt().expect("an attempt");
        assert_eq!((last.ended, last.error), (AttemptOutcome::Running, None));
    }

    #[test]
    fn last_attempt_is_reported_once() {
        let list = r#"[{"started_at":"2026-01-01T00:00:01.000Z","ended":"error"}]"#;
        let waits = job(&[("script", "1"), STARTED, ("status", "scheduled"), ("attempts", list)]);
        assert_eq!((waits.attempts.len(), waits.last_attempt()), (1, None));
        let strange = job(&[("script", "1"), STARTED, ("attempts", "3")]);
        assert!(strange.attempts.is_empty() && strange.last_attempt().is_some());
    }
}
