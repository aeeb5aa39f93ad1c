//! The names and the parameters of the older supervisor. Both of its ways to run a job work: to run it and
//! wait, or to create it, start it and ask for its output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::job::{cleared, create, delete, output_of, start, submit_awaited};
use super::job_change::{StopJob, stop};
use super::job_types::JobSettings;
use super::params::{OneJob, confirmed, page_size, patience};
use super::{CallContext, Result, RpcError, Scope, code};
use crate::proto::job::{JobOutput, JobReference, JobStatus};
use crate::store::{Cursor, JobSearch, JobSummary, ListQuery};

const LOG_LINES_MAX: usize = 10_000;

methods! {
    /// As job.create; returns the id.
    "create_job", Scope::Submit => create_job;
    /// As job.start.
    "start_job", Scope::Submit => async |context: CallContext, of: ById| {
        succeeded(start(context, of.into()).await)
    };
    /// Submits a job, waits for its end and returns its output or its error.
    "run_job", Scope::Submit => run_job;
    /// Submits a job, waits for its end and returns its output.
    "run_job_and_await_result", Scope::Submit => run_job_and_await_result;
    /// Runs a script and returns its output.
    "play", Scope::Submit => play;
    /// Returns the state of a job.
    "get_job_status", Scope::Read => get_job_status;
    /// Returns the output of a job; null until it ends.
    "get_job_output", Scope::Read => get_job_output;
    /// Returns the output or the error of a job that has ended.
    "get_job_result", Scope::Read => get_job_result;
    /// Returns the log of a job as one text; null without one.
    "get_job_logs", Scope::Read => get_job_logs;
    /// Lists the ids of jobs.
    "list_jobs", Scope::Read => list_jobs;
    /// As job.stop.
    "stop_job", Scope::Submit => async |context: CallContext, of: ById| {
        succeeded(stop(context, StopJob { id: of.id, children: false }).await)
    };
    /// As job.delete.
    "delete_job", Scope::Submit => async |context: CallContext, of: ById| {
        succeeded(delete(context, of.into()).await)
    };
    /// As job.clear.
    "clear_all_jobs", Scope::Admin => clear_all_jobs;
}

/// A job to create.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewJob {
    /// The job.
    #[serde(alias = "job_params")]
    job: JobSettings,
}

async fn create_job(context: CallContext, params: NewJob) -> Result<String> {
    Ok(create(context, params.job.into()).await?.id)
}

/// One job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// The id of the job.
    #[serde(alias = "job_id")]
    id: JobReference,
}

impl From<ById> for OneJob {
    fn from(of: ById) -> Self {
        Self { id: of.id }
    }
}

/// The result of a change.
#[derive(Serialize, JsonSchema)]
struct Succeeded {
    /// True.
    success: bool,
}

fn succeeded<T>(changed: Result<T>) -> Result<Succeeded> {
    changed.map(|_| Succeeded { success: true })
}

/// A job to run: as a whole, or by its script and its type.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunJob {
    /// The job; or its script.
    #[serde(alias = "script")]
    job: JobOrScript,
    /// The script type, beside a script.
    script_type: Option<String>,
    /// The ids of jobs that must finish first, beside a script.
    #[serde(default)]
    prerequisites: Vec<String>,
    /// The longest time to wait, in seconds, up to 3600; 60 without it. The job goes on after it.
    #[serde(alias = "timeout")]
    wait: Option<f64>,
}

/// A job, or the text of its script.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum JobOrScript {
    /// The text of the script.
    Script(String),
    /// The job.
    Job(JobSettings),
}

impl RunJob {
    fn settings(self) -> Result<JobSettings> {
        match self.job {
            JobOrScript::Job(job)
                if self.script_type.is_none() && self.prerequisites.is_empty() =>
            {
                Ok(job)
            }
            JobOrScript::Job(_) => {
                Err(RpcError::wrong("job", "script_type and prerequisites are members of `job`"))
            }
            JobOrScript::Script(script) => Ok(JobSettings::of([
                ("script", json!(script)),
                ("script_type", json!(self.script_type)),
                ("prerequisites", json!(self.prerequisites)),
            ])),
        }
    }
}

/// The end of a job: one of both.
#[derive(Serialize, JsonSchema)]
struct JobResult {
    /// Its output, if it finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<String>,
    /// Its error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl JobResult {
    fn of(ended: Result<JobOutput>) -> Result<Self> {
        match ended {
            Ok(output) => Ok(Self { success: Some(output.into_text()), error: None }),
            Err(error) if error.code == code::JOB_FAILED => {
                Ok(Self { success: None, error: Some(error.message) })
            }
            Err(error) => Err(error),
        }
    }
}

async fn ran(context: &CallContext, params: RunJob) -> Result<JobOutput> {
    let patience = patience(params.wait)?;
    let ((job, _), submitter) =
        Box::pin(submit_awaited(context, params.settings()?.into())).await?;
    let (_, ended) = context.after_end(&job, Some(&submitter), patience).await?;
    ended.map_err(|error| RpcError::from(error).with("id", job.id.as_str()))
}

async fn run_job(context: CallContext, params: RunJob) -> Result<JobResult> {
    JobResult::of(Box::pin(ran(&context, params)).await)
}

async fn run_job_and_await_result(context: CallContext, params: RunJob) -> Result<String> {
    Ok(Box::pin(ran(&context, params)).await?.into_text())
}

/// A script to run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Play {
    /// The script.
    script: String,
    /// The script type; osis without it.
    script_type: Option<String>,
    /// The longest time to wait, in seconds, up to 3600; 60 without it. The job goes on after it.
    wait: Option<f64>,
}

/// The output of a script.
#[derive(Serialize, JsonSchema)]
struct Played {
    /// The output.
    output: String,
}

async fn play(context: CallContext, params: Play) -> Result<Played> {
    let run = RunJob {
        job: JobOrScript::Script(params.script),
        script_type: Some(params.script_type.unwrap_or_else(|| "osis".to_owned())),
        prerequisites: Vec::new(),
        wait: params.wait,
    };
    Ok(Played { output: Box::pin(ran(&context, run)).await?.into_text() })
}

async fn get_job_status(context: CallContext, params: ById) -> Result<JobStatus> {
    let seen = context.seen(params.id).await?;
    let status = context.client.get_job_status(&seen.id).await;
    context.still(&seen, status).await
}

async fn get_job_output(context: CallContext, params: ById) -> Result<Option<String>> {
    let seen = context.seen(params.id).await?;
    let output = context.client.get_job_output(&seen.id).await;
    Ok(context.still(&seen, output).await?.map(JobOutput::into_text))
}

async fn get_job_result(context: CallContext, params: ById) -> Result<JobResult> {
    JobResult::of(output_of(&context, params.id).await)
}

async fn get_job_logs(context: CallContext, params: ById) -> Result<Option<String>> {
    let seen = context.seen(params.id).await?;
    let lines = context.client.get_job_logs(&seen.id, None, LOG_LINES_MAX).await;
    let lines = context.still(&seen, lines).await?;
    let lines: Vec<String> =
        lines.into_iter().filter(|line| line.progress.is_none()).map(|line| line.line).collect();
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}

/// A page of ids to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListIds {
    /// Only jobs in this state.
    status: Option<JobStatus>,
    /// The maximum number of ids, up to 1000; 1000 without it.
    limit: Option<usize>,
    /// The `next` of a page of job.list, to begin after it.
    cursor: Option<Cursor>,
}

async fn list_jobs(context: CallContext, params: ListIds) -> Result<Vec<String>> {
    let most = ListQuery::LIMIT_MAX;
    let query = ListQuery {
        statuses: params.status.into_iter().collect(),
        limit: page_size(params.limit.or(Some(most)), most)?,
        cursor: params.cursor,
        ..ListQuery::default()
    };
    let sees = |job: &JobSummary| context.caller.sees(job);
    let _place = context.may_search().await?;
    let found = context.client.jobs().find(&query, &JobSearch::default(), sees).await?;
    Ok(found.items.iter().map(|job| job.id.to_string()).collect())
}

/// A confirmation.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClearAll {
    /// Confirms that all are deleted: true.
    #[serde(default)]
    yes: bool,
}

async fn clear_all_jobs(context: CallContext, params: ClearAll) -> Result<Succeeded> {
    confirmed("clear_all_jobs", params.yes)?;
    succeeded(cleared(&context).await)
}
