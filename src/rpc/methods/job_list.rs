//! `job.list`: a page of jobs, by state and type, or by what no index has. `job.errors`: failures by their kind.
//! `job.dependents`: the jobs that wait for a job, page by page.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job_types::{ListedJob, found_of};
use super::params::page_size;
use super::{CallContext, Result, RpcError};
use crate::client::ErrorGroupsDocument;
use crate::proto::job::{Job, JobId, JobReference};
use crate::proto::job_filter::Filtered;
use crate::store::{Cursor, JobSearch, JobSummary, ListQuery};

const DEPENDENTS_MAX: usize = 1000;
/// The most dependents that are looked at for a caller that may not see all jobs.
const LOOKED_MAX: usize = 20_000;

/// The place of a page of jobs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ListJobs")]
pub(super) struct ListPlace {
    /// The size of the page, up to 1000; 50 without it.
    pub(super) limit: Option<usize>,
    /// The `next` of the page before.
    pub(super) cursor: Option<Cursor>,
}

/// A page of jobs to list.
pub(super) type ListJobs = Filtered<ListPlace>;

/// A page of jobs.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobPage {
    /// The jobs. There may be less than a page with more to come.
    jobs: Vec<ListedJob>,
    /// The cursor of the next page, if there may be one.
    next: Option<String>,
    /// The number of jobs that were searched for this page.
    searched: usize,
    /// True if there are no others: the search has reached the end. A search ends after two seconds with what it has
    /// found; `next` goes on from there.
    complete: bool,
}

/// The filter whose value is the id of a job.
const PARENT: &str = "parent";

/// Returns the jobs that a filter finds, at most so many. A parent may be the unique beginning of an id.
pub(super) async fn search_of(
    context: &CallContext,
    mut params: ListJobs,
    limit: usize,
) -> Result<(ListQuery, JobSearch)> {
    if let Some(parent) = params.filter.value(PARENT).map(str::to_owned) {
        let parent = context.job_named(&parent.parse()?).await?;
        params.filter = params.filter.with(PARENT, parent.as_str());
    }
    let found = JobSearch::of(&params.filter, &TimeZone::UTC, Timestamp::now());
    let (query, search) = found.map_err(|error| RpcError::wrong(error.row.name, error.reason))?;
    let search = search.seeing_all(!context.hides_jobs());
    let cursor = params.rest.cursor;
    Ok((ListQuery { limit, cursor, budget: Some(ListQuery::BUDGET), ..query }, search))
}

pub(super) async fn list(context: CallContext, params: ListJobs) -> Result<JobPage> {
    let limit = page_size(params.rest.limit, ListQuery::LIMIT_MAX)?;
    let (query, search) = search_of(&context, params, limit).await?;
    let sees = |job: &JobSummary| context.caller.sees(job);
    let _place = context.may_search().await?;
    let found = context.client.jobs().find(&query, &search, sees).await?;
    Ok(JobPage {
        jobs: found.items.into_iter().map(ListedJob).collect(),
        searched: found.searched,
        complete: found.complete,
        next: found.next.map(|cursor| cursor.to_string()),
    })
}

/// Groups failed jobs; `limit` bounds the groups.
pub(super) async fn errors(context: CallContext, params: ListJobs) -> Result<ErrorGroupsDocument> {
    let limit = page_size(params.rest.limit, ListQuery::LIMIT_MAX)?;
    let (mut query, search) = search_of(&context, params, limit).await?;
    // A person can end the search.
    query.budget = query.budget.filter(|_| !context.is_of_command_line);
    let sees = |job: &JobSummary| context.caller.sees(job);
    let _place = context.may_search().await?;
    Ok(context.client.jobs().error_groups(&query, &search, sees, limit).await?)
}

/// The job, and the page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDependents {
    /// The id of the job.
    id: JobReference,
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

pub(super) async fn dependents(
    context: CallContext,
    params: ListDependents,
) -> Result<DependentsPage> {
    let limit = page_size(params.limit, DEPENDENTS_MAX)?;
    let skip = params.cursor.unwrap_or_default() as usize;
    let seen = context.seen(params.id).await?;
    let job = context.still(&seen, context.client.get_job(&seen.id).await).await?;
    let (ids, next) = if context.hides_jobs() {
        visible(&context, &job, skip, limit).await?
    } else {
        context.client.jobs().dependents(&job, skip, limit).await?
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
) -> Result<(Vec<JobId>, Option<usize>)> {
    let (end, mut ids, mut place) = (skip + limit, Vec::new(), Some(0));
    while let Some(at) = place.filter(|at| *at < LOOKED_MAX && ids.len() <= end) {
        let page;
        (page, place) = context.client.jobs().dependents(job, at, DEPENDENTS_MAX).await?;
        ids.extend(found_of(context, page).await?);
    }
    let next = (ids.len() > end).then_some(end);
    Ok((ids.into_iter().skip(skip).take(limit).collect(), next))
}
