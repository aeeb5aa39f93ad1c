//! Periodic jobs: the state of each, and its firing, once among any number of supervisors.

use jiff::Timestamp;
use redis::ScriptInvocation;

use super::attempts::kept;
use super::cron_marks::{CronEnds, backfilled, moment};
use super::submission::{submission, with_fields};
use super::{BackfilledJob, BatchOutcome, CronStore, NewGraph, Result, StoreError};
use crate::proto::cron::{CatchUp, CronName, MISSED_AFTER, Overlap};
use crate::proto::job::{Job, JobId, JobStatus, Retention};
use crate::proto::word_table::words;

const FIRING_BATCH: &str = "firing a periodic job as a batch";
/// The longest name of a person or program that is kept.
const BY_CHARS_MAX: usize = 200;

/// The most firings of a history; the scripts keep as many.
pub const FIRINGS_MAX: usize = 100;

/// The answer to one firing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fired {
    Job(JobId),
    Batch(JobId),
    Past,
    /// The job of the last firing has not ended, or holds the unique key; nothing was submitted.
    LeftOut(JobId),
    /// The job of the last firing has not ended: this one, which was missed, is made up for after it.
    Waits(JobId),
    /// Its job was refused, for this reason.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFiring {
    pub due: Timestamp,
    /// Its job, or its batch.
    pub id: JobId,
    pub is_batch: bool,
    /// The state of the job or batch, if it is still kept.
    pub status: Option<&'static str>,
    pub fired: u64,
    /// The number of firings left out because the last job had not ended.
    pub left_out: u64,
}

/// One firing of a periodic job, as its history has it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Firing {
    /// The due time, in RFC 3339.
    pub due: String,
    /// The time when a supervisor fired it, in RFC 3339.
    pub at: String,
    pub did: FiringOutcome,
    /// Its job or batch; the one that was the reason to leave it out.
    pub id: Option<JobId>,
    #[serde(default)]
    pub batch: bool,
    /// The reason why it was left out or failed, or the job that it replaced.
    pub why: Option<String>,
}

words! {
    #[derive(serde::Deserialize)]
    FiringOutcome;
    Fired = "fired",
    LeftOut = "left_out",
    Failed = "failed",
    /// It was missed, as were those before it that the reason counts: no supervisor ran.
    Missed = "missed",
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeriodicJobState {
    /// Its last firing; none if it has never fired.
    pub last: Option<LastFiring>,
    /// Its disabling, if it is disabled.
    pub disabled: Option<Disabled>,
    pub ends: CronEnds,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disabled {
    /// Its time, in RFC 3339.
    pub at: String,
    /// The person or program that asked for it.
    pub by: String,
}

/// The batch or graph of a firing.
#[derive(Debug)]
pub struct FiredBatch {
    pub graph: NewGraph,
    /// Its jobs, which name it.
    pub jobs: Vec<Job>,
    /// A remark for the history.
    pub note: String,
}

impl<'a> CronStore<'a> {
    /// Fires a periodic job for the time it is due, unless that has been done. With [`CatchUp::All`], and
    /// unless [`Overlap::Allow`], a firing that was missed waits for the job of the last one. Or notes the reason why it has
    /// no job: it does not fire for this time again.
    ///
    /// # Errors
    /// [`StoreError`]. After a lost connection it may have fired: again says [`Fired::Past`].
    pub async fn fire(
        self,
        name: &CronName,
        due: Timestamp,
        (overlap, catch_up): (Overlap, CatchUp),
        job: Result<&Job, (&Job, &str)>,
        retention: Retention,
    ) -> Result<Fired> {
        const DOING: &str = "firing a periodic job";
        let (job, why) = match job {
            Ok(job) => (job, ""),
            Err(failed) => failed,
        };
        let mut script = self.firing((name, due), (overlap, catch_up), (&job.id, why), retention);
        submission(&mut script, &[with_fields(job)], true, retention);
        let (code, detail): (String, String) = self.store.invoke(DOING, &script).await?;
        fired(&code, &detail, DOING)
    }

    /// Returns the call of a firing without what it submits: with the id of that, or the reason why there is none.
    fn firing(
        self,
        (name, due): (&CronName, Timestamp),
        (overlap, catch_up): (Overlap, CatchUp),
        (id, why): (&JobId, &str),
        retention: Retention,
    ) -> ScriptInvocation<'a> {
        let mut script = self.store.scripts.fire.prepare_invoke();
        script.arg(name.as_str()).arg(due.as_microsecond()).arg(overlap.as_str());
        let makes_up = overlap != Overlap::Allow && catch_up == CatchUp::All;
        let missed_us = if makes_up { MISSED_AFTER.as_micros() } else { 0 };
        script.arg(kept(retention)).arg(id.as_str()).arg(missed_us.to_string()).arg(why);
        script
    }

    /// Enables or disables a periodic job; `by` is who asks. Returns false if it was so already.
    pub async fn enable(self, name: &CronName, enabled: bool, by: &str) -> Result<bool> {
        let by: String = by.chars().take(BY_CHARS_MAX).collect();
        let arguments = (name.as_str(), if enabled { "enable" } else { "disable" }, by);
        let doing = "enabling or disabling a periodic job";
        self.store.run_script(doing, &self.store.scripts.enable_cron, arguments).await
    }

    pub async fn get(self, name: &CronName) -> Result<PeriodicJobState> {
        const FIELDS: [&str; 9] = [
            "fired_us",
            "id",
            "fired",
            "left_out",
            "disabled_at",
            "disabled_by",
            "ran_us",
            "ran_id",
            "batch_id",
        ];
        let doing = "looking at a periodic job";
        let of = self.store.link.fields(doing, self.store.keys.cron(name), &FIELDS).await?;
        let ran_last = of.parsed::<i64>("ran_us") > of.parsed("fired_us");
        let (at, id) = if ran_last { ("ran_us", "ran_id") } else { ("fired_us", "id") };
        let disabled = of.text("disabled_at").map(|at| Disabled {
            at: at.to_owned(),
            by: of.text("disabled_by").unwrap_or_default().to_owned(),
        });
        let mut state = PeriodicJobState { last: None, disabled, ends: self.ends(name).await? };
        if let (Some(due), Some(job)) = (of.text(at).and_then(moment), of.parsed::<JobId>(id)) {
            let is_batch = of.text(id) == of.text("batch_id");
            let status = if is_batch {
                self.store.graphs().get(&job).await?.map(|batch| batch.counts.state().as_str())
            } else {
                self.store.jobs().state(&job).await?.map(JobStatus::as_str)
            };
            let number = |name| of.parsed(name).unwrap_or_default();
            let (fired, left_out) = (number("fired"), number("left_out"));
            state.last = Some(LastFiring { due, id: job, is_batch, status, fired, left_out });
        }
        Ok(state)
    }

    /// Notes a run of a periodic job beside its schedule, as a job or as a batch.
    pub async fn note_run(self, name: &CronName, id: &JobId, is_batch: bool) -> Result<()> {
        let arguments = (name.as_str(), id.as_str(), if is_batch { "batch" } else { "" });
        let doing = "noting a run of a periodic job";
        self.store.run_script::<u8>(doing, &self.store.scripts.cron_ran, arguments).await.map(drop)
    }

    /// The latest firings of a periodic job, the newest first, each with the state of its job or batch if it is kept.
    pub async fn firings(
        self,
        name: &CronName,
        most: usize,
    ) -> Result<Vec<(Firing, Option<&'static str>)>> {
        const DOING: &str = "reading the history of a periodic job";
        let history: Option<String> =
            self.store.link.command(DOING, "HGET", (self.store.keys.cron(name), "history")).await?;
        let mut history: Vec<Firing> =
            history.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        history.truncate(most);
        let ids = |is_batch| {
            let of_kind = history.iter().filter(move |firing| firing.batch == is_batch);
            of_kind.filter_map(|firing| firing.id.clone()).collect::<Vec<JobId>>()
        };
        let batches = self.store.graphs().read(&ids(true)).await?.into_iter();
        let mut batches = batches.map(|batch| batch.map(|batch| batch.counts.state().as_str()));
        let states = self.store.jobs().states(DOING, &ids(false)).await?.into_iter();
        let mut states = states.map(|state| state.map(JobStatus::as_str));
        let firings = history.into_iter().map(|firing| {
            let state = match &firing.id {
                Some(_) if firing.batch => batches.next().flatten(),
                Some(_) => states.next().flatten(),
                None => None,
            };
            (firing, state)
        });
        Ok(firings.collect())
    }

    /// Fires a periodic job as [`CronStore::fire`] does, as a batch or graph: all of its jobs are submitted, or none. The error is
    /// the reason why it could not be staged, or its id is taken: nothing has happened.
    pub async fn fire_batch(
        self,
        name: &CronName,
        due: Timestamp,
        rules: (Overlap, CatchUp),
        batch: &FiredBatch,
        retention: Retention,
    ) -> Result<Result<Fired, BatchOutcome>> {
        let call = || self.firing((name, due), rules, (&batch.graph.id, ""), retention);
        Ok(match self.decide(call, batch, retention).await? {
            Ok((code, _)) if code == "fired" => Ok(Fired::Batch(batch.graph.id.clone())),
            Ok((code, detail)) => Ok(fired(&code, &detail, FIRING_BATCH)?),
            Err(outcome) => Err(outcome),
        })
    }

    /// Submits the graph of a periodic job for a past time, as [`CronStore::backfill`]. Errors as [`CronStore::fire_batch`].
    pub async fn backfill_graph(
        self,
        name: &CronName,
        due: Timestamp,
        fired: (&JobId, bool),
        graph: &FiredBatch,
        retention: Retention,
    ) -> Result<Result<BackfilledJob, BatchOutcome>> {
        let call = || self.filling(name, due, fired);
        Ok(match self.decide(call, graph, retention).await? {
            Ok((code, detail)) => Ok(backfilled(&code, detail)?),
            Err(outcome) => Err(outcome),
        })
    }

    /// Stages the jobs of a batch, unless the call that would decide it says that it is not needed, and makes that call.
    async fn decide<'s>(
        self,
        call: impl Fn() -> ScriptInvocation<'s>,
        FiredBatch { graph, jobs, note }: &FiredBatch,
        retention: Retention,
    ) -> Result<Result<(String, String), BatchOutcome>> {
        let mut ask = call();
        ask.arg("ask").arg(graph.id.as_str());
        let (code, detail): (String, String) = self.store.invoke(FIRING_BATCH, &ask).await?;
        if code != "stage" {
            return Ok(Ok((code, detail)));
        }
        let staged = JobId::random();
        if let Some(refused) = self.store.batches().stage_all(&staged, jobs, true).await? {
            return Ok(Err(refused));
        }
        let mut script = call();
        script.arg("batch").arg(staged.as_str()).arg(jobs.len()).arg(note);
        graph.write(&mut script, jobs.len());
        let (code, detail): (String, String) = self.store.invoke(FIRING_BATCH, &script).await?;
        if ["fired", "submitted"].contains(&code.as_str()) {
            self.store.batches().commit_all(&staged, &kept(retention)).await;
            return Ok(Ok((code, detail)));
        }
        // Another supervisor has fired it meanwhile.
        self.store.batches().drop_staged(&staged, jobs.iter().map(|job| &job.id)).await?;
        Ok(match code.as_str() {
            "expired" => Err(BatchOutcome::TooSlow),
            "taken" => Err(BatchOutcome::GraphExists),
            _ => Ok((code, detail)),
        })
    }
}

fn fired(code: &str, detail: &str, doing: &'static str) -> Result<Fired> {
    let id = || StoreError::or_parsed(doing, detail);
    match code {
        "fired" => Ok(Fired::Job(id()?)),
        "past" => Ok(Fired::Past),
        "left_out" => Ok(Fired::LeftOut(id()?)),
        "waits" => Ok(Fired::Waits(id()?)),
        "failed" => Ok(Fired::Failed(detail.to_owned())),
        _ => Err(StoreError::unexpected(doing)),
    }
}
