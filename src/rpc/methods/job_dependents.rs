//! `job.dependents`: the jobs that wait for a job, page by page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::job_types::found_of;
use super::params::{Spelled, page_size};
use crate::proto::job::JobId;

/// The most jobs of a page.
const PAGE_MAX: usize = 1000;

/// The job, and the page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDependents {
    /// The id of the job.
    id: Spelled<JobId>,
    /// The maximum number of jobs, up to 1000; 50 without it.
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<u32>,
}

/// A page of dependents.
#[derive(Serialize, JsonSchema)]
pub(super) struct DependentsPage {
    /// Their ids.
    dependents: Vec<String>,
    /// The `cursor` of the next page; null at the end.
    next: Option<usize>,
}

pub(super) async fn list(
    context: CallContext,
    given: ListDependents,
) -> Result<DependentsPage, RpcError> {
    let limit = page_size(given.limit, PAGE_MAX)?;
    let skip = given.cursor.unwrap_or_default() as usize;
    let seen = context.seen(given.id).await?;
    let job = context.still(&seen, context.client.get_job(&seen.id).await).await?;
    let (mut ids, next) = context.client.dependents(&job, skip, limit).await?;
    if context.hides_jobs() {
        ids = found_of(&context, ids).await?;
    }
    Ok(DependentsPage { dependents: ids.iter().map(ToString::to_string).collect(), next })
}
