//! Searches through jobs by what no index has, the latest first.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Instant;

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
    /// The place after the last job that was searched, if there may be more.
    pub next: Option<Cursor>,
    /// The number of jobs that were searched, without those that the caller does not see.
    pub searched: usize,
    /// True if the search has reached the end: there are no others. Without it, nobody knows.
    pub complete: bool,
}

impl FoundJobs {
    /// Returns the time back to which jobs were searched; `None` if all were.
    pub fn back_to(&self) -> Option<Timestamp> {
        self.next.as_ref()?.time()
    }
}

impl JobSearch {
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
    /// Searches for jobs until the page is full, the end is reached, or the budget of the query is spent. Only those
    /// are found that the caller `sees`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_jobs(
        &self,
        query: &ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<FoundJobs, StoreError> {
        let began = Instant::now();
        let Some(query) = search.narrow(query) else {
            return Ok(FoundJobs { complete: true, ..FoundJobs::default() });
        };
        let query = &query;
        let wanted = query.limit.clamp(1, ListQuery::LIMIT_MAX);
        let running_there = match &search.host {
            Some(host) => self.actors_on(host).await?,
            None => HashSet::new(),
        };
        let finds = |job: JobSummary| {
            let job = match &search.host {
                Some(host) => job.running_on(host, &running_there),
                None => job,
            };
            query.takes(&job).then_some(job).filter(|job| sees(job))
        };
        let range = search.range();
        // Often the first jobs are those that are wanted.
        let mut page = ListQuery { limit: wanted, ..query.clone() };
        let mut found = FoundJobs::default();
        loop {
            let jobs = self.placed_jobs(&page, &range).await?;
            let is_last = jobs.len() < page.limit;
            for (place, job) in jobs {
                found.next = Some(place);
                let Some(job) = job.and_then(&finds) else { continue };
                found.searched += 1;
                found
                    .items
                    .extend(Some(job).filter(|job| search.matches(job)).map(JobSummary::shortened));
                if found.items.len() == wanted {
                    return Ok(found);
                }
            }
            if is_last {
                found.next = None;
                found.complete = !query.is_of_ended() || self.unsorted().await? == 0;
                return Ok(found);
            }
            if query.budget.is_some_and(|budget| began.elapsed() >= budget) {
                return Ok(found);
            }
            page.cursor.clone_from(&found.next);
            page.limit = (page.limit * 2).min(ListQuery::LIMIT_MAX);
        }
    }

    /// Returns the number of ended jobs of an older version that are not sorted by their ends yet, so that no list has
    /// them.
    async fn unsorted(&self) -> Result<u64, StoreError> {
        let counts = self.each(Store::count_ended).await?;
        Ok(counts.into_iter().map(|counts| counts.unsorted).sum())
    }

    /// Returns the live actors on a machine.
    async fn actors_on(&self, host: &str) -> Result<HashSet<String>, StoreError> {
        let live = self.each(|store| store.actors(None)).await?;
        let there = live.into_iter().flatten().filter(|of| of.presence.hostname == host);
        Ok(there.map(|of| of.actor.to_string()).collect())
    }
}

impl ListQuery {
    /// Returns true if it asks for ended jobs.
    fn is_of_ended(&self) -> bool {
        self.wanted_statuses().any(JobStatus::is_terminal)
    }

    /// Returns true if a job is of the type: a boot may run jobs of several types.
    pub(super) fn takes(&self, job: &JobSummary) -> bool {
        match (&self.script_type, job.fields.get("script_type")) {
            (Some(only), Some(own)) => own == only.as_str(),
            _ => true,
        }
    }
}
