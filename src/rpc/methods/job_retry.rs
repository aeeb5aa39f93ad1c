//! `job.retry`: runs ended jobs again, with corrections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::caller::Scope;
use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::changed_job::ResultOfJob;
use super::params::Spelled;
use crate::client::JobChange;
use crate::proto::job::JobReference;

methods! {
    /// Runs an ended job again, with a corrected script or other settings if they are given.
    "job.retry", Scope::Submit => retry;
}

/// A job to run again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RetryOne {
    /// The id of the job.
    id: Spelled<JobReference>,
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
struct Retried {
    /// The jobs, the named job first.
    jobs: Vec<ResultOfJob>,
}

async fn retry(context: CallContext, given: RetryOne) -> Result<Retried, RpcError> {
    let RetryOne { id, with_dependents, mut changes } = given;
    let id = context.job_named(&id.0).await?;
    context.keep_groups(&mut changes);
    let checked = context.may_correct(&id, &changes, "retry").await?;
    if with_dependents {
        context.may_retry_dependents()?;
    }
    let retry = JobChange::Retry { with_dependents, changes };
    let jobs = context.client.pinned([checked]).change_job(&id, &retry).await?;
    Ok(Retried { jobs: jobs.into_iter().map(ResultOfJob::from).collect() })
}
