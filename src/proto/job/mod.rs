//! A job: what it is called, where it stands, what it is to run, and its hash in Redis.

mod hash;
mod id;
mod json;
mod status;

pub use hash::InvalidJob;
pub use id::{BootId, JobId, UniqueKey};
pub use status::JobStatus;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::target::{ActorId, Group, Instance, Priority, Queue, ScriptType, Target};

/// What a configuration allows every job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobBounds {
    /// The longest script, in bytes.
    pub script_size_max: u64,
    /// The longest timeout.
    pub timeout_max: Duration,
    /// The longest time that a job may be kept after its end.
    pub retention_max: Duration,
}

/// How long jobs are kept after their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// One that does not say so itself.
    pub default: Duration,
    /// The most that one may say, whoever wrote its hash.
    pub max: Duration,
}

impl From<Duration> for Retention {
    /// What no job may exceed by itself.
    fn from(default: Duration) -> Self {
        Self { default, max: default }
    }
}

/// A job as its hash holds it. What nobody wrote is at its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id, also the end of its key.
    pub id: JobId,
    /// Who submitted it; empty if nobody said.
    pub caller_id: String,
    /// In whose context it runs; empty if nobody said.
    pub context_id: String,
    /// What runs it; without one, whatever actor takes it.
    pub script_type: Option<ScriptType>,
    /// The pool of actors it is for; any without one.
    pub group: Option<Group>,
    /// The one actor it is for; any without one.
    pub instance: Option<Instance>,
    /// How soon it is taken.
    pub priority: Priority,
    /// The text to run.
    pub script: String,
    /// How long one attempt may take; without it, what the actor's configuration says.
    pub timeout: Option<Duration>,
    /// Attempts after the first; without it, what the actor's configuration says.
    pub retries: Option<u32>,
    /// Whether it may run beside others of its instance.
    pub concurrent: bool,
    /// A file for its log, inside the log folder of the actor's machine.
    pub log_path: Option<String>,
    /// Environment variables of the script.
    pub env_vars: BTreeMap<String, String>,
    /// Jobs that must have finished before it is dispatched.
    pub prerequisites: Vec<JobId>,
    /// Jobs that must have ended, however, before it is dispatched.
    pub after_any: Vec<JobId>,
    /// The names by which its script knows some of the two, besides their ids.
    pub prerequisite_names: BTreeMap<String, JobId>,
    /// Not before this time.
    pub run_at: Option<Timestamp>,
    /// At most one job with this key is on its way at a time.
    pub unique_key: Option<UniqueKey>,
    /// How long it is kept after its end; without it, what the configuration says.
    pub retention: Option<Duration>,
    /// Whether a reply is pushed when it ends.
    pub reply: bool,
    /// Where it stands.
    pub status: JobStatus,
    /// When it was stored.
    pub created_at: Option<Timestamp>,
    /// When its state last changed.
    pub updated_at: Option<Timestamp>,
    /// When its last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    pub finished_at: Option<Timestamp>,
    /// Jobs that wait for it, or did: the first of them.
    pub dependents: Vec<JobId>,
    /// How many more there are.
    pub dependents_more: u64,
    /// Attempts so far, the running one included.
    pub attempt: u32,
    /// How many actors died running it.
    pub crashes: u32,
    /// Who runs it, or ran it last.
    pub actor: Option<ActorId>,
    /// Which start of that actor.
    pub boot_id: Option<BootId>,
    /// What it left when it finished.
    pub output: Option<String>,
    /// Why it ended in `error`, or why its last attempt failed.
    pub error: Option<String>,
    /// The exit code, where a process ran.
    pub exit_code: Option<i32>,
    /// Fields that this version does not know. They stay in the hash.
    pub extra: BTreeMap<String, String>,
}

impl Job {
    /// A job that nobody has stored yet, everything but its script at the default.
    pub fn new(id: JobId, script: impl Into<String>) -> Self {
        Self {
            id,
            caller_id: String::new(),
            context_id: String::new(),
            script_type: None,
            group: None,
            instance: None,
            priority: Priority::default(),
            script: script.into(),
            timeout: None,
            retries: None,
            concurrent: true,
            log_path: None,
            env_vars: BTreeMap::new(),
            prerequisites: Vec::new(),
            after_any: Vec::new(),
            prerequisite_names: BTreeMap::new(),
            run_at: None,
            unique_key: None,
            retention: None,
            reply: true,
            status: JobStatus::Created,
            created_at: None,
            updated_at: None,
            started_at: None,
            finished_at: None,
            dependents: Vec::new(),
            dependents_more: 0,
            attempt: 0,
            crashes: 0,
            actor: None,
            boot_id: None,
            output: None,
            error: None,
            exit_code: None,
            extra: BTreeMap::new(),
        }
    }

    /// Most jobs that one may wait for, so that its hash stays within what an actor takes.
    pub const PREREQUISITES_MAX: usize = 10_000;

    /// Checks what a configuration says about every job.
    ///
    /// # Errors
    /// [`InvalidJob`] if the job asks for more than it may.
    pub fn check_bounds(&self, bounds: &JobBounds) -> Result<(), InvalidJob> {
        if self.script.len() as u64 > bounds.script_size_max {
            let reason = format!("is longer than {} bytes", bounds.script_size_max);
            return Err(InvalidJob::new("script", reason));
        }
        if self.prerequisites.len() + self.after_any.len() > Self::PREREQUISITES_MAX {
            let reason = format!("name more than {} jobs", Self::PREREQUISITES_MAX);
            return Err(InvalidJob::new("prerequisites", reason));
        }
        not_longer("timeout", self.timeout, bounds.timeout_max)?;
        not_longer("retention", self.retention, bounds.retention_max)
    }

    /// Every job that it waits for, named once or more often.
    pub fn waits_for(&self) -> impl Iterator<Item = &JobId> {
        self.prerequisites.iter().chain(&self.after_any)
    }

    /// The queue it goes to, once it has a script type.
    pub fn queue(&self) -> Option<Queue> {
        let target = Target::of(self.script_type.clone()?, self.group.clone(), self.instance);
        Some(Queue { target, priority: self.priority })
    }
}

fn not_longer(field: &str, asked: Option<Duration>, most: Duration) -> Result<(), InvalidJob> {
    match asked {
        Some(asked) if asked > most => {
            let (asked, most) = (asked.as_secs_f64(), most.as_secs_f64());
            Err(InvalidJob::new(field, format!("`{asked}` is more than {most} seconds")))
        }
        _ => Ok(()),
    }
}
