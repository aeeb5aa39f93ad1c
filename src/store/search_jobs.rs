//! Searches through jobs by what no index has: a bounded look at the latest.

use std::collections::HashSet;
use std::sync::LazyLock;

use jiff::Timestamp;

use super::listing::{Cursor, JobSummary, ListQuery};
use super::{Shards, Store, StoreError};
use crate::proto::error_kind::{ErrorKindFilter, FailureCause};
use crate::proto::job::{AskedWait, JobField, JobId, JobStatus, Tags};
use crate::proto::queue::Queue;
use crate::proto::target::Target;

/// A search for jobs. A text matches if the field contains it, in capitals or not.
#[derive(Debug, Clone, Default)]
pub struct JobSearch {
    /// Only jobs of this caller, whose whole name it is.
    pub caller: Option<String>,
    /// Only jobs whose name contains this text.
    pub name: Option<String>,
    /// Only jobs with all of these tags.
    pub tags: Vec<String>,
    /// Only jobs whose error contains this text.
    pub error: Option<String>,
    /// Only jobs whose id begins with this text, or whose name, tags or error contain it.
    pub text: Option<String>,
    /// Only jobs whose error is of this kind.
    pub error_kind: Option<ErrorKindFilter>,
    /// Only jobs that failed for this reason.
    pub cause: Option<FailureCause>,
    /// Only jobs of this queue.
    pub queue: Option<Queue>,
    /// Only jobs that a limit holds, or, with `false`, only others.
    pub held: Option<bool>,
    /// Only jobs that were stopped or replaced, or, with `false`, only others.
    pub cancelled: Option<bool>,
    /// Only jobs that were late: that did not end within their `expect_within`; or, with `false`, only others.
    pub late: Option<bool>,
    /// True if jobs that were stopped or replaced are wanted too where otherwise only failed ones are meant.
    pub any_end: bool,
    /// Only jobs that were created at this time or after it.
    pub since: Option<Timestamp>,
    /// Only jobs that were created at this time or before it.
    pub until: Option<Timestamp>,
    /// Only jobs that ended at this time or after it.
    pub ended_since: Option<Timestamp>,
    /// Only jobs whose last attempt was of this actor.
    pub actor: Option<String>,
    /// Only jobs that run on this machine, or whose last attempt was there.
    pub host: Option<String>,
    /// Only jobs that ended at this time or before it.
    pub ended_until: Option<Timestamp>,
    /// Only jobs that the script of this job submitted.
    pub parent: Option<JobId>,
}

/// The fields into which a search for a text looks, beside the id.
static SEARCHED: LazyLock<Vec<&str>> = LazyLock::new(|| {
    JobField::listed_fields().filter(|field| field.is_searched).map(|field| field.name).collect()
});

/// The jobs that a search has found.
#[derive(Debug, Clone, Default)]
pub struct FoundJobs {
    /// The jobs.
    pub items: Vec<JobSummary>,
    /// The place after the last job that was looked at, if there may be more.
    pub next: Option<Cursor>,
    /// The number of jobs that were looked at.
    pub looked: usize,
    /// The number of those that the caller sees.
    pub seen: usize,
}

impl JobSearch {
    /// The maximum number of jobs that one search looks at.
    pub const LOOKED_MAX: usize = 10_000;

    /// Returns true if it asks for anything.
    pub fn is_wanted(&self) -> bool {
        let texts = [&self.caller, &self.name, &self.error, &self.text];
        texts.iter().any(|text| text.is_some())
            || !self.tags.is_empty()
            || self.cause.is_some()
            || self.error_kind.is_some()
            || self.queue.is_some()
            || self.held.is_some()
            || self.cancelled.is_some()
            || self.late.is_some()
            || self.actor.is_some()
            || self.host.is_some()
            || self.parent.is_some()
            || [self.since, self.until, self.ended_since, self.ended_until]
                .iter()
                .any(Option::is_some)
    }

    /// Returns true if a job is one of those that are looked for.
    pub fn matches(&self, job: &JobSummary) -> bool {
        let field = |name: &str| job.fields.get(name).map(String::as_str).unwrap_or_default();
        let has =
            |name: &str, wanted: &str| field(name).to_lowercase().contains(&wanted.to_lowercase());
        let of_text = |text: &str| {
            let begins = job.id.as_str().to_lowercase().starts_with(&text.to_lowercase());
            begins || SEARCHED.iter().any(|name| has(name, text))
        };
        let is_within = |field: &str, since: Option<Timestamp>, until: Option<Timestamp>| {
            (since.is_none() && until.is_none())
                || job.time(field).is_some_and(|at| {
                    since.is_none_or(|since| at >= since) && until.is_none_or(|until| at <= until)
                })
        };
        self.caller.as_ref().is_none_or(|caller| field("caller_id") == caller)
            && self.name.as_ref().is_none_or(|name| has("name", name))
            && job.has_tags(&self.tags)
            && self.error.as_ref().is_none_or(|error| has("error", error))
            && self.text.as_ref().is_none_or(|text| of_text(text))
            && self.queue.as_ref().is_none_or(|queue| job.queue().as_ref() == Some(queue))
            && self.held.is_none_or(|wanted| job.fields.contains_key("held_by") == wanted)
            && self.cancelled.is_none_or(|wanted| job.intended_end().is_some() == wanted)
            && self.late.is_none_or(|wanted| job.fields.contains_key("late_at") == wanted)
            && self.actor.as_ref().is_none_or(|actor| field("actor") == actor)
            && self.host.as_ref().is_none_or(|host| field("hostname") == host)
            && self.parent.as_ref().is_none_or(|parent| field("parent") == parent.as_str())
            && is_within("created_at", self.since, self.until)
            && is_within("finished_at", self.ended_since, self.ended_until)
            && self.cause.is_none_or(|cause| job.cause() == Some(cause))
            && self.error_kind.as_ref().is_none_or(|kind| kind.matches(field("error")))
    }
}

/// The jobs that were stopped or replaced, among the latest that ended in error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CancelledJobs {
    /// The number of those that were stopped or replaced.
    pub jobs: u64,
    /// The number of failed jobs that were looked at.
    pub looked: u64,
    /// True if there are more.
    pub more: bool,
}

impl JobSummary {
    /// Returns `cancelled` or `replaced` if the job ended in `error` because it was.
    pub fn intended_end(&self) -> Option<&'static str> {
        self.cause()?.intended()
    }

    /// Returns the word for its state in lists: for an intended end, else from the hash.
    pub fn state(&self) -> &'static str {
        self.intended_end().unwrap_or(self.status.as_str())
    }

    /// Returns `late` or `slow` if it has not ended, and is that.
    pub fn delay(&self) -> Option<&'static str> {
        let is_late = self.fields.contains_key("late_at");
        let is_slow = self.status == JobStatus::Started
            && self.time("slow_at").is_some_and(|slow| Some(slow) >= self.time("started_at"));
        let word = is_late.then_some("late").or(is_slow.then_some("slow"));
        word.filter(|_| !self.status.is_terminal())
    }

    /// Returns what its script waits for, in words, if it does.
    pub fn awaited(&self) -> Option<String> {
        let wait = self.fields.get("wait").filter(|_| self.status == JobStatus::Scheduled)?;
        AskedWait::of_field(wait).map(|wait| wait.words())
    }

    /// Sets the machine of a job that runs, as its hash has only the one of its last attempt: to `host` if its
    /// actor is one of those there.
    fn running_on(mut self, host: &str, actors_there: &HashSet<String>) -> Self {
        if self.status == JobStatus::Started {
            let is_there =
                self.fields.get("actor").is_some_and(|actor| actors_there.contains(actor));
            self.fields.remove("hostname");
            if is_there {
                self.fields.insert("hostname", host.to_owned());
            }
        }
        self
    }

    /// Returns true if the job has all of these tags.
    pub fn has_tags(&self, wanted: &[String]) -> bool {
        if wanted.is_empty() {
            return true;
        }
        let own = self.fields.get("tags").map(|text| Tags::of_field(text)).unwrap_or_default();
        wanted.iter().all(|tag| own.has(tag))
    }

    /// Returns why the job failed, if it did.
    pub fn cause(&self) -> Option<FailureCause> {
        let error = self.fields.get("error").filter(|_| self.status == JobStatus::Error)?;
        Some(FailureCause::of(error))
    }

    /// Returns the queue of the job; `None` without a type.
    pub fn queue(&self) -> Option<Queue> {
        let field = |name: &str| self.fields.get(name);
        let script_type = field("script_type")?.parse().ok()?;
        let group = field("group").and_then(|group| group.parse().ok());
        let instance = field("instance").and_then(|instance| instance.parse().ok());
        let priority = field("priority").and_then(|priority| priority.parse().ok());
        let target = Target::of(script_type, group, instance);
        Some(Queue { target, priority: priority.unwrap_or_default() })
    }
}

impl Shards {
    /// Looks for jobs among the latest [`JobSearch::LOOKED_MAX`] of a query. Only those are found that the
    /// caller `sees`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_jobs(
        &self,
        query: &ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<FoundJobs, StoreError> {
        let wanted = query.limit.clamp(1, ListQuery::LIMIT_MAX);
        let of_type = |job: &JobSummary| match (&query.script_type, job.fields.get("script_type")) {
            (Some(only), Some(own)) => own == only.as_str(),
            _ => true,
        };
        let running_there = match &search.host {
            Some(host) => self.actors_on(host).await?,
            None => HashSet::new(),
        };
        // Often the first jobs are those that are wanted.
        let mut page = ListQuery { limit: wanted, ..query.clone() };
        let mut found = FoundJobs::default();
        loop {
            let jobs = self.placed_jobs(&page).await?;
            let is_last = jobs.len() < page.limit;
            for (place, job) in jobs {
                found.looked += 1;
                found.next = Some(place);
                let job = job.map(|job| match &search.host {
                    Some(host) => job.running_on(host, &running_there),
                    None => job,
                });
                let job = job.filter(|job| of_type(job) && sees(job));
                found.seen += usize::from(job.is_some());
                let job = job.filter(|job| search.matches(job));
                found.items.extend(job.map(JobSummary::shortened));
                if found.items.len() == wanted || found.looked >= JobSearch::LOOKED_MAX {
                    return Ok(found);
                }
            }
            if is_last {
                found.next = None;
                return Ok(found);
            }
            page.cursor.clone_from(&found.next);
            page.limit = (page.limit * 2).min(ListQuery::LIMIT_MAX);
        }
    }

    /// Returns the live actors on a machine.
    async fn actors_on(&self, host: &str) -> Result<HashSet<String>, StoreError> {
        let live = self.each(|store| store.actors(None)).await?;
        let there = live.into_iter().flatten().filter(|of| of.presence.hostname == host);
        Ok(there.map(|of| of.actor.to_string()).collect())
    }
}

impl Store {
    /// Counts the jobs that were stopped or replaced, among the latest `most` that ended in error.
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
        // Errors may be long: only errors of the right length are read.
        let lengths: Vec<Option<usize>> =
            self.link.each(DOING, &keys, |key| ("HSTRLEN", (key, "error"))).await?;
        let of_length = |length: &Option<usize>| length.is_some_and(FailureCause::may_be_intended);
        let keys = keys.into_iter().zip(lengths).filter(|(_, length)| of_length(length));
        let keys: Vec<String> = keys.map(|(key, _)| key).collect();
        let errors: Vec<Option<String>> =
            self.link.each(DOING, &keys, |key| ("HGET", (key, "error"))).await?;
        let is_intended = |error: &&String| FailureCause::of(error).intended().is_some();
        let jobs = errors.iter().flatten().filter(is_intended).count();
        Ok(CancelledJobs { jobs: jobs as u64, looked, more })
    }
}
