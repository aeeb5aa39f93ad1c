//! Searches through jobs, and failures by their kind.

use std::collections::BTreeMap;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{JobClient, Result};
use crate::proto::error_kind::error_kind;
use crate::proto::job::{JobEnd, JobStatus};
use crate::store::{FoundJobs, JobSearch, JobSummary, ListQuery};

/// Failures, by the kind of their error.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorGroupsDocument {
    /// The kinds, the most frequent first.
    pub groups: Vec<ErrorGroupDocument>,
    /// The number of all kinds that were found: `groups` has the first of them.
    pub kinds: usize,
    /// The number of jobs of all kinds.
    pub jobs: u64,
    /// The number of failed jobs that were searched, the latest.
    pub searched: usize,
    /// True if all failed jobs were searched that can match.
    pub complete: bool,
}

/// Failures of one kind.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorGroupDocument {
    /// The error without numbers, ids, paths and quoted texts.
    pub kind: String,
    /// The number of jobs.
    pub jobs: u64,
    /// True if these jobs were stopped or replaced.
    pub cancelled: bool,
    /// The script types of the jobs, each with their number.
    pub types: BTreeMap<String, u64>,
    /// The latest of the jobs.
    pub last_job: String,
    /// The error of that job, cut.
    pub last_error: String,
    /// The end of that job, in RFC 3339.
    pub last_at: Option<String>,
}

impl JobClient<'_> {
    /// Searches for jobs until the page is full, the end is reached, or the budget of the query is spent. Only those
    /// are found that the caller `sees`.
    pub async fn find(
        self,
        query: &ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<FoundJobs> {
        Ok(self.client.shards.find_jobs(query, search, sees).await?)
    }

    /// Searches for jobs as [`JobClient::find`] does, for more than a page: at most `query.limit`.
    pub async fn find_many(
        self,
        query: &ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<FoundJobs> {
        let mut items = Vec::new();
        let found = self.each_found(query.clone(), search, sees, |job| items.push(job)).await?;
        Ok(FoundJobs { items, ..found })
    }

    /// Groups the failed jobs that a search finds and the caller `sees` by the kind of their error, at most `most`
    /// groups. Those that were stopped or replaced have not failed: they are left out, unless the query or the search asks
    /// for them. A job that the caller does not see counts as not searched.
    pub async fn error_groups(
        self,
        query: &ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
        most: usize,
    ) -> Result<ErrorGroupsDocument> {
        let mut query = ListQuery { statuses: vec![JobStatus::Error], ..query.clone() };
        if query.ends.is_empty() && !query.dead && !search.names_end() {
            query.ends = JobEnd::FAILURES.to_vec();
        }
        let mut groups: BTreeMap<String, ErrorGroupDocument> = BTreeMap::new();
        query.limit = usize::MAX;
        let each = |job| add(&mut groups, &job);
        let FoundJobs { searched, complete, .. } =
            self.each_found(query, search, sees, each).await?;
        let mut groups: Vec<ErrorGroupDocument> = groups.into_values().collect();
        groups.sort_by(|a, b| b.jobs.cmp(&a.jobs).then_with(|| a.kind.cmp(&b.kind)));
        let (kinds, jobs) = (groups.len(), groups.iter().map(|group| group.jobs).sum());
        groups.truncate(most);
        Ok(ErrorGroupsDocument { groups, kinds, jobs, searched, complete })
    }

    /// Searches for jobs as [`JobClient::find`] does, for at most `query.limit`, and keeps none. Returns how far it came.
    pub(super) async fn each_found(
        self,
        mut query: ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
        mut each: impl FnMut(JobSummary),
    ) -> Result<FoundJobs> {
        let (began, mut left, budget, mut searched) =
            (Instant::now(), query.limit, query.budget, 0);
        loop {
            query.limit = left.min(ListQuery::LIMIT_MAX);
            query.budget = budget.map(|budget| budget.saturating_sub(began.elapsed()));
            let mut found = self.client.shards.find_jobs(&query, search, &sees).await?;
            searched += found.searched;
            left = left.saturating_sub(found.items.len());
            found.items.drain(..).for_each(&mut each);
            let is_spent = budget.is_some_and(|budget| began.elapsed() >= budget);
            if found.next.is_none() || left == 0 || is_spent {
                return Ok(FoundJobs { searched, ..found });
            }
            query.cursor = found.next;
        }
    }
}

/// Adds a job to the group of its kind. The latest job comes first.
fn add(groups: &mut BTreeMap<String, ErrorGroupDocument>, job: &JobSummary) {
    let field = |name: &str| job.fields.get(name).cloned().unwrap_or_default();
    let error = field("error");
    let kind = error_kind(&error);
    let group = groups.entry(kind.clone()).or_insert_with(|| ErrorGroupDocument {
        kind,
        jobs: 0,
        cancelled: job.intended_end().is_some(),
        types: BTreeMap::new(),
        last_job: job.id.to_string(),
        last_error: error,
        last_at: job.fields.get("finished_at").cloned(),
    });
    group.jobs += 1;
    *group.types.entry(field("script_type")).or_default() += 1;
}
