//! Pages of jobs. A page costs the page, however many jobs there are: nothing scans.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use super::cursor::Cursor;
use super::text::Legal;
use super::{JobStore, Result, Shards};
use crate::proto::error_kind::FailureCause;
use crate::proto::job::{AskedWait, JobEnd, JobField, JobId, JobStatus, json_of_field};
use crate::proto::queue::Queue;
use crate::proto::target::{ScriptType, SelectorDigest, Target};

#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// Only jobs in these states; in any, if it names none.
    pub statuses: Vec<JobStatus>,
    /// Of the jobs in `error`, only those with one of these ends; with any, if it names none.
    pub ends: Vec<JobEnd>,
    pub script_type: Option<ScriptType>,
    /// Only dead letters: jobs in `error` that used up their attempts, or took down too many actors.
    pub dead: bool,
    /// The limit on rows, up to [`ListQuery::LIMIT_MAX`].
    pub limit: usize,
    /// The end of the page before.
    pub cursor: Option<Cursor>,
    /// The time that a search has; without it, it goes on to the end.
    pub budget: Option<Duration>,
}

impl ListQuery {
    pub const LIMIT_MAX: usize = 1000;
    /// The time of a search that a page or a program waits for.
    pub const BUDGET: Duration = Duration::from_secs(2);

    pub(super) fn wanted_statuses(&self) -> impl Iterator<Item = JobStatus> + '_ {
        JobStatus::ALL.into_iter().filter(|status| {
            (self.statuses.is_empty() || self.statuses.contains(status))
                && (!self.dead || *status == JobStatus::Error)
        })
    }

    /// Returns the ends of jobs in a terminal state that it asks for.
    fn wanted_ends(&self, status: JobStatus) -> impl Iterator<Item = JobEnd> + '_ {
        JobEnd::ALL.into_iter().filter(move |end| {
            let is_any = *end == JobEnd::Finished || self.ends.is_empty();
            end.status() == status && (is_any || self.ends.contains(end))
        })
    }
}

/// A page of a list, and the cursor to its next page.
#[derive(Debug, Clone)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The cursor to the next page, if there may be one.
    pub next: Option<Cursor>,
}

/// A job in a list. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    pub id: JobId,
    pub status: JobStatus,
    /// Further fields of its hash, by their names.
    pub fields: BTreeMap<&'static str, String>,
}

impl Serialize for JobSummary {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.fields.len() + 2))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("status", &self.status)?;
        for (name, text) in &self.fields {
            map.serialize_entry(name, &json_of_field(name, text.clone()))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for JobSummary {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut members = Map::<String, Json>::deserialize(from)?;
        let mut own = |name: &str| members.remove(name).unwrap_or_default();
        let (id, status) = (own("id"), own("status"));
        let fields = members.into_iter().filter_map(|(name, value)| {
            let text = match value {
                Json::String(text) => text,
                other => other.to_string(),
            };
            Some((JobField::of(&name)?.name, text))
        });
        Ok(Self {
            id: id.as_str().unwrap_or_default().parse().map_err(D::Error::custom)?,
            status: JobStatus::deserialize(status).map_err(D::Error::custom)?,
            fields: fields.collect(),
        })
    }
}

impl JobStore<'_> {
    /// One page of jobs, the latest change first.
    pub async fn list(self, query: &ListQuery) -> Result<Page<JobSummary>> {
        Shards::from(self.store.clone()).list_jobs(query).await
    }

    pub(super) async fn indexes(
        self,
        status: JobStatus,
        script_type: Option<&ScriptType>,
    ) -> Result<Vec<String>> {
        match status {
            JobStatus::Dispatched => Ok(self
                .queues()
                .await?
                .iter()
                .filter(|queue| script_type.is_none_or(|only| only == queue.target.script_type()))
                .flat_map(|queue| [self.store.keys.ready(queue), self.store.keys.held(queue)])
                .collect()),
            JobStatus::Started => {
                let Legal(boots) = self
                    .store
                    .link
                    .command("listing jobs", "ZRANGE", (self.store.keys.boots(), 0, -1))
                    .await?;
                let running = boots.iter().map(|boot| self.store.keys.running(boot));
                let mut indexes: Vec<String> = running.collect();
                // Jobs of foreign actors.
                for of_type in self.types().await? {
                    indexes.push(self.store.keys.index(status, &of_type));
                }
                Ok(indexes)
            }
            _ => {
                let types = self.types_or_only(script_type).await?;
                Ok(types
                    .iter()
                    .map(|script_type| self.store.keys.index(status, script_type))
                    .collect())
            }
        }
    }

    /// The indexes of the ends of jobs in a terminal state that a query asks for.
    pub(super) async fn ended_indexes(
        self,
        status: JobStatus,
        query: &ListQuery,
    ) -> Result<Vec<String>> {
        let types = self.types_or_only(query.script_type.as_ref()).await?;
        let ends: Vec<JobEnd> = query.wanted_ends(status).collect();
        let of_type = |of| ends.iter().map(move |end| self.store.keys.ended(*end, of));
        Ok(types.iter().flat_map(of_type).collect())
    }

    /// The script types that ever had a job or an actor.
    pub async fn types(self) -> Result<Vec<ScriptType>> {
        let Legal::<ScriptType>(mut types) = self
            .store
            .link
            .command("listing script types", "SMEMBERS", self.store.keys.types())
            .await?;
        types.sort();
        Ok(types)
    }

    pub(super) async fn types_or_only(self, only: Option<&ScriptType>) -> Result<Vec<ScriptType>> {
        match only {
            Some(only) => Ok(vec![only.clone()]),
            None => self.types().await,
        }
    }

    pub(super) async fn queues(self) -> Result<Vec<Queue>> {
        let Legal::<Queue>(mut queues) =
            self.store.link.command("listing queues", "SMEMBERS", self.store.keys.queues()).await?;
        queues.sort();
        Ok(queues)
    }

    /// Reads jobs as lists show them, in one round trip; `None` for a missing one.
    pub async fn summaries(self, ids: Vec<JobId>) -> Result<Vec<Option<JobSummary>>> {
        let jobs = self.whole_summaries(ids).await?;
        Ok(jobs.into_iter().map(|job| job.map(JobSummary::shortened)).collect())
    }

    /// Does the same as [`JobStore::summaries`] with the whole errors, for a search.
    pub(super) async fn whole_summaries(self, ids: Vec<JobId>) -> Result<Vec<Option<JobSummary>>> {
        self.summaries_with(ids, &LISTED).await
    }

    /// Does the same with these fields alone.
    pub(super) async fn summaries_with(
        self,
        ids: Vec<JobId>,
        names: &[&'static str],
    ) -> Result<Vec<Option<JobSummary>>> {
        let fields = |id| ("HMGET", (self.store.keys.job(id), "status", names));
        let hashes: Vec<Option<Vec<_>>> =
            self.store.link.each("listing jobs", &ids, fields).await?;
        let read_one = |(id, fields): (JobId, Option<Vec<_>>)| summary(id, names, &fields?);
        Ok(ids.into_iter().zip(hashes).map(read_one).collect())
    }
}

/// The fields of a job in a list, beside its id and state.
pub(super) static LISTED: LazyLock<Vec<&str>> =
    LazyLock::new(|| JobField::listed_fields().map(|field| field.name).collect());

/// The longest field of a job in a list, in characters.
const CHARS_MAX: usize = 200;
/// The longest error in a list, in characters.
const ERROR_SHOWN_MAX: usize = 1000;
/// The longest list of tags, which is useless if it is cut.
const TAGS_CHARS_MAX: usize = 2000;
/// The longest error that is searched: more than the end of standard error that a job keeps.
const ERROR_CHARS_MAX: usize = 8000;

/// `None` for a job that has expired meanwhile, and for an invalid hash.
fn summary(id: JobId, names: &[&'static str], fields: &[Option<Vec<u8>>]) -> Option<JobSummary> {
    let most = |name: &str| match name {
        "tags" => TAGS_CHARS_MAX,
        "error" => ERROR_CHARS_MAX,
        _ => CHARS_MAX,
    };
    let cut = |bytes: &Option<Vec<u8>>, most: usize| {
        bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).chars().take(most).collect())
    };
    let (status, rest) = fields.split_first()?;
    let status: String = cut(status, CHARS_MAX)?;
    let fields = names.iter().copied().zip(rest);
    let fields = fields.filter_map(|(name, value)| Some((name, cut(value, most(name))?))).collect();
    Some(JobSummary { id, status: status.parse().ok()?, fields })
}

impl JobSummary {
    /// Returns it with its error as lists show it.
    pub(super) fn shortened(mut self) -> Self {
        if let Some(error) = self.fields.get_mut("error")
            && let Some((end, _)) = error.char_indices().nth(ERROR_SHOWN_MAX)
        {
            error.truncate(end);
        }
        self
    }

    /// A job of which nothing is known any more.
    pub(super) fn gone(id: &JobId) -> Self {
        Self { id: id.clone(), status: JobStatus::Error, fields: BTreeMap::new() }
    }

    /// A field as text; empty if the job has none.
    pub fn text(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }

    /// A time among the fields, if it can be parsed.
    pub fn time(&self, field: &str) -> Option<Timestamp> {
        self.fields.get(field)?.parse().ok()
    }
}

impl JobSummary {
    /// Returns `cancelled` or `replaced` if the job ended in `error` because it was.
    pub fn intended_end(&self) -> Option<&'static str> {
        self.cause()?.intended()
    }

    /// Returns the word for its state in lists, by which a filter of states finds it: of its end, else from the hash.
    pub fn state(&self) -> &'static str {
        match self.status {
            JobStatus::Error => self.cause().map_or(JobEnd::Failed, FailureCause::end).as_str(),
            status => status.as_str(),
        }
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

    /// Sets the machine of a running job, in place of the one of its last attempt in its hash: `host` if its actor is there.
    pub(super) fn running_on(mut self, host: &str, actors_there: &HashSet<String>) -> Self {
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
        queue_of_fields(|name| self.fields.get(name).map(String::as_str))
    }
}

/// Returns the queue that the fields of a job name; `None` without a type.
pub(super) fn queue_of_fields<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Option<Queue> {
    let script_type = field("script_type")?.parse().ok()?;
    let group = field("group").and_then(|group| group.parse().ok());
    let instance = field("instance").and_then(|instance| instance.parse().ok());
    let priority = field("priority").and_then(|priority| priority.parse().ok());
    let selector = field("where").map(SelectorDigest::of_text);
    let target = Target::of(script_type, group, instance, selector);
    Some(Queue { target, priority: priority.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_job_in_a_list_are_numbers_in_json() {
        let texts = [("attempt", "2"), ("name", "7"), ("priority", "0"), ("progress", "0.5")];
        let fields = texts.map(|(name, text)| (name, text.to_owned())).into();
        let id = "a".parse().expect("legal");
        let job = JobSummary { id, status: JobStatus::Started, fields };
        assert_eq!(
            serde_json::json!(job),
            serde_json::json!({
                "id": "a", "status": "started", "attempt": 2, "name": "7", "priority": 0,
                "progress": 0.5,
            })
        );
    }
}
