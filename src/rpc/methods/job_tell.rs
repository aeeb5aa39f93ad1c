//! `job.tell`: tells a job an event that its script waits for.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::changed_job::JobChangeResult;
use super::params::Spelled;
use crate::proto::job::JobReference;
use crate::store::Blocker;

/// An event for a job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TellOne {
    /// The id of the job.
    id: Spelled<JobReference>,
    /// The name of the event.
    event: String,
    /// A value for the script, up to 64 KiB as JSON.
    #[serde(default)]
    data: Value,
}

pub(super) async fn tell(
    context: CallContext,
    given: TellOne,
) -> Result<JobChangeResult, RpcError> {
    let id = context.own_job(given.id, "tell").await?;
    let data = (!given.data.is_null()).then(|| given.data.to_string());
    let waited = context.client.tell_job(&id, &given.event, data.as_deref()).await?;
    if waited {
        return Ok(JobChangeResult::new(&id, "told"));
    }
    let waits_for = match context.client.blocker(&id).await {
        Ok(Some(Blocker::Wait(wait))) => Some(wait.words()),
        _ => None,
    };
    Ok(JobChangeResult { waits_for, ..JobChangeResult::new(&id, "kept") })
}
