//! `job.list`: a page of jobs, by state and type, or by what no index has. `job.errors`: failures by their kind.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::job_ownership::JobOwnership;
use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::job_types::ListedJob;
use super::params::{Spelled, page_size};
use crate::client::ErrorGroupsDocument;
use crate::proto::job_filter::Filtered;
use crate::store::{Cursor, JobSearch, JobSummary, ListQuery};

/// The place of a page of jobs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ListJobs")]
pub(super) struct ListPlace {
    /// The size of the page, up to 1000; 50 without it.
    pub(super) limit: Option<usize>,
    /// The `next` of the page before.
    pub(super) cursor: Option<Spelled<Cursor>>,
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
    mut given: ListJobs,
    limit: usize,
) -> Result<(ListQuery, JobSearch), RpcError> {
    if let Some(parent) = given.filter.value(PARENT).map(str::to_owned) {
        let parent = context.job_named(&parent.parse()?).await?;
        given.filter = given.filter.with(PARENT, parent.as_str());
    }
    let found = JobSearch::of(&given.filter, &TimeZone::UTC, Timestamp::now());
    let (query, search) = found.map_err(|error| RpcError::wrong(error.row.name, error.reason))?;
    let search = search.seeing_all(context.finds_all());
    let cursor = given.rest.cursor.map(|Spelled(cursor)| cursor);
    Ok((ListQuery { limit, cursor, budget: Some(ListQuery::BUDGET), ..query }, search))
}

pub(super) async fn list(context: CallContext, given: ListJobs) -> Result<JobPage, RpcError> {
    let limit = page_size(given.rest.limit, ListQuery::LIMIT_MAX)?;
    let (query, search) = search_of(&context, given, limit).await?;
    let sees = |job: &JobSummary| JobOwnership::of_summary(job).is_within(&context.caller);
    let found = context.client.find_jobs(&query, &search, sees).await?;
    Ok(JobPage {
        jobs: found.items.into_iter().map(ListedJob).collect(),
        searched: found.searched,
        complete: found.complete,
        next: found.next.map(|cursor| cursor.to_string()),
    })
}

/// Groups failed jobs; `limit` bounds the groups.
pub(super) async fn errors(
    context: CallContext,
    given: ListJobs,
) -> Result<ErrorGroupsDocument, RpcError> {
    let limit = page_size(given.rest.limit, ListQuery::LIMIT_MAX)?;
    let (mut query, search) = search_of(&context, given, limit).await?;
    // A person can end the search.
    query.budget = query.budget.filter(|_| !context.is_of_command_line);
    let sees = |job: &JobSummary| JobOwnership::of_summary(job).is_within(&context.caller);
    Ok(context.client.error_groups(&query, &search, sees, limit).await?)
}
