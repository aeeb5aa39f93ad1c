//! Finds the jobs of a page or a file.

use jiff::Timestamp;

use super::super::doc::JobDoc;
use super::super::visit::Visit;
use super::super::web_error::PageResult;
use super::filter::JobsQuery;

#[derive(Debug, Clone, Default)]
pub(super) struct JobListPage {
    pub(super) jobs: Vec<JobDoc>,
    /// The cursor of the next page, if there may be one.
    pub(super) next: Option<String>,
    /// The number of jobs that were searched, without those that the visitor may not see.
    pub(super) searched: usize,
    /// True if there are no others.
    pub(super) complete: bool,
    /// The time back to which jobs were searched, unless all were.
    pub(super) back_to: Option<Timestamp>,
}

/// Finds `wanted` jobs, or all that a search finds in its time.
pub(super) async fn find(
    visit: &Visit,
    filter: &JobsQuery,
    now: Timestamp,
    wanted: usize,
) -> PageResult<JobListPage> {
    let (mut query, search) = filter.search(now)?;
    let search = search.seeing_all(!visit.is_bound());
    query.limit = wanted;
    let found = visit.site.client.find_many(&query, &search, |job| visit.sees(job)).await?;
    Ok(JobListPage {
        jobs: found.items.iter().map(JobDoc::from).collect(),
        next: found.next.as_ref().map(ToString::to_string),
        searched: found.searched,
        complete: found.complete,
        back_to: found.back_to(),
    })
}
