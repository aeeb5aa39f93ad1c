//! Searches through jobs, and failures by their kind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Client, ClientError};
use crate::proto::error_kind::error_kind;
use crate::proto::job::JobStatus;
use crate::store::{CancelledJobs, FoundJobs, JobSearch, JobSummary, ListQuery};

/// The latest failures, by the kind of their error.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ErrorGroupsDocument {
    /// The kinds, the most frequent first.
    pub groups: Vec<ErrorGroupDocument>,
    /// The number of failed jobs that were looked at, the latest.
    pub looked: usize,
    /// True if there are more failed jobs than were looked at.
    pub more: bool,
}

/// The jobs that a search has found.
#[derive(Debug, Clone, Default)]
pub struct Matching {
    /// The jobs, the newest of each state first.
    pub jobs: Vec<JobSummary>,
    /// True if there may be more.
    pub more: bool,
}

impl Matching {
    /// The maximum number of jobs that are looked at.
    pub const LOOKED_MAX: usize = 1_000_000;
}

/// Failures of one kind.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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

impl Client {
    /// Looks for jobs among the latest [`JobSearch::LOOKED_MAX`] of a query. Only those are found that the
    /// caller `sees`.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn find_jobs(
        &self,
        query: &ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<FoundJobs, ClientError> {
        Ok(self.shards.find_jobs(query, search, sees).await?)
    }

    /// Looks for all jobs that a query and a search find and that are `wanted`, at most `query.limit`, the
    /// latest. Looks at no more than [`Matching::LOOKED_MAX`].
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn matching(
        &self,
        query: &ListQuery,
        search: &JobSearch,
        wanted: impl Fn(&JobSummary) -> bool,
    ) -> Result<Matching, ClientError> {
        let most = query.limit;
        let mut query = query.clone();
        let (mut jobs, mut looked) = (Vec::new(), 0);
        loop {
            query.limit = (most - jobs.len()).min(ListQuery::LIMIT_MAX);
            let found = self.shards.find_jobs(&query, search, &wanted).await?;
            looked += found.looked;
            jobs.extend(found.items);
            query.cursor = found.next;
            let is_over = jobs.len() >= most || looked >= Matching::LOOKED_MAX;
            if query.cursor.is_none() || is_over {
                return Ok(Matching { jobs, more: query.cursor.is_some() });
            }
        }
    }

    /// Counts the jobs that were stopped or replaced, among the latest `most` of each shard that ended in error.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn count_cancelled(&self, most: usize) -> Result<CancelledJobs, ClientError> {
        let of_shards = self.shards.each(|store| store.count_cancelled(most)).await?;
        Ok(of_shards.into_iter().fold(CancelledJobs::default(), |sum, of| CancelledJobs {
            jobs: sum.jobs + of.jobs,
            looked: sum.looked + of.looked,
            more: sum.more || of.more,
        }))
    }

    /// Groups the latest [`JobSearch::LOOKED_MAX`] failed jobs that a search finds and the caller `sees`
    /// by the kind of their error, at most `most` groups. Those that were stopped or replaced have not failed: they
    /// are left out, unless the search asks for them. A job that the caller does not see counts as not looked at.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn error_groups(
        &self,
        query: &ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
        most: usize,
    ) -> Result<ErrorGroupsDocument, ClientError> {
        let limit = ListQuery::LIMIT_MAX;
        let search = &JobSearch {
            cancelled: search.cancelled.or((!search.any_end && !query.dead).then_some(false)),
            ..search.clone()
        };
        let mut query = ListQuery { statuses: vec![JobStatus::Error], limit, ..query.clone() };
        let mut groups: BTreeMap<String, ErrorGroupDocument> = BTreeMap::new();
        let (mut looked, mut counted) = (0, 0);
        loop {
            let found = self.shards.find_jobs(&query, search, &sees).await?;
            looked += found.looked;
            counted += found.seen;
            for job in &found.items {
                add(&mut groups, job);
            }
            query.cursor = found.next;
            if query.cursor.is_none() || looked >= JobSearch::LOOKED_MAX {
                break;
            }
        }
        let mut groups: Vec<ErrorGroupDocument> = groups.into_values().collect();
        groups.sort_by(|a, b| b.jobs.cmp(&a.jobs).then_with(|| a.kind.cmp(&b.kind)));
        groups.truncate(most);
        Ok(ErrorGroupsDocument { groups, looked: counted, more: query.cursor.is_some() })
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
