//! `job.dependents`: the jobs that wait for a job, page by page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::job_types::found_of;
use super::params::{Spelled, page_size};
use crate::proto::job::{Job, JobId, JobReference};

/// The most jobs of a page.
const PAGE_MAX: usize = 1000;
/// The most dependents that are looked at for a caller that may not see all jobs.
const LOOKED_MAX: usize = 20_000;

/// The job, and the page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDependents {
    /// The id of the job.
    id: Spelled<JobReference>,
    /// The maximum number of jobs, up to 1000; 50 without it.
    limit: Option<usize>,
    /// The `next` of the page before: a number of jobs that the caller may see.
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
    let (ids, next) = if context.hides_jobs() {
        visible(&context, &job, skip, limit).await?
    } else {
        context.client.dependents(&job, skip, limit).await?
    };
    Ok(DependentsPage { dependents: ids.iter().map(ToString::to_string).collect(), next })
}

/// Returns a page of the dependents that the caller may see, and the number of them up to its end if there are more: a place
/// among all would count the jobs of others.
async fn visible(
    context: &CallContext,
    job: &Job,
    skip: usize,
    limit: usize,
) -> Result<(Vec<JobId>, Option<usize>), RpcError> {
    let (end, mut ids, mut place) = (skip + limit, Vec::new(), Some(0));
    while let Some(at) = place.filter(|at| *at < LOOKED_MAX && ids.len() <= end) {
        let page;
        (page, place) = context.client.dependents(job, at, PAGE_MAX).await?;
        ids.extend(found_of(context, page).await?);
    }
    let next = (ids.len() > end).then_some(end);
    Ok((ids.into_iter().skip(skip).take(limit).collect(), next))
}
