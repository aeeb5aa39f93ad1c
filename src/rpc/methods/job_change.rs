//! Methods that change one job: `job.retry` runs it again, with corrections; `job.stop` stops it, and the jobs below it; `job.tell`
//! tells it an event that its script waits for; `job.edit` changes one that has not started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::access::CheckedJob;
use super::params::Time;
use super::{CallContext, Result, RpcError, code};
use crate::client::{ChangedJob, JobChange, JobValues};
use crate::proto::job::{JobId, JobReference, JobStatus};
use crate::proto::target::IllegalName;
use crate::store::{Blocker, JobEdit};

/// A job and the change.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JobChangeResult {
    /// The id of the job.
    pub(crate) id: String,
    /// Its new state, or the change: `stopped`, `told to stop`, `deleted`; of an event `told` or `kept`.
    pub(crate) result: String,
    /// After a stop with `children`: the jobs that were stopped or told to stop, the named job first unless it had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<ResultOfJob>>,
    /// After an edit: when the job may start, if it waits for a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<String>,
    /// After an event that is kept: what the job waits for now, if its script waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
}

impl JobChangeResult {
    pub(super) fn new(id: &JobId, result: &str) -> Self {
        let (id, result) = (id.to_string(), result.to_owned());
        Self { id, result, jobs: None, run_at: None, waits_for: None }
    }
}

/// A job that was changed with others, or stays as it is.
#[derive(Serialize, JsonSchema)]
struct ResultOfJob {
    /// The id of the job.
    id: String,
    /// Its new state, or the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// The reason why it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl From<ChangedJob> for ResultOfJob {
    fn from((id, changed): ChangedJob) -> Self {
        let (result, problem) = match changed {
            Ok(word) => (Some(word), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { id: id.to_string(), result, problem }
    }
}

/// A job to run again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryOne {
    /// The id of the job.
    id: JobReference,
    /// Retries also its dependents that failed because it did; for this the job may have any state.
    #[serde(default)]
    with_dependents: bool,
    /// New settings: members as in a job to submit, such as a corrected `script`; null removes one. The old script stays
    /// in the record of the last attempt.
    #[serde(default)]
    changes: Map<String, Value>,
}

/// Jobs that run again.
#[derive(Serialize, JsonSchema)]
pub(super) struct Retried {
    /// The jobs, the named job first.
    jobs: Vec<ResultOfJob>,
}

pub(super) async fn retry(context: CallContext, params: RetryOne) -> Result<Retried> {
    let RetryOne { id, with_dependents, mut changes } = params;
    let id = context.job_named(&id).await?;
    context.keep_groups(&mut changes);
    let checked = context.may_correct(&id, &changes, "retry").await?;
    if with_dependents {
        context.may_retry_dependents()?;
    }
    let retry = JobChange::Retry { with_dependents, changes };
    let jobs = context.client.pinned([checked]).jobs().change(&id, &retry).await?;
    Ok(Retried { jobs: jobs.into_iter().map(ResultOfJob::from).collect() })
}

/// A job to stop.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopJob {
    /// The id of the job.
    pub(super) id: JobReference,
    /// Stops the jobs below it as well: its children, their children, and so on, but no job that
    /// the caller may not change.
    #[serde(default)]
    pub(super) children: bool,
}

/// Stops a job that the caller may change. Jobs of others below it stay as they are.
pub(super) async fn stop(context: CallContext, params: StopJob) -> Result<JobChangeResult> {
    let id = context.own_job(params.id, "stop").await?;
    if !params.children {
        let has_ended = context.client.stop_job(&id).await?;
        return Ok(JobChangeResult::new(&id, if has_ended { "stopped" } else { "told to stop" }));
    }
    let stopped = context.client.jobs().change(&id, &JobChange::StopTree).await?;
    let own = stopped.iter().find(|(job, _)| *job == id).and_then(|(_, of)| of.as_deref().ok());
    // One that had ended leaves its children.
    let result = JobChangeResult::new(&id, own.unwrap_or("stopped"));
    let jobs = Some(stopped.into_iter().map(ResultOfJob::from).collect());
    Ok(JobChangeResult { jobs, ..result })
}

/// An event for a job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TellOne {
    /// The id of the job.
    id: JobReference,
    /// The name of the event.
    event: String,
    /// A value for the script, up to 64 KiB as JSON.
    #[serde(default)]
    data: Value,
}

pub(super) async fn tell(context: CallContext, params: TellOne) -> Result<JobChangeResult> {
    let id = context.own_job(params.id, "tell").await?;
    let data = (!params.data.is_null()).then(|| params.data.to_string());
    let waited = context.client.jobs().tell(&id, &params.event, data.as_deref()).await?;
    if waited {
        return Ok(JobChangeResult::new(&id, "told"));
    }
    let waits_for = match context.client.queues().blocker(&id).await {
        Ok(Some(Blocker::Wait(wait))) => Some(wait.words()),
        _ => None,
    };
    Ok(JobChangeResult { waits_for, ..JobChangeResult::new(&id, "kept") })
}

/// A job to change. Omitted settings stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditOne {
    /// The id of the job.
    id: JobReference,
    /// Its priority: 0 urgent, 1 normal, 2 background.
    priority: Option<u8>,
    /// The group that may run it; empty for any group. A job for one instance is then for none.
    group: Option<String>,
    /// The earliest time to start.
    run_at: Option<Time>,
    /// Further settings: members as in a job to submit, such as a corrected `script`; null removes one.
    #[serde(default)]
    changes: Map<String, Value>,
}

/// New values of jobs. Omitted values stay as they are.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EditedValues {
    /// The priority: 0 urgent, 1 normal, 2 background.
    priority: Option<u8>,
    /// The group that may run them; empty for any group. A job for one instance is then for none.
    group: Option<String>,
    /// The earliest time to start.
    run_at: Option<Time>,
    /// Further settings: members as in a job to submit, such as a corrected `script`; null removes one.
    #[serde(default)]
    changes: Map<String, Value>,
}

impl EditedValues {
    /// Returns the change; there must be one.
    pub(super) fn edit(self) -> Result<JobValues> {
        let group = self.group.map(|name| (!name.is_empty()).then(|| name.parse()).transpose());
        let priority = self.priority.map(|number| number.to_string().parse());
        let edit = JobEdit {
            priority: priority.transpose().map_err(|error: IllegalName| error)?,
            group: group.transpose().map_err(|error: IllegalName| error)?,
            run_at: self.run_at.map(|Time(time)| time),
            ..JobEdit::default()
        };
        let values = JobValues { place: edit, changes: self.changes };
        if values == JobValues::default() {
            let message = "the edit changes nothing: give priority, group, run_at or changes";
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        Ok(values)
    }
}

pub(super) async fn edit(context: CallContext, params: EditOne) -> Result<JobChangeResult> {
    let EditOne { id, priority, group, run_at, mut changes } = params;
    let id = context.job_named(&id).await?;
    context.keep_groups(&mut changes);
    let edit = EditedValues { priority, group, run_at, changes }.edit()?;
    let client = context.client.pinned([may_edit(&context, &id, &edit).await?]);
    let state = client.jobs().edit(&id, &edit).await?;
    // It is changed: a job that cannot be read then is no error.
    let job = if state == JobStatus::Scheduled { client.get_job(&id).await.ok() } else { None };
    let run_at = job.and_then(|job| job.spec.run_at).map(|time| format!("{time:.3}"));
    Ok(JobChangeResult { run_at, ..JobChangeResult::new(&id, state.as_str()) })
}

/// Refuses an edit of a job that the caller may not change, or that takes it beyond the caller's bounds. Returns the job as
/// [`CallContext::may_correct`] does.
pub(super) async fn may_edit(
    context: &CallContext,
    id: &JobId,
    values: &JobValues,
) -> Result<CheckedJob> {
    let checked = context.may_correct(id, &values.changes, "edit").await?;
    let Some(group) = &values.place.group else { return Ok(checked) };
    let mut job = context.visible(id).await?;
    job.spec.group.clone_from(group);
    job.spec.instance = None;
    context.stays_within(&job)?;
    // The first check counts: a later job did not have it.
    Ok((checked.0, checked.1.or(job.created_at)))
}
