//! Searches through jobs by what no index has: a bounded look at the latest.

use super::listing::{Cursor, JobSummary, ListQuery, read};
use super::{Store, StoreError};
use crate::proto::job::JobStatus;

/// A search for jobs. A text matches if the field contains it, in capitals or not.
#[derive(Debug, Clone, Default)]
pub struct JobSearch {
    /// Only jobs of this caller, whose whole name it is.
    pub caller: Option<String>,
    /// Only jobs whose name contains this text.
    pub name: Option<String>,
    /// Only jobs whose error contains this text in its first 200 characters.
    pub error: Option<String>,
    /// Only jobs that were stopped, or, with `false`, only others.
    pub cancelled: Option<bool>,
}

/// The jobs that a search has found.
#[derive(Debug, Clone, Default)]
pub struct FoundJobs {
    /// The jobs.
    pub items: Vec<JobSummary>,
    /// The place behind the last job that was looked at, if there may be more.
    pub next: Option<Cursor>,
    /// The number of jobs that were looked at.
    pub looked: usize,
}

impl JobSearch {
    /// The most jobs that one search looks at.
    pub const LOOKED_MAX: usize = 10_000;

    /// Returns true if it asks for anything.
    pub fn is_wanted(&self) -> bool {
        self.caller.is_some()
            || self.name.is_some()
            || self.error.is_some()
            || self.cancelled.is_some()
    }

    /// Returns true if a job is one of those that are looked for.
    pub fn matches(&self, job: &JobSummary) -> bool {
        let field = |name: &str| job.fields.get(name).map(String::as_str).unwrap_or_default();
        let has = |name: &str, text: &Option<String>| {
            let wanted = text.as_ref().map(|text| text.to_lowercase());
            wanted.is_none_or(|wanted| field(name).to_lowercase().contains(&wanted))
        };
        self.caller.as_ref().is_none_or(|caller| field("caller_id") == caller)
            && has("name", &self.name)
            && has("error", &self.error)
            && self.cancelled.is_none_or(|wanted| job.is_cancelled() == wanted)
    }
}

/// The jobs that were stopped, among the latest that ended in error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CancelledJobs {
    /// The number of those that were stopped.
    pub jobs: u64,
    /// The number of failed jobs that were looked at.
    pub looked: u64,
    /// True if there are more.
    pub more: bool,
}

/// The errors of jobs that were stopped.
const STOP_ERRORS: [&str; 2] = ["stopped", "stopped_by_request"];

/// Returns true for the error of a job that was stopped.
fn is_of_stop(error: Option<&str>) -> bool {
    error.is_some_and(|error| STOP_ERRORS.contains(&error))
}

impl JobSummary {
    /// Returns true if the job ended because it was stopped.
    pub fn is_cancelled(&self) -> bool {
        let error = self.fields.get("error").map(String::as_str);
        self.status == JobStatus::Error && is_of_stop(error)
    }
}

impl Store {
    /// Looks for jobs among the latest [`JobSearch::LOOKED_MAX`] of a query.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_jobs(
        &self,
        query: &ListQuery,
        search: &JobSearch,
    ) -> Result<FoundJobs, StoreError> {
        let wanted = query.limit.clamp(1, ListQuery::LIMIT_MAX);
        let mut page = ListQuery { limit: ListQuery::LIMIT_MAX, ..query.clone() };
        let mut found = FoundJobs::default();
        loop {
            let jobs = self.placed_jobs(&page).await?;
            let is_last = jobs.len() < page.limit;
            for (place, job) in jobs {
                found.looked += 1;
                found.next = Some(place);
                let of_type = |job: &JobSummary| {
                    let own = job.fields.get("script_type");
                    query
                        .script_type
                        .as_ref()
                        .is_none_or(|only| own.is_none_or(|t| t == only.as_str()))
                };
                found.items.extend(job.filter(|job| of_type(job) && search.matches(job)));
                if found.items.len() == wanted || found.looked >= JobSearch::LOOKED_MAX {
                    return Ok(found);
                }
            }
            if is_last {
                found.next = None;
                return Ok(found);
            }
            page.cursor.clone_from(&found.next);
        }
    }

    /// Counts the jobs that were stopped, among the latest `most` that ended in error.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_cancelled(&self, most: usize) -> Result<CancelledJobs, StoreError> {
        const DOING: &str = "counting cancelled jobs";
        let indexes = self.indexes(JobStatus::Error, None).await?;
        let mut latest = self.newest(&indexes, None, most + 1).await?;
        let more = latest.len() > most;
        latest.truncate(most);
        if latest.is_empty() {
            return Ok(CancelledJobs::default());
        }
        let looked = latest.len() as u64;
        let keys: Vec<String> = latest.iter().map(|(_, id)| self.keys.job(id)).collect();
        // Errors may be long: only those of the right length are read.
        let lengths: Vec<Option<usize>> = self.errors_of(DOING, "HSTRLEN", &keys).await?;
        let of_length =
            |length: &Option<usize>| STOP_ERRORS.iter().any(|e| Some(e.len()) == *length);
        let keys = keys.into_iter().zip(lengths).filter(|(_, length)| of_length(length));
        let keys: Vec<String> = keys.map(|(key, _)| key).collect();
        let errors: Vec<Option<String>> = self.errors_of(DOING, "HGET", &keys).await?;
        let jobs = errors.iter().filter(|error| is_of_stop(error.as_deref())).count();
        Ok(CancelledJobs { jobs: jobs as u64, looked, more })
    }

    /// Asks for the errors of jobs, or for their lengths, in one round trip.
    async fn errors_of<T: redis::FromRedisValue>(
        &self,
        doing: &'static str,
        command: &str,
        keys: &[String],
    ) -> Result<Vec<Option<T>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        for key in keys {
            pipeline.cmd(command).arg(key).arg("error");
        }
        let answers: Vec<redis::Value> = self.link.pipeline(doing, &pipeline).await?;
        Ok(answers.into_iter().map(read).collect())
    }
}
