//! Searches through jobs by what no index has, the latest first.

use std::collections::HashSet;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Instant;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::cursor::Cursor;
use super::listing::{JobSummary, LISTED, ListQuery};
use super::{Result, Shards};
use crate::proto::error_kind::{ErrorKindFilter, FailureCause};
use crate::proto::job::{JobField, JobId, JobStatus, StateFilter, Tags};
use crate::proto::job_filter::{FilterRow, FilterTest, JobFilter, flag};
use crate::proto::queue::Queue;
use crate::proto::spoken_time::parse_past_time;
use crate::proto::target::ActorId;
use crate::proto::text::shown;

/// A search for jobs by what no index has. A job is found if it meets every condition.
#[derive(Debug, Clone, Default)]
pub struct JobSearch {
    pub(super) conditions: Vec<Condition>,
    sees_all: bool,
    /// The fields of the found jobs, if not all of a list are wanted.
    only: &'static [&'static str],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Is(&'static str, String),
    /// The field contains the text, which is in small letters.
    Contains(&'static str, String),
    /// The id begins with the text, or a field that is searched contains it.
    Anywhere(String),
    Tag(String),
    Queue(Queue),
    Kind(ErrorKindFilter),
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
    pub row: &'static FilterRow,
    pub reason: String,
}

/// The fields that a search for a text searches, besides the id.
static SEARCHED: LazyLock<Vec<&str>> = LazyLock::new(|| {
    JobField::listed_fields().filter(|field| field.is_searched).map(|field| field.name).collect()
});

/// The fields by which bounds of callers decide which jobs they see, beside its state.
const SEEN_BY: [&str; 6] = ["script_type", "group", "instance", "where", "caller_id", "context_id"];

#[derive(Debug, Clone, Default)]
pub struct FoundJobs {
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
    /// Returns the query for the indexes, and the search for the rest. `now` is of Redis; `zone` of times without one.
    pub fn of(
        filter: &JobFilter,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Result<(ListQuery, Self), IllegalFilter> {
        let (mut query, mut search, mut states) = (ListQuery::default(), Self::default(), vec![]);
        for (row, value) in filter.values() {
            let wrong = |reason: String| IllegalFilter { row, reason };
            let no_flag = || wrong(format!("`{}` is not legal: true or false", shown(value)));
            let on = || flag(value).ok_or_else(no_flag);
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
                FilterTest::Is("actor") => Condition::Is("actor", actor_name(value)),
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
                FilterTest::Until(field) => {
                    let until = time()?;
                    let is_turned = |of: &Condition| matches!(of, Condition::Since(name, from) if *name == field && *from > until);
                    if search.conditions.iter().any(is_turned) {
                        let reason =
                            format!("the period ends before it begins: `{}`", shown(value));
                        return Err(wrong(reason));
                    }
                    Condition::Until(field, until)
                }
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

    /// Returns it for a caller that sees every job, if `sees_all`: no field is read to decide that.
    #[must_use]
    pub fn seeing_all(self, sees_all: bool) -> Self {
        Self { sees_all, ..self }
    }

    /// Returns it for a caller that wants these fields of the found jobs alone.
    #[must_use]
    pub fn reading(self, only: &'static [&'static str]) -> Self {
        Self { only, ..self }
    }

    /// Returns true if it says itself which ends it wants: by a reason, or by whether jobs were stopped.
    pub fn names_end(&self) -> bool {
        let names = |of: &Condition| matches!(of, Condition::Cause(_) | Condition::Cancelled(_));
        self.conditions.iter().any(names)
    }

    pub fn matches(&self, job: &JobSummary) -> bool {
        self.conditions.iter().all(|condition| condition.is_met_by(job))
    }

    /// Returns the fields that decide or are wanted; all of a list without a condition, as then all are found.
    fn deciding_fields(&self, query: &ListQuery) -> Vec<&'static str> {
        if self.conditions.is_empty() && self.only.is_empty() {
            return LISTED.clone();
        }
        let mut names: Vec<&str> = self.conditions.iter().flat_map(Condition::fields).collect();
        if !self.sees_all {
            names.extend(SEEN_BY);
        }
        names.extend(self.only);
        names.extend(query.script_type.as_ref().map(|_| "script_type"));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns true if these fields are all that are wanted.
    fn has_all(&self, names: &[&str]) -> bool {
        !self.only.is_empty() || names.len() >= LISTED.len()
    }

    /// Returns the value that a field must have, if the search names one.
    fn wanted(&self, field: &str) -> Option<&str> {
        self.conditions.iter().find_map(|condition| match condition {
            Condition::Is(name, text) if *name == field => Some(text.as_str()),
            _ => None,
        })
    }
}

fn parsed<T: FromStr<Err: Display>>(
    row: &'static FilterRow,
    value: &str,
) -> Result<T, IllegalFilter> {
    value.parse().map_err(|error: T::Err| IllegalFilter { row, reason: error.to_string() })
}

/// Returns an actor's name as jobs have it: the name of its unit is another spelling. Foreign programs have any.
fn actor_name(value: &str) -> String {
    ActorId::from_unit(value).map_or_else(|_| value.to_owned(), |actor| actor.to_string())
}

impl Condition {
    fn fields(&self) -> Vec<&'static str> {
        match self {
            Self::Is("hostname", _) => vec!["hostname", "actor"],
            Self::Is(name, _)
            | Self::Contains(name, _)
            | Self::Has(name, _)
            | Self::Since(name, _)
            | Self::Until(name, _) => vec![name],
            Self::Anywhere(_) => SEARCHED.clone(),
            Self::Tag(_) => vec!["tags"],
            Self::Queue(_) => vec!["script_type", "group", "instance", "where", "priority"],
            Self::Kind(_) | Self::Cause(_) | Self::Cancelled(_) => vec!["error"],
            Self::HeldInQueue(_) => vec!["held_by"],
        }
    }

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

impl Shards {
    /// Searches for jobs that the caller `sees` until the page is full, the end is reached, or the budget is spent.
    pub async fn find_jobs(
        &self,
        query: &ListQuery,
        search: &JobSearch,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<FoundJobs> {
        let (began, mut found) = (Instant::now(), FoundJobs::default());
        let Some(query) = &search.narrow(query) else {
            return Ok(FoundJobs { complete: true, ..FoundJobs::default() });
        };
        let wanted = query.limit.clamp(1, ListQuery::LIMIT_MAX);
        let host = search.wanted("hostname");
        let running_there = match host {
            Some(host) => self.actors_on(host).await?,
            None => HashSet::new(),
        };
        let finds = |job: JobSummary| {
            let job = match host {
                Some(host) => job.running_on(host, &running_there),
                None => job,
            };
            query.takes(&job).then_some(job).filter(|job| sees(job))
        };
        let range = search.range();
        let children = match search.wanted("parent") {
            Some(parent) => self.children_of(parent, &sees).await?,
            None => None,
        };
        // Few of many jobs may match: these alone are read as a whole.
        let names = search.deciding_fields(query);
        // Often the first jobs are those that are wanted.
        let mut page = ListQuery { limit: wanted, ..query.clone() };
        loop {
            let jobs = match &children {
                Some(children) => self.placed_children(children, &page).await?,
                None => self.placed_jobs(&page, &range, &names).await?,
            };
            let is_last = jobs.len() < page.limit;
            let mut jobs = jobs.into_iter();
            let mut matching = Vec::new();
            for (place, job) in jobs.by_ref() {
                let is_seen =
                    job.as_ref().map_or_else(|| sees(&JobSummary::gone(&place.id)), &sees);
                found.next = Some(place.hidden(!is_seen));
                let Some(job) = job.and_then(&finds) else { continue };
                found.searched += 1;
                matching.extend(Some(job).filter(|job| search.matches(job)));
                if found.items.len() + matching.len() == wanted {
                    break;
                }
            }
            // Of those that have changed meanwhile, some may not match any more.
            let whole = self.whole_jobs(matching, search.has_all(&names)).await?.into_iter();
            let whole = whole.filter_map(&finds).filter(|job| search.matches(job));
            found.items.extend(whole.map(JobSummary::shortened));
            if found.items.len() == wanted {
                return Ok(found);
            }
            if is_last && jobs.next().is_none() {
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

    /// Returns jobs with all fields of a list, unless they have all that are wanted.
    async fn whole_jobs(&self, jobs: Vec<JobSummary>, has_all: bool) -> Result<Vec<JobSummary>> {
        if has_all || jobs.is_empty() {
            return Ok(jobs);
        }
        let ids = self.by_shard(jobs.into_iter().map(|job| job.id));
        let whole = self.of_each(ids, |store, ids| store.jobs().whole_summaries(ids)).await?;
        Ok(whole.into_iter().flatten().collect())
    }

    /// Returns the number of ended jobs of an older version, not sorted by their ends: no list has them.
    async fn unsorted(&self) -> Result<u64> {
        let counts = self.each(|store| store.jobs().count_ended()).await?;
        Ok(counts.into_iter().map(|counts| counts.unsorted).sum())
    }

    async fn actors_on(&self, host: &str) -> Result<HashSet<String>> {
        let live = self.each(|store| store.actors().list(None)).await?;
        let there = live.into_iter().flatten().filter(|of| of.presence.hostname == host);
        Ok(there.map(|of| of.actor.to_string()).collect())
    }
}

impl ListQuery {
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
