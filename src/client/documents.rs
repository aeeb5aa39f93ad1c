//! Documents: what commands print with `--json` and the API answers. Their members stay.

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::{CronEntry, CronPlace, LimitConfig};
use crate::proto::message::Presence;
use crate::proto::times::Times;
use crate::store::{LimitState, PeriodicJobState, PresenceOf, QueueState};

/// A live actor.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ActorDocument {
    /// Its name, TYPE:GROUP:INSTANCE.
    pub actor: String,
    /// The script type of its jobs.
    pub script_type: String,
    /// Its group.
    pub group: String,
    /// Its instance.
    pub instance: u16,
    /// Its presence.
    #[serde(flatten)]
    pub presence: Presence,
}

impl From<PresenceOf> for ActorDocument {
    fn from(PresenceOf { actor, presence }: PresenceOf) -> Self {
        Self {
            actor: actor.to_string(),
            script_type: actor.script_type.to_string(),
            group: actor.group.to_string(),
            instance: actor.instance.to_string().parse().unwrap_or_default(),
            presence,
        }
    }
}

/// A work queue.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QueueDocument {
    /// Its name.
    pub queue: String,
    /// The script type of its jobs.
    pub script_type: String,
    /// Its priority: 0 urgent, 1 normal, 2 background.
    pub priority: Option<u8>,
    /// Entries in its list.
    pub depth: u64,
    /// Jobs that a limit holds.
    pub held: u64,
    /// The wait of the job that was dispatched first, in seconds.
    pub oldest_wait_s: Option<f64>,
    /// Jobs of its type that ended per second, when last sampled.
    pub type_throughput_per_s: Option<f64>,
    /// True if it is paused.
    pub paused: bool,
}

impl From<&QueueState> for QueueDocument {
    fn from(state: &QueueState) -> Self {
        Self {
            queue: state.queue.to_string(),
            script_type: state.queue.target.script_type().to_string(),
            priority: state.queue.priority.to_string().parse().ok(),
            depth: state.depth,
            held: state.held,
            oldest_wait_s: state.oldest_wait.map(|wait| wait.as_secs_f64()),
            type_throughput_per_s: state.type_throughput_per_s,
            paused: state.paused,
        }
    }
}

/// A periodic job.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
    /// False if a person has disabled it.
    pub enabled: bool,
    /// The time when it was disabled, in RFC 3339.
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
}

/// A periodic job with its next and latest firings.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PeriodicJobHistoryDocument {
    /// The periodic job.
    #[serde(flatten)]
    pub job: PeriodicJobDocument,
    /// The times of the next firings, in RFC 3339, if it is enabled.
    pub upcoming: Vec<String>,
    /// The script of its jobs.
    pub script: String,
    /// Its latest firings, the newest first; at most 20.
    pub history: Vec<FiringDocument>,
}

/// One firing of a periodic job.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FiringDocument {
    /// The due time, in RFC 3339.
    pub due: String,
    /// The time when a supervisor fired it, in RFC 3339.
    pub fired_at: String,
    /// The seconds from one to the other.
    pub late_s: f64,
    /// Its outcome: fired, `left_out` or failed.
    #[schemars(extend("enum" = ["fired", "left_out", "failed"]))]
    pub outcome: String,
    /// Its job; for a skipped firing, the job that had not ended.
    pub job_id: Option<String>,
    /// The state of that job, if it is still kept.
    pub status: Option<String>,
    /// The reason why it was left out (overlap or `unique_key`) or failed, or the job that it replaced.
    pub why: Option<String>,
}

/// The last firing of a periodic job.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LastFiringDocument {
    /// The due time, in RFC 3339.
    pub due: String,
    /// Its job.
    pub job_id: String,
    /// The state of the job, if it is still kept.
    pub status: Option<String>,
}

impl PeriodicJobDocument {
    pub(super) fn of(
        entry: &CronEntry,
        state: &PeriodicJobState,
        not_in_force: Option<&'static str>,
        now: jiff::Timestamp,
    ) -> Self {
        let (last, disabled) = (state.last.as_ref(), state.disabled.as_ref());
        let added = match &entry.place {
            CronPlace::Redis { by, at } => Some((by, at)),
            CronPlace::File(_) => None,
        };
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
            catch_up: word(&entry.catch_up),
            overlap: word(&entry.overlap),
            enabled: disabled.is_none(),
            disabled_at: disabled.map(|disabled| disabled.at.clone()),
            disabled_by: disabled.map(|disabled| disabled.by.clone()),
            not_in_force: not_in_force.map(str::to_owned),
            next: next.map(|next| next.to_string()),
            last: last.map(|last| LastFiringDocument {
                due: last.due.to_string(),
                job_id: last.id.to_string(),
                status: last.status.map(|status| status.to_string()),
            }),
            fired: last.map_or(0, |last| last.fired),
            left_out: last.map_or(0, |last| last.left_out),
        }
    }
}

/// Returns the configuration's word for a value.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A limit, or one of the values that it counts separately.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LimitDocument {
    /// Its name; `@TYPE/GROUP/INSTANCE` for the serial lane of an actor.
    pub name: String,
    /// The type, group, caller or key that is counted here, if the limit counts separately; a long or unusual
    /// one as `#` and its hash.
    pub value: Option<String>,
    /// The property that it counts by.
    pub per: Option<String>,
    /// It limits only jobs of this script type.
    #[serde(rename = "type")]
    pub script_type: Option<String>,
    /// It limits only jobs of this group.
    pub group: Option<String>,
    /// It limits only jobs of this caller.
    pub caller: Option<String>,
    /// It limits only jobs with this limit key.
    pub key: Option<String>,
    /// The maximum number of jobs that run at once.
    pub running_max: Option<u32>,
    /// The maximum number of jobs that start within a time.
    pub rate: Option<String>,
    /// True if the configuration that was read has it.
    pub configured: bool,
    /// Jobs that run under it.
    pub running: u64,
    /// Jobs that it holds.
    pub held: u64,
    /// Jobs that started within the time of its rate.
    pub started: Option<u64>,
    /// The shard that counts so, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<u16>,
}

impl LimitDocument {
    pub(super) fn of(state: LimitState, limit: Option<&LimitConfig>) -> Self {
        let LimitState { name, value, running, held, started } = state;
        let is_lane = name.starts_with('@');
        let (configured, limit) = (limit.is_some(), limit.cloned().unwrap_or_default());
        Self {
            name,
            value,
            per: limit.per.map(|per| per.as_str().to_owned()),
            script_type: limit.script_type.map(|name| name.to_string()),
            group: limit.group.map(|name| name.to_string()),
            caller: limit.caller,
            key: limit.key.map(|key| key.to_string()),
            running_max: if is_lane { Some(1) } else { limit.running },
            started: limit.rate.map(|_| started),
            rate: limit.rate.map(|rate| rate.to_string()),
            configured,
            running,
            held,
            shard: None,
        }
    }
}

/// Rates, errors and times of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatsDocument {
    /// The seconds of the counted period; without them, since the first job of each type.
    pub seconds: Option<f64>,
    /// The start of the period, if one was asked for: the time of a sample.
    pub from: Option<String>,
    /// The end of the period, if one was asked for: the time of a sample, or now.
    pub to: Option<String>,
    /// The script types.
    pub types: Vec<TypeStatsDocument>,
}

/// The counters of a script type.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TypeStatsDocument {
    /// The script type.
    pub script_type: String,
    /// Jobs submitted.
    pub submitted: u64,
    /// Jobs that finished.
    pub finished: u64,
    /// Jobs that failed. Those that were stopped or replaced are none of them.
    pub failed: u64,
    /// Jobs that were stopped.
    pub cancelled: u64,
    /// Jobs that a later one with their unique key replaced.
    pub replaced: u64,
    /// The share of jobs that failed, of those that failed or finished, in per cent.
    pub failed_percent: Option<f64>,
    /// The times that attempts waited.
    pub wait: TimesDocument,
    /// The times that attempts ran.
    pub run: TimesDocument,
}

/// Times of attempts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimesDocument {
    /// The number of attempts.
    pub number: u64,
    /// The mean, in seconds.
    pub mean_s: Option<f64>,
    /// The time below which 95 of 100 lie, in seconds, estimated from a histogram.
    pub p95_s: Option<f64>,
}

impl From<&Times> for TimesDocument {
    fn from(times: &Times) -> Self {
        Self {
            number: times.number,
            mean_s: times.mean().map(|time| time.as_secs_f64()),
            p95_s: times.quantile(0.95).map(|time| time.as_secs_f64()),
        }
    }
}

/// The answer to a batch.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct BatchDocument {
    /// The ids of the accepted jobs, in order.
    pub ids: Vec<String>,
    /// The rejected jobs.
    pub refused: Vec<RefusedDocument>,
}

/// A job of a batch that was rejected.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefusedDocument {
    /// Its place in the batch, from 1.
    pub line: u64,
    /// The reason.
    pub error: String,
}
