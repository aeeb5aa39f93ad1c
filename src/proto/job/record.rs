//! A job as Redis holds it: the settings of its submitter, and the fields that Hero writes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::attempts::{AttemptOutcome, JobAttempt};
use super::bounds::InvalidJob;
use super::id::{BootId, JobId};
use super::output::JobOutput;
use super::signature::FileDigests;
use super::spec::JobSpec;
use super::status::JobStatus;
use super::value::{FieldKind, HashValue};
use crate::proto::access::Bounds;
use crate::proto::target::ActorId;

pub(super) struct OwnField {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) kind: FieldKind,
    /// Sets it from the text of the hash; text that cannot be read counts as absent.
    pub(super) read: fn(&mut Job, &str),
    /// Writes the text of the hash; `None` at the default.
    pub(super) write: fn(&Job) -> Option<String>,
}

macro_rules! job {
    ($( $(#[doc = $doc:literal])+ $field:ident: $type:ty, )+) => {
        /// A job. A field that the hash does not have is at its default.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Job {
            /// Its id, also the end of its key.
            pub id: JobId,
            pub spec: JobSpec,
            pub status: JobStatus,
            $( $(#[doc = $doc])+ pub $field: $type, )+
            /// True if its id stays: its submitter chose it, or it tells its shard already.
            pub has_fixed_id: bool,
            /// The delay that its submitter asked for. It is in no hash: a client turns it into
            /// `run_at` when it submits the job.
            pub delay: Option<Duration>,
            /// The digests of the files that it was given, for its signature. They are in no hash.
            pub file_digests: FileDigests,
            pub output: Option<JobOutput>,
            /// Fields that this version does not know. They stay in the hash.
            pub extra: BTreeMap<String, String>,
        }

        impl From<JobSpec> for Job {
            /// A job that is not stored yet, with the id that the submitter chose or a random one.
            fn from(mut spec: JobSpec) -> Self {
                let has_fixed_id = spec.id.is_some();
                let id = spec.id.take().unwrap_or_else(JobId::random);
                let (status, extra) = (JobStatus::Created, BTreeMap::new());
                Self {
                    id,
                    spec,
                    status,
                    $($field: <$type>::default(),)+
                    has_fixed_id,
                    delay: None,
                    file_digests: FileDigests::new(),
                    output: None,
                    extra,
                }
            }
        }

        /// Every field that only Hero writes, but the state and the output.
        pub(super) static OWN_FIELDS: &[OwnField] = &[$(
            OwnField {
                name: stringify!($field),
                doc: concat!($($doc),+),
                kind: <$type as HashValue>::KIND,
                read: |job, text| job.$field = <$type>::read(text).unwrap_or_default(),
                write: |job| (job.$field != <$type>::default()).then(|| job.$field.write()),
            },
        )+];
    };
}

job! {
    /// The graph or batch that it belongs to.
    graph_id: Option<JobId>,
    /// The caller and the context of its unique key; without them the key is shared by all jobs.
    unique_scope: Option<String>,
    /// The bounds of the token that submitted it, or the first job above it: its children stay within them.
    bounds: Option<Bounds>,
    /// Its prerequisites were created before this time: a later job with the same id is not a prerequisite.
    prerequisites_at: Option<Timestamp>,
    /// The time when it was stored.
    created_at: Option<Timestamp>,
    /// The time of its last change of state.
    updated_at: Option<Timestamp>,
    /// The start of its last attempt.
    started_at: Option<Timestamp>,
    /// The start of its first attempt, if another one follows or followed that.
    first_started_at: Option<Timestamp>,
    /// The time when it became terminal.
    finished_at: Option<Timestamp>,
    /// Jobs that wait for it, or did: the first of them.
    dependents: Vec<JobId>,
    /// The number of further dependents.
    dependents_more: u64,
    /// The job whose script submitted it.
    parent: Option<JobId>,
    /// The generations from a job that no script submitted down to it.
    generation: u32,
    /// The jobs that its script has submitted.
    children: Vec<JobId>,
    /// Attempts so far, the running one included.
    attempt: u32,
    /// The number of actors that died running it.
    crashes: u32,
    /// The number of times that its script asked to be run again later.
    postponed: u32,
    /// The actor that runs it, or ran it last.
    actor: Option<ActorId>,
    /// The boot of that actor.
    boot_id: Option<BootId>,
    /// The reason why it ended in `error`, or why its last attempt failed.
    error: Option<String>,
    /// The exit code, where a process ran.
    exit_code: Option<i32>,
    /// The machine of the actor, if the job ended in `error`.
    hostname: Option<String>,
    /// The state that its script has kept for the next attempt, as JSON.
    kept_state: Option<String>,
    /// The time at which its script kept it.
    kept_state_at: Option<Timestamp>,
    /// The event, the jobs or the time that it waits for while it is scheduled, as JSON.
    wait: Option<String>,
    /// The number of waits that its script has asked for.
    waits: u32,
    /// The event that ended its last wait, as JSON.
    event: Option<String>,
    /// The time when its last wait ended.
    wait_ended_at: Option<Timestamp>,
    /// Events that it was told before it waits for them, as JSON.
    told_events: Option<String>,
    /// The seconds without a call after which the session that it is ends; 0 if it is no session.
    session: u64,
    /// The calls that the session has had.
    session_calls: u64,
    /// The call that the session serves, as JSON.
    session_call: Option<String>,
    /// The latest attempts before the last one.
    attempts: Vec<JobAttempt>,
}

impl Job {
    /// Returns the fields that only Hero writes, but the state and the output: each with its
    /// documentation and its shape.
    pub fn own_fields() -> impl Iterator<Item = (&'static str, &'static str, FieldKind)> {
        OWN_FIELDS.iter().map(|own| (own.name, own.doc, own.kind))
    }

    /// Sets its delay: by the clock that says `now` it starts as much later.
    pub fn set_delay(&mut self, delay: Duration, now: Timestamp) -> Result<(), InvalidJob> {
        let time = now.checked_add(delay);
        let late = |_| InvalidJob::new("run_at", "is too far in the future");
        (self.delay, self.spec.run_at) = (Some(delay), Some(time.map_err(late)?));
        Ok(())
    }

    /// Creates a job that is not stored yet, everything but its script at the default.
    pub fn new(id: JobId, script: impl Into<String>) -> Self {
        Self::from(JobSpec { id: Some(id), ..JobSpec::new(script) })
    }

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
