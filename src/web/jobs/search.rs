//! Finds the jobs that pass the filters. What no index answers is read in portions, up to a bound; the next page
//! goes on where this one ended.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::doc::JobDoc;
use super::super::error::PageError;
use super::super::site::Site;
use super::super::visitor::Visitor;
use super::filter::JobFilter;

/// The most jobs that one page looks at.
pub(super) const LOOKED_AT_MAX: usize = 5_000;
/// The largest portion.
const PORTION_MAX: usize = 500;

/// The jobs of a page.
#[derive(Debug, Clone, Default)]
pub(super) struct JobListPage {
    pub(super) jobs: Vec<JobDoc>,
    /// The cursor of the next page, if there may be one.
    pub(super) next: Option<String>,
    /// The number of jobs that were read.
    pub(super) looked_at: usize,
}

/// Finds at least `wanted` jobs, or all there are among those that one page looks at.
pub(super) async fn find(
    site: &Site,
    visitor: &Visitor,
    filter: &JobFilter,
    now: Timestamp,
    wanted: usize,
) -> Result<JobListPage, PageError> {
    let test = filter.test(now);
    let mut portion = wanted.min(PORTION_MAX);
    let least = portion;
    let cursor = filter.cursor.trim();
    let mut found = JobListPage::default();
    let mut next = (!cursor.is_empty()).then(|| cursor.to_owned());
    loop {
        let (jobs, after) = portion_of(site, visitor, filter, next.as_deref(), portion).await?;
        let looked_at = jobs.len();
        let passing: Vec<JobDoc> = jobs.into_iter().filter(|job| test.passes(job)).collect();
        if found.jobs.len() + passing.len() > wanted * 2 && portion > least {
            // A part of it is enough for this page.
            portion = (portion / 4).max(least);
            continue;
        }
        found.looked_at += looked_at;
        found.jobs.extend(passing);
        next = after;
        let is_full = found.jobs.len() >= wanted || found.looked_at >= LOOKED_AT_MAX.max(wanted);
        if is_full || next.is_none() {
            found.next = next;
            return Ok(found);
        }
        portion = (portion * 2).min(PORTION_MAX);
    }
}

async fn portion_of(
    site: &Site,
    visitor: &Visitor,
    filter: &JobFilter,
    cursor: Option<&str>,
    limit: usize,
) -> Result<(Vec<JobDoc>, Option<String>), PageError> {
    let mut params = Map::new();
    params.insert("limit".to_owned(), json!(limit));
    if let Some(state) = filter.state() {
        params.insert("status".to_owned(), json!(state.stored()));
    }
    if !filter.script_type.trim().is_empty() {
        params.insert("script_type".to_owned(), json!(filter.script_type.trim()));
    }
    if let Some(cursor) = cursor {
        params.insert("cursor".to_owned(), json!(cursor));
    }
    let answer = site.ask(visitor, "job.list", Value::Object(params)).await?;
    Ok(JobDoc::page(answer))
}
