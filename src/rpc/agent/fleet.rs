//! The tool that runs a script on every machine: a batch whose equal answers are one.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::super::caller::Scope;
use super::super::methods::patience;
use super::super::methods::results::SubmittedBatch;
use super::{AgentServer, CallContext, Result, RpcError, code, results, written};
use crate::client::ClientError;
use crate::proto::graph::GraphState;
use crate::proto::job::{JobId, JobStatus};
use crate::store::JobSummary;
use crate::view::{EqualAnswers, FleetAnswer, answered_error};

pub(super) const ON_MACHINES: &str = "run_on_machines";
/// The settings of its job.
pub(super) const SETTINGS: [&str; 3] = ["script", "script_type", "where"];
/// The parameters of `batch.submit` that it has.
pub(super) const BOUNDS: [&str; 2] = ["at_a_time", "stop_after"];
/// The longest output that is compared and shown, in bytes.
const OUTPUT_BYTES_MAX: u64 = 8192;
const LONG: &str = "an output of more than 8 KiB: job_output";

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
        let graph = match context.client.await_graph(&id, Some(patience), |_| {}).await {
            Err(ClientError::GaveUp { .. }) => context.client.graph(&id).await?,
            waited => waited?,
        };
        let hosts = batch.every.iter().filter_map(|of| Some((of.id.as_deref()?, of.host.as_str())));
        about["id"] = json!(id);
        about["state"] = json!(graph.counts.state());
        has_failed |= add_answers(context, &id, &hosts.collect(), &mut about).await?;
        if graph.counts.state() == GraphState::Running {
            about["note"] = json!("it goes on: wait_job, job_output and stop_job for its jobs");
        }
    }
    let mut result = results::of_values(about);
    result["isError"] = json!(has_failed);
    Ok(result)
}

/// Adds the answers, equal ones once. Returns whether a job failed.
async fn add_answers(
    context: &CallContext,
    batch: &JobId,
    hosts: &HashMap<&str, &str>,
    about: &mut Value,
) -> Result<bool> {
    let ids = hosts.keys().filter_map(|id| id.parse().ok()).collect();
    let mut jobs = context.client.job_summaries(ids).await?;
    let host = |job: &JobSummary| hosts.get(job.id.as_str()).copied().unwrap_or_default();
    jobs.sort_by(|one, other| host(one).cmp(host(other)));
    let is_finished = |job: &&JobSummary| job.status == JobStatus::Finished;
    let finished: Vec<&JobId> = jobs.iter().filter(is_finished).map(|job| &job.id).collect();
    let mut outputs =
        context.client.short_outputs(batch, &finished, OUTPUT_BYTES_MAX).await?.into_iter();
    let output = |job: &JobSummary| match job.status {
        JobStatus::Finished => outputs.next().flatten(),
        _ => Some(Vec::new()),
    };
    let outputs: Vec<Option<Vec<u8>>> = jobs.iter().map(output).collect();
    let answers = jobs.iter().zip(&outputs).filter_map(|(job, output)| {
        let error = answered_error(job.status, job.fields.get("error").map(String::as_str));
        let (name, id) = (host(job).to_owned(), job.id.as_str());
        Some(FleetAnswer { name, id, error, output: output.as_deref()? })
    });
    // Nobody has compared them.
    let long = jobs.iter().zip(&outputs).filter(|(_, output)| output.is_none());
    let long =
        long.map(|(job, _)| json!({ "machines": [host(job)], "jobs": [job.id], "note": LONG }));
    let groups = EqualAnswers::of(answers);
    let answer = |of: &EqualAnswers<'_>| {
        let mut answer = json!({ "machines": of.names, "jobs": of.ids });
        match (&of.error, std::str::from_utf8(of.output)) {
            (Some(error), _) => answer["error"] = json!(error),
            (None, Ok(text)) => answer["output"] = json!(text),
            (None, Err(_)) => answer["note"] = json!(written::no_text(of.output.len() as u64)),
        }
        answer
    };
    about["answers"] = groups.iter().map(answer).chain(long).collect();
    Ok(groups.iter().any(EqualAnswers::has_failed))
}
