//! Finds the jobs of a page or a file: searches of the client, one after the other, up to a bound.

use jiff::Timestamp;

use super::super::doc::JobDoc;
use super::super::visit::Visit;
use super::super::web_error::PageResult;
use super::filter::JobFilter;
use crate::store::{JobSearch, ListQuery};

/// The jobs of a page.
#[derive(Debug, Clone, Default)]
pub(super) struct JobListPage {
    pub(super) jobs: Vec<JobDoc>,
    /// The cursor of the next page, if there may be one.
    pub(super) next: Option<String>,
    /// The number of jobs that were looked at, without those that the visitor may not see.
    pub(super) looked_at: usize,
}

/// Finds all jobs that match, from their place in the list on, up to this number.
pub(super) async fn all(visit: &Visit, filter: &JobFilter, most: usize) -> PageResult<JobListPage> {
    let now = visit.snapshot().await?.moment.at;
    let mut found = find(visit, filter, now, most).await?;
    found.jobs.truncate(most);
    Ok(found)
}

/// Finds `wanted` jobs, or all there are among those that are looked at.
pub(super) async fn find(
    visit: &Visit,
    filter: &JobFilter,
    now: Timestamp,
    wanted: usize,
) -> PageResult<JobListPage> {
    let (mut query, search) = filter.search(now)?;
    let (mut found, mut looked) = (JobListPage::default(), 0);
    loop {
        query.limit = (wanted - found.jobs.len()).min(ListQuery::LIMIT_MAX);
        let sees = |job: &_| visit.sees(job);
        let part = visit.site.client.find_jobs(&query, &search, sees).await?;
        looked += part.looked;
        found.looked_at += part.seen;
        found.jobs.extend(part.items.iter().map(JobDoc::from));
        query.cursor = part.next;
        let is_full = found.jobs.len() >= wanted || looked >= JobSearch::LOOKED_MAX.max(wanted);
        if is_full || query.cursor.is_none() {
            found.next = query.cursor.map(|cursor| cursor.to_string());
            return Ok(found);
        }
    }
}
