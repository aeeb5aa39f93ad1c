//! Jobs as their submitters see them: submit, start, read, retry, delete.

use redis::{ScriptInvocation, Value};

use super::attempts::kept;
use super::{Store, StoreError};
use crate::proto::job::{InvalidJob, Job, JobId, JobStatus, Retention};
use crate::proto::target::ScriptType;

/// The prefix of a prerequisite that only has to end; `ANY` in `shared/prerequisites.lua`.
pub(super) const ANY: char = '?';

/// The answer to the submission of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It is stored, and in this state.
    Accepted(JobStatus),
    /// Its id is taken; nothing was written.
    Exists,
    /// This job holds its unique key and has not ended; nothing was written.
    Duplicate(JobId),
    /// It names this prerequisite, which does not exist; nothing was written.
    UnknownPrerequisite(String),
    /// Its work list is this key of another type; nothing was written.
    BrokenQueue(String),
}

/// The answer to a start or a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryOutcome {
    /// It is in this state now.
    Moved(JobStatus),
    /// There is no such job.
    Missing,
    /// Its state does not allow it.
    Refused(JobStatus),
    /// Its fields name no legal queue.
    Illegal,
    /// Another job holds its unique key.
    Duplicate(JobId),
}

/// The answer to a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// It is gone.
    Deleted,
    /// It runs, and stays.
    Running,
    /// There is no such job.
    Missing,
}

impl Store {
    /// Stores jobs and, if `start`, dispatches them, all in one atomic round trip. Every job must
    /// name its script type. At most [`Store::SUBMIT_MAX`] at a time.
    ///
    /// # Errors
    /// [`StoreError`]. After a lost connection the jobs may have been stored: submitting them again
    /// returns [`Submitted::Exists`].
    pub async fn submit(
        &self,
        jobs: &[Job],
        start: bool,
        retention: impl Into<Retention>,
    ) -> Result<Vec<Submitted>, StoreError> {
        let mut script = self.scripts.submit.prepare_invoke();
        submission(&mut script, jobs, start, retention);
        let results: Vec<(String, String)> = self.invoke("submitting jobs", &script).await?;
        results
            .into_iter()
            .map(|(code, detail)| match code.parse() {
                Ok(status) => Some(Submitted::Accepted(status)),
                Err(_) => refused(&code, detail),
            })
            .collect::<Option<Vec<_>>>()
            .filter(|results| results.len() == jobs.len())
            .ok_or_else(|| StoreError::unexpected("submitting jobs"))
    }

    /// The most jobs of one submission, so that the script's time is bounded.
    pub const SUBMIT_MAX: usize = 1000;

    /// Starts a job that was only stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn start(
        &self,
        id: &JobId,
        retention: impl Into<Retention>,
    ) -> Result<RetryOutcome, StoreError> {
        let mut script = self.scripts.start.prepare_invoke();
        script.arg(id.as_str()).arg(kept(retention));
        let (code, detail): (String, String) = self.invoke("starting a job", &script).await?;
        moved(&code, &detail).ok_or_else(|| StoreError::unexpected("starting a job"))
    }

    /// Runs an ended job again; its attempts and crashes are reset.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn retry(&self, id: &JobId) -> Result<RetryOutcome, StoreError> {
        let mut script = self.scripts.retry.prepare_invoke();
        script.arg(id.as_str());
        let (code, detail): (String, String) = self.invoke("retrying a job", &script).await?;
        moved(&code, &detail).ok_or_else(|| StoreError::unexpected("retrying a job"))
    }

    /// Deletes a job that does not run, with its log and reply. Dependents that wait for it fail.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete(
        &self,
        id: &JobId,
        retention: impl Into<Retention>,
    ) -> Result<DeleteOutcome, StoreError> {
        let mut script = self.scripts.delete.prepare_invoke();
        script.arg(id.as_str()).arg(kept(retention));
        let code: String = self.invoke("deleting a job", &script).await?;
        match code.as_str() {
            "deleted" => Ok(DeleteOutcome::Deleted),
            "running" => Ok(DeleteOutcome::Running),
            "missing" => Ok(DeleteOutcome::Missing),
            _ => Err(StoreError::unexpected("deleting a job")),
        }
    }

    /// Reads a job. `None` if it does not exist; [`InvalidJob`] if its hash cannot be parsed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn job(&self, id: &JobId) -> Result<Option<Result<Job, InvalidJob>>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys.job(id));
        let fields: Vec<(Vec<u8>, Vec<u8>)> = self.link.query("reading a job", &command).await?;
        if fields.is_empty() {
            return Ok(None);
        }
        let pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
        Ok(Some(Job::from_hash(id.clone(), pairs)))
    }

    /// Reads the state of a job and, where it is terminal, its output or error. `None` if the
    /// job does not exist, or its status is illegal.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn outcome(
        &self,
        id: &JobId,
    ) -> Result<Option<(JobStatus, Option<String>)>, StoreError> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.keys.job(id)).arg("status").arg("output").arg("error");
        let fields: [Value; 3] = self.link.query("reading the state of a job", &command).await?;
        let [status, output, error] = fields.map(|value| match value {
            Value::BulkString(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        });
        Ok(status.and_then(|status| status.parse::<JobStatus>().ok()).map(|status| {
            let text = match status {
                JobStatus::Finished => output,
                JobStatus::Error => error,
                _ => None,
            };
            (status, text)
        }))
    }
}

/// Adds the arguments that decide in which index a job stands.
pub(super) fn standing(script: &mut ScriptInvocation<'_>, job: &Job) {
    let named = |value: Option<String>| value.unwrap_or_default();
    script
        .arg(job.id.as_str())
        .arg(job.spec.script_type.as_ref().map_or("", ScriptType::as_str))
        .arg(job.spec.group.as_ref().map_or("", |group| group.as_str()))
        .arg(named(job.spec.instance.map(|instance| instance.to_string())))
        .arg(job.spec.priority.as_str())
        .arg(named(job.spec.run_at.map(|time| time.as_microsecond().to_string())))
        .arg(job.spec.unique_key.as_ref().map_or("", |key| key.as_str()));
}

/// Adds the arguments of `submit.lua`.
pub(super) fn submission(
    script: &mut ScriptInvocation<'_>,
    jobs: &[Job],
    start: bool,
    retention: impl Into<Retention>,
) {
    script.arg(if start { "start" } else { "create" }).arg(kept(retention)).arg(jobs.len());
    for job in jobs {
        standing(script, job);
        script.arg(job.spec.waits_for().count());
        for id in &job.spec.prerequisites {
            script.arg(id.as_str());
        }
        for id in &job.spec.after_any {
            script.arg(format!("{ANY}{id}"));
        }
        let fields = job.submitted_fields();
        script.arg(2 * fields.len() + 4);
        for (name, value) in fields {
            script.arg(name).arg(value);
        }
        script.arg("status").arg("").arg("created_at").arg("");
    }
}

/// The reason why a script refused a job.
pub(super) fn refused(code: &str, detail: String) -> Option<Submitted> {
    match code {
        "exists" => Some(Submitted::Exists),
        "duplicate" => detail.parse().ok().map(Submitted::Duplicate),
        "unknown_prerequisite" => Some(Submitted::UnknownPrerequisite(detail)),
        "broken_queue" => Some(Submitted::BrokenQueue(detail)),
        _ => None,
    }
}

fn moved(code: &str, detail: &str) -> Option<RetryOutcome> {
    match code {
        "missing" => Some(RetryOutcome::Missing),
        "illegal" => Some(RetryOutcome::Illegal),
        "refused" => detail.parse().ok().map(RetryOutcome::Refused),
        "duplicate" => detail.parse().ok().map(RetryOutcome::Duplicate),
        status => status.parse().ok().map(RetryOutcome::Moved),
    }
}
