//! The lateness of periodic jobs: what supervisors note of it, and what everybody reads. And the periodic jobs that were added
//! by command.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use redis::ScriptInvocation;

use super::backoff::micros;
use super::submission::{submission, with_fields};
use super::text::{HashFields, Legal};
use super::{CronStore, Result, StoreError};
use crate::proto::cron::{ADDED_MAX, CronName, MissedFirings, OverdueTime};
use crate::proto::graph::GraphState;
use crate::proto::job::{Job, JobId, JobStatus, Retention};
use crate::proto::word_table::words;

const FILLING: &str = "backfilling a periodic job";
const NAMES_MAX: isize = 2000;

/// The state of a periodic job by which a supervisor fires it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CronMark {
    /// The time up to which it was fired or left out.
    pub due: Timestamp,
    pub is_disabled: bool,
    /// The time from which its lateness is counted: its last success, else when it was first seen, enabled or changed.
    pub from: Timestamp,
    /// The duration of its last job.
    pub took: Duration,
    /// The time from which it is overdue, as noted.
    pub overdue: Option<Timestamp>,
}

/// The answer to a backfill of one firing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackfilledJob {
    Submitted,
    /// It fired for this time, as this job.
    Fired(String),
    /// It was backfilled for this time before.
    Exists,
    /// This job holds its unique key.
    LeftOut(String),
    /// Its job was refused, for this reason.
    Failed(String),
}

/// The ends of the jobs of a periodic job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CronEnds {
    /// The last success: its time and its job.
    pub succeeded: Option<(Timestamp, String)>,
    /// The last failure: its time, its job and its error. A firing without a job has an empty id.
    pub failed: Option<(Timestamp, String, String)>,
    /// The duration of the last job that ended.
    pub took: Option<Duration>,
    pub overdue: Option<Timestamp>,
    /// The number of firings that were missed, as no supervisor ran, and are not made up for.
    pub missed: u64,
}

impl CronEnds {
    /// Returns the last firing that had no job, with the reason, if there was no success since then.
    pub fn refused(&self) -> Option<(Timestamp, &str)> {
        let (at, id, why) = self.failed.as_ref()?;
        let succeeded = self.succeeded.as_ref().map(|(at, _)| *at);
        (id.is_empty() && Some(*at) > succeeded).then_some((*at, why))
    }

    fn read((ended, of_cron): &(HashFields, HashFields)) -> Self {
        let text = |name| ended.text(name).unwrap_or_default().to_owned();
        let time = |name| ended.text(name).and_then(moment);
        Self {
            succeeded: time("succeeded_us").map(|at| (at, text("succeeded_id"))),
            failed: time("failed_us").map(|at| (at, text("failed_id"), text("failed_why"))),
            took: ended.parsed("took_us").map(Duration::from_micros),
            overdue: time("overdue_us"),
            missed: of_cron.parsed("missed").unwrap_or_default(),
        }
    }

    /// Returns true for a field of the hash that reports an end, and not of the time until the next one.
    pub(super) fn is_of_end(field: &str) -> bool {
        ENDED_FIELDS.contains(&field) && field != "overdue_us"
    }
}

/// A periodic job that a supervisor fires, as monitoring sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredCron {
    pub name: CronName,
    pub ends: CronEnds,
    /// True if the job of its last firing runs.
    pub is_running: bool,
}

const ENDED_FIELDS: [&str; 7] = [
    "succeeded_us",
    "succeeded_id",
    "failed_us",
    "failed_id",
    "failed_why",
    "took_us",
    "overdue_us",
];

const OF_CRON: [&str; 4] = ["missed", "id", "ran_id", "batch_id"];

impl<'a> CronStore<'a> {
    /// The time now, and the state of each name. A new name counts from now on.
    pub async fn state<'n>(
        self,
        names: impl IntoIterator<Item = &'n CronName>,
    ) -> Result<(Timestamp, Vec<CronMark>)> {
        const DOING: &str = "looking at periodic jobs";
        let names: Vec<&str> = names.into_iter().map(CronName::as_str).collect();
        let state: Vec<String> =
            self.store.run_script(DOING, &self.store.scripts.cron_state, names).await?;
        let now =
            state.first().and_then(|us| moment(us)).ok_or_else(|| StoreError::unexpected(DOING))?;
        let mark = |of: &[String]| {
            let [due, disabled, since, succeeded, took, overdue] = of else { return None };
            let since = moment(since)?;
            Some(CronMark {
                due: moment(due)?,
                is_disabled: disabled == "1",
                from: moment(succeeded).map_or(since, |succeeded| succeeded.max(since)),
                took: took.parse().map_or(Duration::ZERO, Duration::from_micros),
                overdue: moment(overdue),
            })
        };
        let marks = state[1..].chunks(6).map(mark).collect::<Option<Vec<CronMark>>>();
        Ok((now, marks.ok_or_else(|| StoreError::unexpected(DOING))?))
    }

    /// Notes from when on a periodic job is overdue. Returns false if the state that this follows from has changed.
    pub async fn note_overdue(
        self,
        name: &CronName,
        from: Timestamp,
        overdue: OverdueTime,
    ) -> Result<bool> {
        let overdue = (micros(overdue.twice), overdue.at.as_microsecond());
        let arguments = (name.as_str(), from.as_microsecond(), overdue);
        let doing = "noting when a periodic job is overdue";
        self.store.run_script(doing, &self.store.scripts.cron_overdue, arguments).await
    }

    /// Notes firings that were missed and are left out. Returns false if another supervisor has noted them.
    pub async fn note_missed(
        self,
        name: &CronName,
        last: Timestamp,
        missed: MissedFirings,
    ) -> Result<bool> {
        let more = if missed.is_exact { "" } else { " or more" };
        let missed = (missed.latest.as_microsecond(), missed.number, more);
        let arguments = (name.as_str(), last.as_microsecond(), missed);
        let doing = "noting missed firings of a periodic job";
        self.store.run_script(doing, &self.store.scripts.cron_missed, arguments).await
    }

    /// Submits the job of a periodic job for a time of the past, beside its schedule. `fired` is the id of the job
    /// of its firing, and whether a time for which it fired is left out.
    pub async fn backfill(
        self,
        name: &CronName,
        due: Timestamp,
        fired: (&JobId, bool),
        job: &Job,
        retention: Retention,
    ) -> Result<BackfilledJob> {
        let mut script = self.filling(name, due, fired);
        submission(&mut script, &[with_fields(job)], true, retention);
        let (code, detail): (String, String) = self.store.invoke(FILLING, &script).await?;
        backfilled(&code, detail)
    }

    /// Asks whether a backfill would submit its job or graph, of this id, for a time.
    pub async fn would_backfill(
        self,
        name: &CronName,
        due: Timestamp,
        fired: (&JobId, bool),
        id: &JobId,
    ) -> Result<bool> {
        let mut script = self.filling(name, due, fired);
        script.arg("ask").arg(id.as_str());
        let (code, _): (String, String) = self.store.invoke(FILLING, &script).await?;
        Ok(code == "stage")
    }

    /// Returns the call of a backfill without what it submits.
    pub(super) fn filling(
        self,
        name: &CronName,
        due: Timestamp,
        (fired, only_missing): (&JobId, bool),
    ) -> ScriptInvocation<'a> {
        let mut script = self.store.scripts.backfill.prepare_invoke();
        script.arg(name.as_str()).arg(due.as_microsecond());
        script.arg(if only_missing { "missing" } else { "" }).arg(fired.as_str());
        script
    }

    /// The ends of the jobs of a periodic job.
    pub async fn ends(self, name: &CronName) -> Result<CronEnds> {
        let doing = "looking at the ends of a periodic job";
        let read = self.fields_of(doing, std::slice::from_ref(name)).await?;
        Ok(read.first().map(CronEnds::read).unwrap_or_default())
    }

    /// Returns the fields with the ends of periodic jobs, and those with what they fired last.
    async fn fields_of(
        self,
        doing: &'static str,
        names: &[CronName],
    ) -> Result<Vec<(HashFields, HashFields)>> {
        let mut pipeline = redis::pipe();
        for name in names {
            pipeline.cmd("HMGET").arg(self.store.keys.cron_ended(name)).arg(&ENDED_FIELDS);
            pipeline.cmd("HMGET").arg(self.store.keys.cron(name)).arg(&OF_CRON);
        }
        let mut texts = self.store.link.pipeline::<Vec<_>>(doing, &pipeline).await?.into_iter();
        let mut next = |names| HashFields::of(names, texts.next());
        Ok(names.iter().map(|_| (next(&ENDED_FIELDS), next(&OF_CRON))).collect())
    }

    /// The periodic jobs that supervisors fire, or have fired, by name.
    pub async fn fired(self) -> Result<Vec<FiredCron>> {
        const DOING: &str = "looking at the periodic jobs that are fired";
        let arguments = (self.store.keys.cron_names(), 0, NAMES_MAX - 1);
        let Legal::<CronName>(mut names) =
            self.store.link.command(DOING, "ZRANGE", arguments).await?;
        names.sort();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let fields = self.fields_of(DOING, &names).await?;
        let job = |of: &HashFields, name| of.parsed::<JobId>(name);
        let jobs = fields.iter().flat_map(|(_, of)| [job(of, "id"), job(of, "ran_id")]);
        let jobs: Vec<JobId> = jobs.flatten().collect();
        let states = self.store.jobs().states(DOING, &jobs).await?;
        let started = jobs.into_iter().zip(states);
        let started = started.filter(|(_, state)| *state == Some(JobStatus::Started));
        let started = started.map(|(id, _)| id);
        let batches: Vec<JobId> = fields.iter().filter_map(|(_, of)| job(of, "batch_id")).collect();
        let batches = self.store.graphs().read(&batches).await?.into_iter().flatten();
        let runs = batches.filter(|batch| batch.counts.state() == GraphState::Running);
        let running: HashSet<JobId> = started.chain(runs.map(|batch| batch.id)).collect();
        let is_running = |of: &HashFields| {
            let mut fired = ["id", "ran_id", "batch_id"].into_iter();
            fired.any(|name| job(of, name).is_some_and(|id| running.contains(&id)))
        };
        let crons = names.into_iter().zip(&fields).map(|(name, of)| FiredCron {
            name,
            ends: CronEnds::read(of),
            is_running: is_running(&of.1),
        });
        Ok(crons.collect())
    }
}

pub(super) fn backfilled(code: &str, detail: String) -> Result<BackfilledJob> {
    match code {
        "submitted" => Ok(BackfilledJob::Submitted),
        "fired" => Ok(BackfilledJob::Fired(detail)),
        "exists" => Ok(BackfilledJob::Exists),
        "left_out" => Ok(BackfilledJob::LeftOut(detail)),
        "failed" => Ok(BackfilledJob::Failed(detail)),
        _ => Err(StoreError::unexpected(FILLING)),
    }
}

pub(super) fn moment(us: &str) -> Option<Timestamp> {
    Timestamp::from_microsecond(us.parse().ok()?).ok()
}

/// The field of the revision; no periodic job has such a name.
const REVISION: &str = "#";

/// A change of the periodic jobs in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronEdit<'a> {
    Add(&'a str),
    /// Replaces a definition by another.
    Edit {
        before: &'a str,
        after: &'a str,
    },
    /// Restores one, and leaves an existing one and its state as they are.
    Restore(&'a str),
    /// Deletes one, with its history.
    Delete,
}

words! {
    /// The answer to a change.
    CronEdited, "answer", "a word of define_cron.lua";
    Done = "ok",
    Exists = "exists",
    /// No periodic job in Redis has this name.
    Missing = "missing",
    /// Another caller changed it meanwhile.
    Changed = "changed",
    /// The limit of periodic jobs in Redis is reached.
    Full = "full",
}

impl CronStore<'_> {
    /// The revision of the periodic jobs in Redis, which each change renews; none before the first.
    pub async fn revision(self) -> Result<Option<String>> {
        let arguments = (self.store.keys.cron_added(), REVISION);
        self.store.link.command("looking at periodic jobs", "HGET", arguments).await
    }

    /// The definitions of the periodic jobs in Redis, by name.
    pub async fn added(self) -> Result<Vec<(CronName, String)>> {
        let (doing, key) = ("reading the periodic jobs in redis", self.store.keys.cron_added());
        let all: Vec<(String, Vec<u8>)> = self.store.link.command(doing, "HGETALL", key).await?;
        let mut added: Vec<(CronName, String)> = all
            .into_iter()
            .filter_map(|(name, text)| Some((name.parse().ok()?, String::from_utf8(text).ok()?)))
            .take(ADDED_MAX)
            .collect();
        added.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(added)
    }

    pub async fn edit(self, name: &CronName, edit: CronEdit<'_>) -> Result<CronEdited> {
        const DOING: &str = "changing the periodic jobs in redis";
        let (action, before, after) = match edit {
            CronEdit::Add(after) => ("add", "", after),
            CronEdit::Edit { before, after } => ("edit", before, after),
            CronEdit::Restore(text) => ("restore", "", text),
            CronEdit::Delete => ("delete", "", ""),
        };
        let arguments = (action, name.as_str(), after, before, ADDED_MAX);
        let word: String =
            self.store.run_script(DOING, &self.store.scripts.define_cron, arguments).await?;
        StoreError::or_parsed(DOING, &word)
    }
}
