//! `job.*`: submits jobs, waits for them, reads, stops, retries and deletes them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::caller::Scope;
use super::super::method::{CallContext, Method};
use super::super::rpc_error::{RpcError, code};
use super::job_files::{self, GivenFiles, given_files};
use super::job_types::{JobDocument, JobSettings};
use super::params::{OneJob, Spelled, confirmed, patience};
use super::repeats::{SubmittedId, awaited_or_same, has_key, stored_or_same};
use super::told_job::ToldJob;
use super::{job_edit, job_list, job_log, job_stop, job_tell};
use crate::client::{AwaitedJob, ClientError};
use crate::proto::job::{Job, JobFiles, JobId, JobOutput};

pub(super) fn methods() -> Vec<Method> {
    let methods = [
        Method::new(
            "job.submit",
            Scope::Submit,
            "Submits a job and returns its id; if a job with its unique key has not ended, that job's id. A \
             submission that is repeated with the same id and the same content returns that job.",
            submit,
        ),
        Method::new(
            "job.create",
            Scope::Submit,
            "Stores a job without starting it; job.start does that.",
            create,
        ),
        Method::new("job.start", Scope::Submit, "Starts a created job.", start),
        Method::new(
            "job.run",
            Scope::Submit,
            "Submits a job, waits for its end and returns it; if the wait ends first, as it is then.",
            run,
        ),
        Method::new("job.get", Scope::Read, "Returns a job with all its fields.", get),
        Method::new(
            "job.list",
            Scope::Read,
            "Lists jobs by state, the newest first, page by page; with filters, those among the latest 10 000.",
            job_list::list,
        ),
        Method::new(
            "job.wait",
            Scope::Read,
            "Waits for the end of a job and returns it; if the wait ends first, as it is then.",
            wait,
        ),
        Method::new("job.output", Scope::Read, "Returns the output of a finished job.", output),
        Method::new("job.log", Scope::Read, "Returns lines of a job's log.", job_log::log),
        Method::new(
            "job.files",
            Scope::Read,
            "Lists the files of a job: those that its script left, and those that it was given.",
            job_files::files,
        ),
        Method::new("job.file", Scope::Read, "Returns a file of a job.", job_files::file),
    ];
    methods.into_iter().chain(changes()).collect()
}

/// The methods that change jobs or delete them.
fn changes() -> [Method; 6] {
    [
        Method::new(
            "job.stop",
            Scope::Submit,
            "Stops a job, waiting or running, and the jobs below it if asked.",
            job_stop::stop,
        ),
        Method::new(
            "job.delete",
            Scope::Submit,
            "Deletes a job that is not running, with its log.",
            delete,
        ),
        Method::new(
            "job.clone",
            Scope::Submit,
            "Submits a copy of a job, with changes, and returns its id.",
            clone,
        ),
        Method::new(
            "job.edit",
            Scope::Submit,
            "Changes the priority, the group, the earliest time, the script or other settings of a job that has not started.",
            job_edit::edit,
        ),
        Method::new(
            "job.tell",
            Scope::Submit,
            "Tells a job an event that its script waits for; one that it does not wait for yet is kept for its next wait.",
            job_tell::tell,
        ),
        Method::new("job.clear", Scope::Admin, "Deletes every job that is not running.", clear),
    ]
}

/// A job to submit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubmitNew {
    /// The job.
    job: JobSettings,
    /// Files for its script, in Base64, by their names.
    #[serde(default)]
    inputs: GivenFiles,
    /// The standard input of its script, in Base64.
    stdin: Option<String>,
}

/// A job to submit and to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunNew {
    /// The job.
    job: JobSettings,
    /// The longest time to wait, in seconds, up to 3600; 60 without it. The job goes on after it.
    wait: Option<f64>,
    /// Files for its script, in Base64, by their names.
    #[serde(default)]
    inputs: GivenFiles,
    /// The standard input of its script, in Base64.
    stdin: Option<String>,
}

/// The id of a job.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Id {
    /// The id of the job.
    pub(crate) id: String,
}

async fn submit(context: CallContext, given: SubmitNew) -> Result<SubmittedId, RpcError> {
    let job = own_job(&context, &given.job).await?;
    let files = given_files(&context, &job, given.inputs, given.stdin)?;
    let stored = context.client.submit_with_files(job.clone(), &files).await;
    Ok(stored_or_same(&context, job, !files.is_empty(), stored).await?.into())
}

/// Returns a job as one of the caller's, which the caller may submit.
async fn own_job(context: &CallContext, settings: &JobSettings) -> Result<Job, RpcError> {
    let job = settings.job(context).await?;
    context.check_new(std::slice::from_ref(&job)).await?;
    Ok(job)
}

/// Submits a job as one of the caller's, who waits for its end.
pub(super) async fn submitted_awaited(
    context: &CallContext,
    settings: &JobSettings,
) -> Result<AwaitedJob, RpcError> {
    let job = own_job(context, settings).await?;
    let stored = context.client.submit_awaited(job.clone(), &JobFiles::default()).await;
    awaited_or_same(context, job, false, stored).await
}

async fn create(context: CallContext, given: SubmitNew) -> Result<SubmittedId, RpcError> {
    let job = own_job(&context, &given.job).await?;
    let files = given_files(&context, &job, given.inputs, given.stdin)?;
    let stored = context.client.create_with_files(job.clone(), &files).await;
    Ok(stored_or_same(&context, job, !files.is_empty(), stored).await?.into())
}

/// Stores a job of the caller without starting it.
pub(super) async fn created(
    context: &CallContext,
    settings: &JobSettings,
) -> Result<JobId, RpcError> {
    let job = own_job(context, settings).await?;
    let stored = context.client.create_job(job.clone()).await;
    Ok(stored_or_same(context, job, false, stored).await?.id)
}

async fn start(
    context: CallContext,
    OneJob { id: Spelled(id) }: OneJob,
) -> Result<ToldJob, RpcError> {
    let id = context.job_named(id).await?;
    context.may_change(&id, "start").await?;
    Ok(ToldJob::new(&id, context.client.start_job(&id).await?.as_str()))
}

async fn run(context: CallContext, given: RunNew) -> Result<JobDocument, RpcError> {
    let patience = patience(given.wait)?;
    let job = own_job(&context, &given.job).await?;
    let files = given_files(&context, &job, given.inputs, given.stdin)?;
    let stored = context.client.submit_awaited(job.clone(), &files).await;
    let job = awaited_or_same(&context, job, !files.is_empty(), stored).await?;
    context.begun.iter().for_each(|begun| drop(begun.send_replace(Some(job.id.clone()))));
    ended(&context, &job, patience).await
}

/// Waits for the end of a job, however it ends, or for the end of the patience, and returns the job.
async fn ended(
    context: &CallContext,
    job: &AwaitedJob,
    patience: Duration,
) -> Result<JobDocument, RpcError> {
    match context.client.await_end(job, Some(patience)).await {
        Ok(_) | Err(ClientError::JobFailed { .. } | ClientError::GaveUp { .. }) => {
            Ok(JobDocument::new(context, &context.client.get_job(&job.id).await?))
        }
        Err(error) => Err(RpcError::from(error).with("id", job.id.as_str())),
    }
}

async fn get(
    context: CallContext,
    OneJob { id: Spelled(id) }: OneJob,
) -> Result<JobDocument, RpcError> {
    let id = context.job_named(id).await?;
    context.may_see(&id).await?;
    Ok(JobDocument::of(&context, context.client.job_document(&id).await?))
}

/// A job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AwaitEnd {
    /// The id of the job.
    id: Spelled<JobId>,
    /// The longest time to wait, in seconds, up to 3600; 60 without it. The job goes on after it.
    wait: Option<f64>,
}

async fn wait(context: CallContext, given: AwaitEnd) -> Result<JobDocument, RpcError> {
    let (Spelled(id), patience) = (given.id, patience(given.wait)?);
    let id = context.job_named(id).await?;
    context.may_see(&id).await?;
    ended(&context, &id.into(), patience).await
}

/// The output of a job.
#[derive(Serialize, JsonSchema)]
struct GivenOutput {
    /// The output: text, or Base64.
    output: String,
    /// `base64` if the output is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_encoding: Option<&'static str>,
}

async fn output(
    context: CallContext,
    OneJob { id: Spelled(id) }: OneJob,
) -> Result<GivenOutput, RpcError> {
    let id = context.job_named(id).await?;
    let output = output_of(&context, &id).await?;
    let output_encoding = matches!(output, JobOutput::Bytes(_)).then_some("base64");
    Ok(GivenOutput { output: output.into_text(), output_encoding })
}

/// Returns the output of a job that the caller may see.
pub(super) async fn output_of(context: &CallContext, id: &JobId) -> Result<JobOutput, RpcError> {
    context.may_see(id).await?;
    let output = context.client.get_job_output(id).await?;
    output.ok_or_else(|| {
        let message = format!("job {id} has no output yet; wait for it with job.wait");
        RpcError::new(code::CONFLICT, message).with("id", id.as_str())
    })
}

async fn delete(
    context: CallContext,
    OneJob { id: Spelled(id) }: OneJob,
) -> Result<ToldJob, RpcError> {
    let id = context.job_named(id).await?;
    deleted(&context, &id).await?;
    Ok(ToldJob::new(&id, "deleted"))
}

/// Deletes a job that the caller may change.
pub(super) async fn deleted(context: &CallContext, id: &JobId) -> Result<(), RpcError> {
    context.may_change(id, "delete").await?;
    Ok(context.client.delete_job(id).await?)
}

/// A job to submit again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CopyJob {
    /// The id of the job.
    id: Spelled<JobId>,
    /// Members as in a job to submit; null removes one.
    #[serde(default)]
    changes: Map<String, Value>,
}

async fn clone(context: CallContext, given: CopyJob) -> Result<Id, RpcError> {
    let Spelled(id) = given.id;
    context.needs(Scope::Read, "job.clone")?;
    let id = context.job_named(id).await?;
    let seen = context.visible(&id).await?;
    let is_own = seen.spec.caller_id == context.caller.name;
    let mut changes = given.changes;
    if !is_own && !context.operates() {
        // The copy is one of the caller's; it may not read the variables of others.
        changes.entry("caller_id").or_insert(Value::Null);
        changes.entry("env_vars").or_insert(Value::Null);
    }
    let mut job = context.client.clone_of(&id, &changes).await?;
    context.resolve(&mut job).await?;
    context.adopt(&mut job)?;
    context.check_new(std::slice::from_ref(&job)).await?;
    let has_key = has_key(&job);
    let id = context.told(has_key, context.client.submit_copy(&id, job).await).await?;
    Ok(Id { id: id.to_string() })
}

/// Nothing but a confirmation.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClearJobs {
    /// Confirms that all are deleted: true.
    yes: bool,
}

/// A number of deleted things.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Deleted {
    /// The number of those that were deleted.
    pub(crate) deleted: u64,
}

async fn clear(context: CallContext, given: ClearJobs) -> Result<Deleted, RpcError> {
    confirmed("job.clear", given.yes)?;
    cleared(&context).await
}

/// Deletes all jobs that are not running.
pub(super) async fn cleared(context: &CallContext) -> Result<Deleted, RpcError> {
    context.needs_no_bounds("delete all jobs")?;
    Ok(Deleted { deleted: context.client.clear_all_jobs().await? })
}
