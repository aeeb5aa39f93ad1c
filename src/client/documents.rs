//! Documents: what commands print with `--json` and the API answers. Their members stay.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::LimitConfig;
use crate::proto::message::Presence;
use crate::proto::times::Times;
use crate::proto::word_table::words;
use crate::store::{LimitState, PresenceOf, QueueState};

/// A live actor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct QueueDocument {
    /// Its name.
    pub queue: String,
    /// The script type of its jobs.
    pub script_type: String,
    /// The expression that its jobs have, of a queue for one.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Its priority: 0 urgent, 1 normal, 2 background.
    pub priority: Option<u8>,
    /// Entries in its list.
    pub depth: u64,
    /// Jobs that a limit holds.
    pub held: u64,
    /// The wait of the job that was dispatched first and that an actor may claim, in seconds.
    pub oldest_wait_s: Option<f64>,
    /// The limit that holds the first of the held jobs.
    pub held_by: Option<String>,
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
            selector: state.selector.clone(),
            priority: state.queue.priority.to_string().parse().ok(),
            depth: state.depth,
            held: state.held,
            held_by: state.held_by.clone(),
            oldest_wait_s: state.oldest_wait.map(|wait| wait.as_secs_f64()),
            type_throughput_per_s: state.type_throughput_per_s,
            paused: state.paused,
        }
    }
}

/// A limit, or one of the values that it counts separately.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct LimitDocument {
    /// Its name; `@TYPE/GROUP/INSTANCE` for the serial lane of an actor, `@graph=ID` for the window of a graph or batch,
    /// `@paused=ID` for its pause.
    pub name: String,
    /// The type, group, caller or key that is counted here, if the limit counts separately; a long or unusual
    /// one as `#` and its hash.
    pub value: Option<String>,
    /// The property that it counts by.
    pub per: Option<String>,
    /// The property of jobs that it shares its slots by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair: Option<String>,
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
        let LimitState { name, value, running, held, started, at_a_time } = state;
        let is_lane = name.starts_with('@');
        let (configured, limit) = (limit.is_some(), limit.cloned().unwrap_or_default());
        Self {
            name,
            value,
            per: limit.per.map(|per| per.as_str().to_owned()),
            fair: limit.fair.map(|fair| fair.as_str().to_owned()),
            script_type: limit.script_type.map(|name| name.to_string()),
            group: limit.group.map(|name| name.to_string()),
            caller: limit.caller,
            key: limit.key.map(|key| key.to_string()),
            running_max: match at_a_time {
                Some(most) => Some(most).filter(|most| *most > 0),
                None if is_lane => Some(1),
                None => limit.running,
            },
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatsDocument {
    /// The seconds of the counted period; without them, since the first job of each type.
    pub seconds: Option<f64>,
    /// The start of the period, if one was asked for: the time of a sample.
    pub from: Option<String>,
    /// The end of the period, if one was asked for: the time of a sample, or now.
    pub to: Option<String>,
    /// The script types; empty if jobs are counted by their places.
    pub types: Vec<TypeStatsDocument>,
    /// The places that were asked for; the next three members are of the latest ended jobs, by these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<StatsBy>,
    /// The machines, actors or names, the slowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceStatsDocument>,
    /// The number of ended jobs that were searched, the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched: Option<u64>,
    /// True if all ended jobs of the period that are still there were searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
}

words! {
    /// The places by which ended jobs are counted.
    #[derive(Deserialize, JsonSchema)]
    StatsBy, "place of jobs", "host, actor or name";
    /// The machine that ran the job.
    Host = "host",
    /// The actor that ran it.
    Actor = "actor",
    /// The name of the job.
    Name = "name",
}

/// The ended jobs of a machine, an actor or a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceStatsDocument {
    /// The host name, or the name of the actor or of the jobs.
    pub name: String,
    /// Jobs that finished.
    pub finished: u64,
    /// Jobs that failed. Those that were stopped or replaced are none of them.
    pub failed: u64,
    /// Jobs that were stopped or replaced.
    pub cancelled: u64,
    /// The share of jobs that failed, of those that failed or finished, in per cent.
    pub failed_percent: Option<f64>,
    /// The times that jobs waited for their last attempt, from their submission, or from the time for which they or their
    /// attempt were due. A wait for prerequisites is part of it.
    pub wait: TimesDocument,
    /// The times that last attempts ran.
    pub run: TimesDocument,
    /// The largest peak memory of a last attempt, in bytes, if a process ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<u64>,
}

/// The counters of a script type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimesDocument {
    /// The number of attempts.
    pub number: u64,
    /// The mean, in seconds.
    pub mean_s: Option<f64>,
    /// A time in seconds that at least 95 of 100 were not above. It is an upper bound, by the buckets of a histogram and the
    /// sum of the times, and may be above the longest of them.
    pub p95_s: Option<f64>,
}

impl From<&Times> for TimesDocument {
    fn from(times: &Times) -> Self {
        Self {
            number: times.number,
            mean_s: times.mean().map(|time| time.as_secs_f64()),
            p95_s: times.at_most(0.95).map(|time| time.as_secs_f64()),
        }
    }
}
