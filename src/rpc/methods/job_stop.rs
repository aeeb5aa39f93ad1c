//! `job.stop`: stops a job, and the jobs below it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::changed_job::{JobChangeResult, ResultOfJob};
use super::params::Spelled;
use crate::client::JobChange;
use crate::proto::job::JobReference;

/// A job to stop.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopJob {
    /// The id of the job.
    id: Spelled<JobReference>,
    /// Stops the jobs below it as well: its children, their children, and so on, but no job that
    /// the caller may not change.
    #[serde(default)]
    children: bool,
}

/// Stops a job that the caller may change. Jobs of others below it stay as they are.
pub(super) async fn stop(
    context: CallContext,
    given: StopJob,
) -> Result<JobChangeResult, RpcError> {
    let id = context.own_job(given.id, "stop").await?;
    if !given.children {
        let has_ended = context.client.stop_job(&id).await?;
        let result = if has_ended { "stopped" } else { "told to stop" };
        return Ok(JobChangeResult::new(&id, result));
    }
    let stopped = context.client.change_job(&id, &JobChange::StopTree).await?;
    let own = stopped.iter().find(|(job, _)| *job == id).and_then(|(_, of)| of.as_deref().ok());
    // One that had ended leaves its children.
    let result = JobChangeResult::new(&id, own.unwrap_or("stopped"));
    Ok(JobChangeResult {
        jobs: Some(stopped.into_iter().map(ResultOfJob::from).collect()),
        ..result
    })
}
