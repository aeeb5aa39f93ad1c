//! `job.stop`: stops a job, and the jobs below it.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::method::CallContext;
use super::super::rpc_error::{RpcError, code};
use super::changed_job::JobChangeResult;
use super::params::Spelled;
use crate::client::DESCENDANTS_MAX;
use crate::proto::job::{JobId, JobReference};

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

/// Stops a job.
pub(super) async fn stop(
    context: CallContext,
    given: StopJob,
) -> Result<JobChangeResult, RpcError> {
    let id = context.job_named(&given.id.0).await?;
    let ended = if given.children {
        stopped_tree(&context, &id).await?
    } else {
        stopped(&context, &id).await?
    };
    Ok(JobChangeResult::new(&id, if ended { "stopped" } else { "told to stop" }))
}

/// Stops a job that the caller may change. Returns whether it has ended already.
async fn stopped(context: &CallContext, id: &JobId) -> Result<bool, RpcError> {
    context.may_change(id, "stop").await?;
    Ok(context.client.stop_job(id).await?)
}

/// Stops a job that the caller may change, also one that has ended, and the jobs below it. Returns whether it has
/// ended already.
async fn stopped_tree(context: &CallContext, id: &JobId) -> Result<bool, RpcError> {
    let mut left = VecDeque::from([id.clone()]);
    let mut first = None;
    let mut seen = 0;
    while let Some(job) = left.pop_front() {
        let ended = match stopped(context, &job).await {
            Ok(ended) => ended,
            Err(error) if error.code == code::CONFLICT => true,
            // Gone, or of another caller.
            Err(error) if job != *id && is_out_of_reach(&error) => continue,
            Err(error) => return Err(error),
        };
        first.get_or_insert(ended);
        seen += 1;
        let room = DESCENDANTS_MAX.saturating_sub(seen + left.len());
        left.extend(context.client.children(&job).await?.into_iter().take(room));
    }
    Ok(first.unwrap_or(true))
}

fn is_out_of_reach(error: &RpcError) -> bool {
    matches!(error.code, code::NOT_FOUND | code::NOT_PERMITTED)
}
