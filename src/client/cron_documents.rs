//! Periodic jobs as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{CronEntry, CronPlace};
use crate::proto::cron::CronGraph;
use crate::proto::every::Every;
use crate::proto::message::SupervisorPresence;
use crate::proto::text::counted;
use crate::proto::window::GraphWindow;
use crate::store::PeriodicJobState;

/// A periodic job.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct PeriodicJobDocument {
    /// Its name.
    pub name: String,
    /// The file that declares it; `redis` if a command added it.
    pub file: String,
    /// The person or program that added or changed it last, if it is in Redis.
    pub added_by: Option<String>,
    /// The time of that, in RFC 3339.
    pub added_at: Option<String>,
    /// Its schedule, as the file has it.
    pub schedule: String,
    /// The time zone of the schedule.
    pub time_zone: String,
    /// The script type of its jobs.
    pub script_type: Option<String>,
    /// The treatment of missed firings.
    pub catch_up: String,
    /// The treatment of a firing while the last job has not ended.
    pub overlap: String,
    /// The longest delay of its firings, in seconds, and the delay that its name gives them.
    pub spread: Option<SpreadDocument>,
    /// The calendar of the days on which it does not fire.
    pub calendar: Option<String>,
    /// False if a person has disabled it.
    pub enabled: bool,
    /// The time at which it was disabled, in RFC 3339.
    pub disabled_at: Option<String>,
    /// The person or program that disabled it.
    pub disabled_by: Option<String>,
    /// Why no live supervisor fires it as it stands here, if none does.
    pub not_in_force: Option<String>,
    /// The time of its next firing, in RFC 3339, if it is enabled and in force.
    pub next: Option<String>,
    /// Its last firing.
    pub last: Option<LastFiringDocument>,
    /// The number of firings.
    pub fired: u64,
    /// The number of firings left out because the last job had not ended.
    pub left_out: u64,
    /// The number of firings that were missed, as no supervisor ran, and are not made up for.
    pub missed: u64,
    /// The end of its last job that finished, in RFC 3339.
    pub succeeded_at: Option<String>,
    /// The end of its last job that failed, or its last firing that had no job, in RFC 3339.
    pub failed_at: Option<String>,
    /// The job that failed last.
    pub failed_id: Option<String>,
    /// The start of its error.
    pub failed_why: Option<String>,
    /// The duration of its last job that ended, in seconds.
    pub duration_s: Option<f64>,
    /// The time from which it is overdue, in RFC 3339: its second firing after its last success, and the duration of
    /// its last job.
    pub overdue_at: Option<String>,
    /// Set if that has passed without a success.
    pub overdue: bool,
    /// The receivers of the copies of its job: each firing is a batch.
    pub every: Option<Every>,
    /// The window of these batches: `at_a_time`, `stop_after` and `pause_after`.
    #[serde(flatten)]
    pub window: GraphWindow,
    /// The number of jobs of its graph; null if its firings are no graphs.
    pub graph_jobs: Option<usize>,
}

/// The delay of the firings of a periodic job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SpreadDocument {
    /// The longest, in seconds.
    pub most_s: u64,
    /// The value of this periodic job, in seconds; null if each machine has one of its own.
    pub own_s: Option<u64>,
}

/// A periodic job with its next and latest firings.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PeriodicJobHistoryDocument {
    /// The periodic job.
    #[serde(flatten)]
    pub job: PeriodicJobDocument,
    /// The times of the next firings, in RFC 3339, if it is enabled.
    pub upcoming: Vec<String>,
    /// The script of its jobs; empty for a graph.
    pub script: String,
    /// The other settings of its jobs, named as the fields of a job.
    pub settings: serde_json::Value,
    /// Its latest firings, the newest first; at most 20.
    pub history: Vec<FiringDocument>,
    /// The graph of each firing, with the members of `graph.submit`; null if it is none.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(default)]
    pub graph: Option<CronGraph>,
}

/// One firing of a periodic job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FiringDocument {
    /// The due time, in RFC 3339.
    pub due: String,
    /// The time at which a supervisor fired it, in RFC 3339.
    pub fired_at: String,
    /// The seconds from one to the other.
    pub late_s: f64,
    /// Its outcome: fired, `left_out`, failed or missed.
    #[schemars(extend("enum" = ["fired", "left_out", "failed", "missed"]))]
    pub outcome: String,
    /// Its job; for one that was left out, the job that had not ended.
    pub job_id: Option<String>,
    /// The state of that job, batch or graph, if it is still kept.
    pub status: Option<String>,
    /// The reason for which it was left out (overlap or `unique_key`), failed or was missed; the job that it replaced;
    /// `run now` or `backfill` beside its schedule; the machines without a job, as they were absent.
    pub why: Option<String>,
    /// Its batch or graph, in place of a job.
    pub batch_id: Option<String>,
}

/// The last firing of a periodic job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LastFiringDocument {
    /// The due time, in RFC 3339.
    pub due: String,
    /// Its job.
    pub job_id: Option<String>,
    /// The state of the job, batch or graph, if it is still kept; `failed` if it had none.
    pub status: Option<String>,
    /// Its batch or graph, in place of a job.
    pub batch_id: Option<String>,
}

impl PeriodicJobDocument {
    /// Returns the script type of its jobs, or that it is a graph, in words.
    pub fn type_words(&self) -> String {
        match (self.graph_jobs, &self.script_type) {
            (Some(jobs), _) => format!("graph of {}", counted(jobs as u64, "job", "jobs")),
            (None, script_type) => script_type.clone().unwrap_or_default(),
        }
    }

    pub(super) fn of(
        entry: &CronEntry,
        state: &PeriodicJobState,
        supervisors: &[SupervisorPresence],
        now: jiff::Timestamp,
    ) -> Self {
        let not_in_force = not_in_force(entry, supervisors);
        let (last, disabled) = (state.last.as_ref(), state.disabled.as_ref());
        let (ends, (spread, own_delay)) = (&state.ends, entry.schedule.spread());
        let spread = entry.fleet.map_or(spread, |fleet| fleet.spread);
        let failed = ends.failed.as_ref();
        let overdue = ends.overdue.filter(|_| disabled.is_none());
        let added = match &entry.place {
            CronPlace::Redis { by, at } => Some((by, at)),
            CronPlace::File(_) => None,
        };
        let refused = ends.refused().filter(|(at, _)| last.is_none_or(|last| *at > last.due));
        let refused = refused.map(|(at, _)| LastFiringDocument {
            due: at.to_string(),
            job_id: None,
            status: Some("failed".to_owned()),
            batch_id: None,
        });
        let is_fired = disabled.is_none() && not_in_force.is_none();
        let next = entry.schedule.next_after(now).filter(|_| is_fired);
        Self {
            name: entry.name.to_string(),
            file: entry.place.to_string(),
            added_by: added.map(|(by, _)| by.clone()),
            added_at: added.map(|(_, at)| at.clone()),
            schedule: entry.schedule.line().to_owned(),
            time_zone: entry.schedule.zone().to_owned(),
            script_type: entry.script_type().map(ToString::to_string),
            catch_up: entry.catch_up.as_str().to_owned(),
            overlap: entry.overlap.as_str().to_owned(),
            spread: (!spread.is_zero()).then_some(SpreadDocument {
                most_s: spread.as_secs(),
                own_s: entry.fleet.is_none().then_some(own_delay.as_secs()),
            }),
            calendar: entry.schedule.calendar().map(|of| of.name().to_string()),
            enabled: disabled.is_none(),
            disabled_at: disabled.map(|disabled| disabled.at.clone()),
            disabled_by: disabled.map(|disabled| disabled.by.clone()),
            not_in_force: not_in_force.map(str::to_owned),
            next: next.map(|next| next.to_string()),
            last: refused.or(last.map(|last| LastFiringDocument {
                due: last.due.to_string(),
                job_id: (!last.is_batch).then(|| last.id.to_string()),
                status: last.status.map(str::to_owned),
                batch_id: last.is_batch.then(|| last.id.to_string()),
            })),
            fired: last.map_or(0, |last| last.fired),
            left_out: last.map_or(0, |last| last.left_out),
            missed: ends.missed,
            succeeded_at: ends.succeeded.as_ref().map(|(at, _)| at.to_string()),
            failed_at: failed.map(|(at, ..)| at.to_string()),
            failed_id: failed.map(|(_, id, _)| id.clone()).filter(|id| !id.is_empty()),
            failed_why: failed.map(|(.., why)| why.clone()),
            duration_s: ends.took.map(|took| took.as_secs_f64()),
            overdue_at: overdue.map(|at| at.to_string()),
            overdue: overdue.is_some_and(|at| at < now),
            every: entry.fleet.map(|fleet| fleet.every),
            window: entry.fleet.map(|fleet| fleet.window).unwrap_or_default(),
            graph_jobs: entry.graph.as_ref().map(|plan| plan.jobs.len()),
        }
    }
}

/// Returns why no live supervisor fires a periodic job as it stands here, if none does.
fn not_in_force(entry: &CronEntry, supervisors: &[SupervisorPresence]) -> Option<&'static str> {
    if supervisors.is_empty() {
        return Some("no live supervisor fires it");
    }
    if matches!(entry.place, CronPlace::Redis { .. }) {
        // The type of a published script may change.
        let script_type = entry.script_type()?.to_string();
        let has = |of: &SupervisorPresence| of.types.is_empty() || of.types.contains(&script_type);
        let is_fired = supervisors.iter().any(has);
        return (!is_fired).then_some("no live supervisor fires it: none has its script type");
    }
    let digest = entry.digest();
    let mut is_known = false;
    for of in supervisors {
        // A supervisor that tells nothing may fire it.
        let jobs = of.cron.as_ref()?.jobs.as_ref()?;
        match jobs.get(entry.name.as_str()) {
            Some(own) if *own == digest => return None,
            Some(_) => is_known = true,
            None => {}
        }
    }
    Some(if is_known {
        "changed on disk, not in force: reload"
    } else {
        "no live supervisor fires it: reload, or see hero doctor"
    })
}
