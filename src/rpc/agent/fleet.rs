//! The tools that run a script on every machine, and wait for a batch: equal answers of its jobs are one.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::super::caller::Scope;
use super::super::methods::patience;
use super::super::methods::results::SubmittedBatch;
use super::{AgentServer, CallContext, Result, RpcError, code, results, written};
use crate::client::ClientError;
use crate::proto::graph::GraphState;
use crate::proto::job::{JobId, JobStatus};
use crate::store::{JobSummary, Store};
use crate::view::{EqualAnswers, FleetAnswer, answered_error};

pub(super) const ON_MACHINES: &str = "run_on_machines";
pub(super) const WAIT_BATCH: &str = "wait_batch";
/// The settings of its job.
pub(super) const SETTINGS: [&str; 3] = ["script", "script_type", "where"];
/// The parameters of `batch.submit` that it has.
pub(super) const BOUNDS: [&str; 2] = ["at_a_time", "stop_after"];
/// The longest output that is compared and shown, in bytes.
const OUTPUT_BYTES_MAX: u64 = 8192;
const LONG: &str = "an output of more than 8 KiB: job_output";
/// The jobs of a batch whose answers are returned, the failed ones first.
const JOBS_MAX: usize = 2000;
/// The failures that come with the end of a log, and the lines and bytes of each.
const LOGS_MAX: usize = 10;
const LOG_LINES: usize = 20;
const LOG_BYTES: usize = 2 << 10;

/// Returns whether the caller has the scope of the tool, which no other one includes.
pub(super) fn is_offered(context: &CallContext) -> bool {
    [Scope::Submit, Scope::Fleet].into_iter().all(|scope| context.caller.scopes.has(scope))
}

/// Submits the batch, waits for its end, and returns what the machines answered.
pub(super) async fn run(server: &AgentServer, mut arguments: Map<String, Value>) -> Result<Value> {
    server.context.needs(Scope::Fleet, ON_MACHINES)?;
    let wait = arguments.remove("wait").unwrap_or_default();
    let wait = serde_json::from_value(wait).map_err(|error| {
        let message = format!("the arguments of {ON_MACHINES} are wrong: wait: {error}");
        RpcError::wrong("wait", message)
    })?;
    let patience = patience(wait)?;
    let job = SETTINGS.iter().filter_map(|name| arguments.remove_entry(*name));
    let job: Map<String, Value> = job.collect();
    arguments.insert("jobs".to_owned(), json!([job]));
    arguments.insert("every".to_owned(), json!("machine"));
    let submitted = server.call("batch.submit", Value::Object(arguments)).await?;
    let batch: SubmittedBatch = serde_json::from_value(submitted).map_err(|error| {
        RpcError::new(code::INTERNAL, format!("cannot read the batch: {error}"))
    })?;
    let refused: Vec<&str> = batch.refused.iter().map(|of| of.error.as_str()).collect();
    let absent =
        batch.every.iter().filter(|of| of.id.is_none() && (refused.is_empty() || !of.live));
    let absent: Vec<&str> = absent.map(|of| of.host.as_str()).collect();
    let mut about = json!({ "answers": [], "absent": absent, "refused": refused });
    let mut has_failed = !refused.is_empty();
    if let Some(id) = batch.id.as_deref().and_then(|id| id.parse::<JobId>().ok()) {
        let context = &server.context;
        context.begun.iter().for_each(|begun| drop(begun.send_replace(Some(id.clone()))));
        let graph = match context.client.graphs().wait(&id, Some(patience), |_| {}).await {
            Err(ClientError::GaveUp { .. }) => context.client.graphs().get(&id).await?,
            waited => waited?,
        };
        let hosts = batch.every.iter().filter_map(|of| Some((of.id.as_deref()?, of.host.clone())));
        let hosts: HashMap<&str, String> = hosts.collect();
        about["id"] = json!(id);
        about["state"] = json!(graph.counts.state());
        let host = |job: &JobSummary| hosts.get(job.id.as_str()).cloned().unwrap_or_default();
        has_failed |= add_answers(server, &id, ("machines", host), &mut about).await?;
        if graph.counts.state() == GraphState::Running {
            about["note"] = json!("it goes on: wait_batch and stop_batch; job_output for its jobs");
        }
    }
    let mut result = results::of_values(about);
    result["isError"] = json!(has_failed);
    Ok(result)
}

/// Waits for the end of a batch or graph, and returns it with what its jobs answered.
pub(super) async fn wait(server: &AgentServer, arguments: Map<String, Value>) -> Result<Value> {
    let mut about = server.call("graph.wait", Value::Object(arguments)).await?;
    let id = about["id"].as_str().unwrap_or_default().parse::<JobId>();
    let id = id.map_err(|error| RpcError::new(code::INTERNAL, format!("no id: {error}")))?;
    let prefix = about["name"].as_str().map(|name| format!("{name} on ")).unwrap_or_default();
    let name = |job: &JobSummary| {
        let name = job.fields.get("name").map_or(job.id.as_str(), String::as_str);
        name.strip_prefix(&prefix).unwrap_or(name).to_owned()
    };
    let noun = if about["every"] == "machine" { "machines" } else { "names" };
    add_answers(server, &id, (noun, name), &mut about).await?;
    Ok(results::of_values(about))
}

/// Reads the jobs of a batch that the caller may see, the failed ones first.
async fn jobs_of(context: &CallContext, batch: &JobId) -> Result<Vec<JobSummary>> {
    let (mut jobs, mut cursor) = (Vec::new(), None);
    loop {
        let most = Store::GRAPHS_PER_PAGE_MAX;
        let page = context.client.graphs().jobs(batch, None, cursor, most).await?;
        cursor = page.last().filter(|_| page.len() == most).map(|of| of.member.score);
        let page = page.into_iter().filter_map(|of| of.job);
        jobs.extend(page.filter(|job| context.caller.sees(job)));
        if cursor.is_none() || jobs.len() >= JOBS_MAX {
            return Ok(jobs);
        }
    }
}

/// Adds the answers, equal ones once, failed ones with the end of a log. Returns whether a job failed.
async fn add_answers(
    server: &AgentServer,
    batch: &JobId,
    (noun, name): (&str, impl Fn(&JobSummary) -> String),
    about: &mut Value,
) -> Result<bool> {
    let context = &server.context;
    let mut jobs = jobs_of(context, batch).await?;
    jobs.sort_by_cached_key(&name);
    let is_finished = |job: &&JobSummary| job.status == JobStatus::Finished;
    let finished: Vec<&JobId> = jobs.iter().filter(is_finished).map(|job| &job.id).collect();
    let mut outputs =
        context.client.jobs().short_outputs(batch, &finished, OUTPUT_BYTES_MAX).await?.into_iter();
    let output = |job: &JobSummary| match job.status {
        JobStatus::Finished => outputs.next().flatten(),
        _ => Some(Vec::new()),
    };
    let outputs: Vec<Option<Vec<u8>>> = jobs.iter().map(output).collect();
    // A job that is in the batch after its output was read has written it.
    let still: HashSet<JobId> =
        jobs_of(context, batch).await?.into_iter().map(|job| job.id).collect();
    let read = || jobs.iter().zip(&outputs).filter(|(job, _)| still.contains(&job.id));
    let answers = read().filter_map(|(job, output)| {
        let error = answered_error(job.status, job.fields.get("error").map(String::as_str));
        Some(FleetAnswer {
            name: name(job),
            id: job.id.as_str(),
            error,
            output: output.as_deref()?,
        })
    });
    let groups = EqualAnswers::of(answers);
    let (mut answers, mut logs) = (Vec::new(), 0);
    for of in &groups {
        let mut answer = json!({ noun: of.names, "jobs": of.ids });
        match (&of.error, std::str::from_utf8(of.output)) {
            (Some(error), _) => answer["error"] = json!(error),
            (None, Ok(text)) => answer["output"] = json!(text),
            (None, Err(_)) => answer["note"] = json!(written::no_text(of.output.len() as u64)),
        }
        if of.has_failed() && logs < LOGS_MAX {
            logs += 1;
            let log = written::end_of_log(server, &json!(of.ids[0]), LOG_LINES).await;
            answer["log"] = json!(results::tail(&log, LOG_BYTES));
        }
        answers.push(answer);
    }
    // Nobody has compared them.
    let long = read().filter(|(_, output)| output.is_none());
    answers
        .extend(long.map(|(job, _)| json!({ noun: [name(job)], "jobs": [job.id], "note": LONG })));
    about["answers"] = answers.into();
    Ok(groups.iter().any(EqualAnswers::has_failed))
}
