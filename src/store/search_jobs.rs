//! Searches through jobs by what no index has, the latest first.

use std::collections::HashSet;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Instant;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::cursor::Cursor;
use super::listing::{JobSummary, ListQuery};
use super::{Shards, Store, StoreError};
use crate::proto::error_kind::{ErrorKindFilter, FailureCause};
use crate::proto::job::{AskedWait, JobField, JobId, JobStatus, StateFilter, Tags};
use crate::proto::job_filter::{FilterRow, FilterTest, JobFilter, flag};
use crate::proto::queue::Queue;
use crate::proto::spoken_time::parse_past_time;
use crate::proto::target::Target;
use crate::proto::text::shown;

/// A search for jobs by what no index has. A job is found if it meets every condition.
#[derive(Debug, Clone, Default)]
pub struct JobSearch {
    pub(super) conditions: Vec<Condition>,
}

/// A condition that a job meets or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    /// The field is the text.
    Is(&'static str, String),
    /// The field contains the text, which is in small letters.
    Contains(&'static str, String),
    /// The id begins with the text, or a field that is searched contains it.
    Anywhere(String),
    /// The job has the tag.
    Tag(String),
    /// The job is of the queue.
    Queue(Queue),
    /// The error is of the kind.
    Kind(ErrorKindFilter),
    /// The job failed for this reason.
    Cause(FailureCause),
    /// It was stopped or replaced, or was not.
    Cancelled(bool),
    /// It has the field, or does not.
    Has(&'static str, bool),
    /// If it stands in a queue, a limit holds it, or does not.
    HeldInQueue(bool),
    /// The time of the field is then or later.
    Since(&'static str, Timestamp),
    /// The time of the field is then or earlier.
    Until(&'static str, Timestamp),
}

/// A value that a filter does not take.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct IllegalFilter {
    /// The filter.
    pub row: &'static FilterRow,
    /// The reason.
    pub reason: String,
}

/// The fields that a search for a text searches, besides the id.
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
    /// Returns the query by what indexes have, and the search by what they do not have. `now` is the time of Redis; times
    /// without a zone are of `zone`.
    ///
    /// # Errors
    /// [`IllegalFilter`].
    pub fn of(
        filter: &JobFilter,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Result<(ListQuery, Self), IllegalFilter> {
        let (mut query, mut search, mut states) = (ListQuery::default(), Self::default(), vec![]);
        for (row, value) in filter.values() {
            let wrong = |reason: String| IllegalFilter { row, reason };
            let on = || flag(value).ok_or_else(|| wrong(no_flag(value)));
            let time =
                || parse_past_time(value, zone, now).map_err(|error| wrong(error.to_string()));
            let text = || value.to_owned();
            let condition = match row.test {
                FilterTest::Status => {
                    states.extend(value.split(',').map(|word| (row, word)));
                    continue;
                }
                FilterTest::ScriptType => {
                    query.script_type = Some(parsed(row, value)?);
                    continue;
                }
                FilterTest::Dead => {
                    query.dead = on()?;
                    continue;
                }
                FilterTest::Queue => Condition::Queue(parsed(row, value)?),
                FilterTest::Is(field) => Condition::Is(field, text()),
                FilterTest::IsJob(field) => {
                    Condition::Is(field, parsed::<JobId>(row, value)?.to_string())
                }
                FilterTest::Contains(field) => Condition::Contains(field, value.to_lowercase()),
                FilterTest::Anywhere => Condition::Anywhere(value.to_lowercase()),
                FilterTest::Tag => Condition::Tag(text()),
                FilterTest::ErrorKind => Condition::Kind(ErrorKindFilter::new(value)),
                FilterTest::Cause => Condition::Cause(parsed(row, value)?),
                FilterTest::Cancelled => Condition::Cancelled(on()?),
                FilterTest::Has(field) => Condition::Has(field, on()?),
                FilterTest::Since(field) => Condition::Since(field, time()?),
                FilterTest::Until(field) => Condition::Until(field, time()?),
            };
            search.conditions.push(condition);
        }
        if let Some((row, _)) = states.first() {
            let of = StateFilter::of_words(states.iter().map(|(_, word)| *word));
            let of = of.map_err(|reason| IllegalFilter { row, reason })?;
            (query.statuses, query.ends) = (of.stored, of.ends);
            search.conditions.extend(of.held.map(Condition::HeldInQueue));
        }
        Ok((query, search))
    }

    /// Returns the search for jobs that ended then or later.
    pub fn ended_since(time: Option<Timestamp>) -> Self {
        Self {
            conditions: time
                .map(|time| Condition::Since("finished_at", time))
                .into_iter()
                .collect(),
        }
    }

    /// Returns true if it says itself which ends it wants: by a reason, or by whether jobs were stopped.
    pub fn names_end(&self) -> bool {
        let names = |of: &Condition| matches!(of, Condition::Cause(_) | Condition::Cancelled(_));
        self.conditions.iter().any(names)
    }

    /// Returns true if a job meets every condition.
    pub fn matches(&self, job: &JobSummary) -> bool {
        self.conditions.iter().all(|condition| condition.is_met_by(job))
    }

    /// Returns the machine that it asks for.
    fn host(&self) -> Option<&str> {
        self.wanted("hostname")
    }

    /// Returns the job whose children it asks for.
    fn parent(&self) -> Option<&str> {
        self.wanted("parent")
    }

    fn wanted(&self, field: &str) -> Option<&str> {
        self.conditions.iter().find_map(|condition| match condition {
            Condition::Is(name, text) if *name == field => Some(text.as_str()),
            _ => None,
        })
    }
}

/// Parses the value of a filter.
fn parsed<T: FromStr<Err: Display>>(
    row: &'static FilterRow,
    value: &str,
) -> Result<T, IllegalFilter> {
    value.parse().map_err(|error: T::Err| IllegalFilter { row, reason: error.to_string() })
}

fn no_flag(value: &str) -> String {
    format!("`{}` is not legal: true or false", shown(value))
}

impl Condition {
    fn is_met_by(&self, job: &JobSummary) -> bool {
        let field = |name: &str| job.fields.get(name).map(String::as_str).unwrap_or_default();
        let contains = |name: &str, text: &str| field(name).to_lowercase().contains(text);
        let is_held = || job.fields.contains_key("held_by");
        match self {
            Self::Is(name, text) => field(name) == text,
            Self::Contains(name, text) => contains(name, text),
            Self::Anywhere(text) => {
                job.id.as_str().to_lowercase().starts_with(text)
                    || SEARCHED.iter().any(|name| contains(name, text))
            }
            Self::Tag(tag) => Tags::of_field(field("tags")).has(tag),
            Self::Queue(queue) => job.queue().as_ref() == Some(queue),
            Self::Kind(kind) => kind.matches(field("error")),
            Self::Cause(cause) => job.cause() == Some(*cause),
            Self::Cancelled(wanted) => job.intended_end().is_some() == *wanted,
            Self::Has(name, wanted) => job.fields.contains_key(name) == *wanted,
            Self::HeldInQueue(wanted) => {
                job.status != JobStatus::Dispatched || is_held() == *wanted
            }
            Self::Since(name, time) => job.time(name).is_some_and(|at| at >= *time),
            Self::Until(name, time) => job.time(name).is_some_and(|at| at <= *time),
        }
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
        let running_there = match search.host() {
            Some(host) => self.actors_on(host).await?,
            None => HashSet::new(),
        };
        let finds = |job: JobSummary| {
            let job = match search.host() {
                Some(host) => job.running_on(host, &running_there),
                None => job,
            };
            query.takes(&job).then_some(job).filter(|job| sees(job))
        };
        let range = search.range();
        let children = match search.parent() {
            Some(parent) => self.children_of(parent, &sees).await?,
            None => None,
        };
        // Often the first jobs are those that are wanted.
        let mut page = ListQuery { limit: wanted, ..query.clone() };
        let mut found = FoundJobs::default();
        loop {
            let jobs = match &children {
                Some(children) => self.placed_children(children, &page).await?,
                None => self.placed_jobs(&page, &range).await?,
            };
            let is_last = jobs.len() < page.limit;
            for (place, job) in jobs {
                let is_seen = match &job {
                    Some(job) => sees(job),
                    None => sees(&JobSummary::gone(&place.id)),
                };
                found.next = Some(place.hidden(!is_seen));
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
