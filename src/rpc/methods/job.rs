//! `job.*`: submits jobs, waits for them, reads, stops, retries and deletes them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::method::read;
use super::job_change::{self, JobChangeResult};
use super::job_files::{self, EncodedFiles, given_files};
use super::job_types::{JobDocument, JobSettings};
use super::params::{OneJob, confirmed, patience};
use super::submitted::{SubmittedId, awaited_or_same, stored_or_same};
use super::{CallContext, Result, RpcError, Scope, code, job_list};
use crate::client::{AwaitedJob, ClientError};
use crate::proto::job::{Job, JobFiles, JobOutput, JobReference, Setting, TREES};

methods! {
    /// Submits a job and returns its id; if a job with its unique key has not ended, that job's id. A submission
    /// that is repeated with the same id and the same content returns that job.
    "job.submit", Scope::Submit => submit;
    /// Stores a job without starting it; job.start does that.
    "job.create", Scope::Submit => create;
    /// Starts a created job.
    "job.start", Scope::Submit => start;
    /// Submits a job, waits for its end and returns it; if the wait ends first, as it is then.
    "job.run", Scope::Submit => run;
    /// Returns a job with all its fields.
    "job.get", Scope::Read => get;
    /// Lists jobs, the latest change first, page by page: all, or those that the filters find.
    "job.list", Scope::Read => job_list::list;
    /// Lists the ids of the jobs that wait for a job, or did, as they were submitted, page by page.
    "job.dependents", Scope::Read => job_list::dependents;
    /// Waits for the end of a job and returns it; if the wait ends first, as it is then.
    "job.wait", Scope::Read => wait;
    /// Returns the output of a finished job.
    "job.output", Scope::Read => output;
    /// Returns lines of a job's log.
    "job.log", Scope::Read => job_files::log;
    /// Lists the files of a job: those that its script left, and those that it was given.
    "job.files", Scope::Read => job_files::files;
    /// Returns a file of a job.
    "job.file", Scope::Read => job_files::file;
    /// Stops a job, waiting or running, and the jobs below it if asked.
    "job.stop", Scope::Submit => job_change::stop;
    /// Runs an ended job again, with a corrected script or other settings if they are given.
    "job.retry", Scope::Submit => job_change::retry;
    /// Deletes a job that is not running, with its log.
    "job.delete", Scope::Submit => delete;
    /// Submits a copy of a job, with changes, and returns its id.
    "job.clone", Scope::Submit => clone;
    /// Changes the priority, the group, the earliest time, the script or other settings of a job that has not
    /// started.
    "job.edit", Scope::Submit => job_change::edit;
    /// Tells a job an event that its script waits for; one that it does not wait for yet is kept for its next wait.
    "job.tell", Scope::Submit => job_change::tell;
    /// Deletes every job that is not running.
    "job.clear", Scope::Admin => clear;
}

/// A job to submit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubmitNew {
    /// The job.
    job: JobSettings,
    /// Files for its script, in Base64, by their names.
    #[serde(default)]
    inputs: EncodedFiles,
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
    inputs: EncodedFiles,
    /// The standard input of its script, in Base64.
    stdin: Option<String>,
}

/// The id of a job.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Id {
    /// The id of the job.
    pub(crate) id: String,
}

impl From<JobSettings> for SubmitNew {
    fn from(job: JobSettings) -> Self {
        Self { job, inputs: EncodedFiles::new(), stdin: None }
    }
}

impl SubmitNew {
    /// Returns the job as one of the caller's, which the caller may submit, and its files.
    async fn job(self, context: &CallContext) -> Result<(Job, JobFiles)> {
        let mut job = self.job.job(context).await?;
        context.check_new(std::slice::from_ref(&job)).await?;
        context.client.check(&job)?;
        // Its id stays from now on, so that a new one is known by it.
        context.client.place(&mut job)?;
        let files = given_files(context, (0, &job), self.inputs, self.stdin)?;
        Ok((job, files))
    }
}

async fn submit(context: CallContext, params: SubmitNew) -> Result<SubmittedId> {
    let (job, files) = params.job(&context).await?;
    let stored = context.client.submit_with_files(job.clone(), &files).await;
    Ok(stored_or_same(&context, job, !files.is_empty(), stored).await?.into())
}

/// Submits a job as one of the caller's, who waits for its end. Returns it with whether it is new, and its `caller_id`.
pub(super) async fn submit_awaited(
    context: &CallContext,
    params: SubmitNew,
) -> Result<((AwaitedJob, bool), String)> {
    let (job, files) = params.job(context).await?;
    let submitter = job.spec.caller_id.clone();
    let stored = context.client.submit_awaited(job.clone(), &files).await;
    Ok((awaited_or_same(context, job, !files.is_empty(), stored).await?, submitter))
}

/// Submits a job, with the parameters of `job.submit`, for a caller in this process that waits for its end. Returns it, and
/// whether it is new.
pub(crate) async fn submitted_awaited(
    context: CallContext,
    params: Value,
) -> Result<(AwaitedJob, bool)> {
    Ok(Box::pin(submit_awaited(&context, read("job.submit", params)?)).await?.0)
}

/// Stores a job of the caller without starting it.
pub(super) async fn create(context: CallContext, params: SubmitNew) -> Result<SubmittedId> {
    let (job, files) = params.job(&context).await?;
    let stored = context.client.create_with_files(job.clone(), &files).await;
    Ok(stored_or_same(&context, job, !files.is_empty(), stored).await?.into())
}

pub(super) async fn start(context: CallContext, params: OneJob) -> Result<JobChangeResult> {
    let id = context.own_job(params.id, "start").await?;
    Ok(JobChangeResult::new(&id, context.client.start_job(&id).await?.as_str()))
}

async fn run(context: CallContext, params: RunNew) -> Result<JobDocument> {
    let RunNew { job, wait, inputs, stdin } = params;
    let patience = patience(wait)?;
    let ((job, _), submitter) =
        Box::pin(submit_awaited(&context, SubmitNew { job, inputs, stdin })).await?;
    context.begun.iter().for_each(|begun| drop(begun.send_replace(Some(job.id.clone()))));
    ended(&context, &job, Some(&submitter), patience).await
}

/// Waits for the end of a job, however it ends, or for the end of the patience, and returns the job.
async fn ended(
    context: &CallContext,
    job: &AwaitedJob,
    submitter: Option<&str>,
    patience: Duration,
) -> Result<JobDocument> {
    match context.after_end(job, submitter, patience).await? {
        (after, Ok(_) | Err(ClientError::JobFailed { .. } | ClientError::GaveUp { .. })) => {
            JobDocument::of(context, after.to_json()).await
        }
        (_, Err(error)) => Err(RpcError::from(error).with("id", job.id.as_str())),
    }
}

/// A job to return.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetJob {
    /// The id of the job.
    id: JobReference,
    /// Returns its prerequisites and dependents as `trees` too, to a caller that may see all jobs.
    #[serde(default)]
    trees: bool,
    /// Refuses a job that is no dead letter.
    #[serde(default)]
    dead: bool,
}

async fn get(context: CallContext, params: GetJob) -> Result<JobDocument> {
    let (seen, client) = (context.seen(params.id).await?, &context.client);
    let document = async {
        if params.dead {
            client.jobs().dead_letter(&seen.id).await?;
        }
        let mut document = client.jobs().document(&seen.id).await?;
        if params.trees && !context.hides_jobs() {
            let trees = client.jobs().trees(&client.get_job(&seen.id).await?).await?;
            if !trees.is_empty() {
                document[TREES] = json!(trees);
            }
        }
        Ok(document)
    };
    JobDocument::of(&context, context.still(&seen, document.await).await?).await
}

/// A job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AwaitEnd {
    /// The id of the job.
    id: JobReference,
    /// The longest time to wait, in seconds, up to 3600; 60 without it. The job goes on after it.
    wait: Option<f64>,
}

async fn wait(context: CallContext, params: AwaitEnd) -> Result<JobDocument> {
    let patience = patience(params.wait)?;
    let id = context.job_named(&params.id).await?;
    ended(&context, &id.into(), None, patience).await
}

/// The output of a job.
#[derive(Serialize, JsonSchema)]
struct OutputResult {
    /// The output: text, or Base64.
    output: String,
    /// `base64` if the output is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_encoding: Option<&'static str>,
}

async fn output(context: CallContext, params: OneJob) -> Result<OutputResult> {
    let output = output_of(&context, params.id).await?;
    let output_encoding = matches!(output, JobOutput::Bytes(_)).then_some("base64");
    Ok(OutputResult { output: output.into_text(), output_encoding })
}

/// Finds the output of a job that the caller may see.
pub(in crate::rpc) async fn found_output(context: &CallContext, id: &str) -> Result<JobOutput> {
    let id = id.parse().map_err(|error| RpcError::wrong("id", format!("`id`: {error}")))?;
    output_of(context, id).await
}

pub(super) async fn output_of(context: &CallContext, id: JobReference) -> Result<JobOutput> {
    let seen = context.seen(id).await?;
    let (id, output) = (&seen.id, context.client.get_job_output(&seen.id).await);
    context.still(&seen, output).await?.ok_or_else(|| {
        let message = format!("job {id} has no output yet; wait for it with job.wait");
        RpcError::new(code::CONFLICT, message).with("id", id.as_str())
    })
}

pub(super) async fn delete(context: CallContext, params: OneJob) -> Result<JobChangeResult> {
    let id = context.own_job(params.id, "delete").await?;
    context.client.delete_job(&id).await?;
    Ok(JobChangeResult::new(&id, "deleted"))
}

/// A job to submit again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CopyJob {
    /// The id of the job.
    id: JobReference,
    /// Members as in a job to submit; null removes one.
    #[serde(default)]
    changes: Map<String, Value>,
    /// Submits nothing, and returns the copy.
    #[serde(default)]
    dry_run: bool,
}

/// A copy of a job.
#[derive(Serialize, JsonSchema)]
struct ClonedJob {
    /// The id of the copy.
    id: String,
    /// With `dry_run`: the copy as it would be submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobDocument>,
}

async fn clone(context: CallContext, params: CopyJob) -> Result<ClonedJob> {
    context.needs(Scope::Read, "job.clone")?;
    let id = context.job_named(&params.id).await?;
    let seen = context.visible(&id).await?;
    let is_own = seen.spec.caller_id == context.caller.name;
    let mut changes = Setting::by_fields(&params.changes)?;
    if !is_own && !context.changes_any_job() {
        // The copy is one of the caller's; it may not read the variables of others.
        changes.entry("caller_id").or_insert(Value::Null);
        changes.entry("env_vars").or_insert(Value::Null);
    }
    let mut job = context.client.jobs().clone_of(&id, &changes).await?;
    if context.tells_variables(&seen, &job) {
        job.spec.env_vars.clear();
    }
    context.resolve(&mut job).await?;
    context.adopt(&mut job)?;
    context.check_new(std::slice::from_ref(&job)).await?;
    if params.dry_run {
        let document = JobDocument::of(&context, job.to_json()).await?;
        context.same_job(&seen).await?;
        return Ok(ClonedJob { id: job.id.to_string(), job: Some(document) });
    }
    let files = context.client.files().inputs(&id).await?;
    // What was copied may be of another job with this id.
    context.same_job(&seen).await?;
    let id = context.client.submit_with_files(job, &files).await?;
    Ok(ClonedJob { id: id.to_string(), job: None })
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

async fn clear(context: CallContext, params: ClearJobs) -> Result<Deleted> {
    confirmed("job.clear", params.yes)?;
    cleared(&context).await
}

/// Deletes all jobs that are not running.
pub(super) async fn cleared(context: &CallContext) -> Result<Deleted> {
    context.needs_no_bounds("delete all jobs")?;
    Ok(Deleted { deleted: context.client.clear_all_jobs().await? })
}
