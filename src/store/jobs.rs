//! Jobs as their submitters see them: submit, start, read, retry, delete.

use std::collections::BTreeMap;

use redis::{ScriptInvocation, Value};

use super::attempts::kept;
use super::{Store, StoreError};
use crate::proto::job::{InvalidJob, Job, JobId, JobStatus, Retention};
use crate::proto::target::ScriptType;

/// The prefix of a prerequisite that only has to end; `ANY` in `shared/prerequisites.lua`.
pub(super) const ANY: char = '?';

const RETRYING: &str = "retrying a job";
/// The values by which one step of a retry continues another: an id and a place for each job.
const CONTINUED_MAX: usize = 2000;
/// The values that `retry.lua` returns.
type RetryStep = (String, String, Vec<String>, Vec<String>, usize, Vec<String>);

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
    /// One of its prerequisites failed; the failure of this job was the cause.
    FailedPrerequisite(JobId),
    /// This prerequisite does not exist any more.
    LostPrerequisite(JobId),
}

/// The answer to a retry of a job and its dependents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetriedGraph {
    /// The answer for the job itself; [`RetryOutcome::Moved`] with its state also if it had not
    /// failed, and stays as it is.
    pub outcome: RetryOutcome,
    /// Its dependents that were retried, with their new states.
    pub retried: Vec<(JobId, JobStatus)>,
    /// Dependents that failed because of a prerequisite and were not retried, and why.
    pub stay: Vec<(JobId, RetryOutcome)>,
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

    /// Runs an ended job again, or lets it wait again for its prerequisites; its attempts and
    /// crashes are reset.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn retry(&self, id: &JobId) -> Result<RetryOutcome, StoreError> {
        let (code, detail, ..) = self.retry_step(id.as_str(), "alone", &[]).await?;
        moved(&code, &detail).ok_or_else(|| StoreError::unexpected(RETRYING))
    }

    /// Retries a job if it failed, and all its dependents that failed because a prerequisite did.
    /// Each step is atomic and takes bounded time.
    ///
    /// # Errors
    /// [`StoreError`]; some of the dependents may have been retried.
    pub async fn retry_with_dependents(&self, id: &JobId) -> Result<RetriedGraph, StoreError> {
        let unexpected = || StoreError::unexpected(RETRYING);
        let mut step = self.retry_step(id.as_str(), "dependents", &[]).await?;
        let outcome = moved(&step.0, &step.1).ok_or_else(unexpected)?;
        let (mut retried, mut stay) = (Vec::new(), BTreeMap::new());
        let mut left = Vec::new();
        loop {
            let (_, _, moves, stays, done, more) = step;
            for pair in moves.chunks_exact(2) {
                let (id, state) = (pair[0].parse(), pair[1].parse());
                retried.push((id.map_err(|_| unexpected())?, state.map_err(|_| unexpected())?));
            }
            for row in stays.chunks_exact(3) {
                let id = row[0].parse().map_err(|_| unexpected())?;
                stay.insert(id, moved(&row[1], &row[2]).ok_or_else(unexpected)?);
            }
            left.extend(more.into_iter().skip(done));
            if left.is_empty() {
                break;
            }
            let next = left.split_off(left.len().saturating_sub(CONTINUED_MAX));
            step = self.retry_step("", "dependents", &next).await?;
        }
        for (id, _) in &retried {
            stay.remove(id);
        }
        Ok(RetriedGraph { outcome, retried, stay: stay.into_iter().collect() })
    }

    async fn retry_step(
        &self,
        id: &str,
        what: &str,
        left: &[String],
    ) -> Result<RetryStep, StoreError> {
        let mut script = self.scripts.retry.prepare_invoke();
        script.arg(id).arg(what).arg(left);
        self.invoke(RETRYING, &script).await
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
    ) -> Result<Option<(JobStatus, Option<Vec<u8>>)>, StoreError> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.keys.job(id)).arg("status").arg("output").arg("error");
        let fields: [Value; 3] = self.link.query("reading the state of a job", &command).await?;
        let [status, output, error] = fields.map(|value| match value {
            Value::BulkString(bytes) => Some(bytes),
            _ => None,
        });
        let status = status.and_then(|status| String::from_utf8(status).ok()?.parse().ok());
        Ok(status.map(|status| {
            let bytes = match status {
                JobStatus::Finished => output,
                JobStatus::Error => error,
                _ => None,
            };
            (status, bytes)
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
        "failed_prerequisite" => detail.parse().ok().map(RetryOutcome::FailedPrerequisite),
        "lost_prerequisite" => detail.parse().ok().map(RetryOutcome::LostPrerequisite),
        status => status.parse().ok().map(RetryOutcome::Moved),
    }
}
