//! The state of the whole namespace for a person: supervisors, and the jobs of each script type. And whether Redis lost all keys
//! of the namespace while Hero ran, by FLUSHALL or by a restart without its data: a supervisor notices it, as its presence is gone
//! and the mark of the data is another one.

use std::time::Duration;

use jiff::Timestamp;
use redis::Value;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::presence::PRESENCE_TTL_SECS;
use super::text::{Legal, read};
use super::{JobStore, RedisStore, Result, StatsStore, SupervisorStore};
use crate::proto::job::{BootId, JobEnd, JobStatus, TypeTimes};
use crate::proto::message::SupervisorPresence;
use crate::proto::target::ScriptType;

const TYPES_PER_PAGE: usize = 500;

/// The jobs of one script type, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TypeState {
    #[schemars(with = "String")]
    pub script_type: ScriptType,
    /// Jobs that wait for prerequisites.
    #[serde(rename = "waiting_for_prerequisites")]
    pub waiting: u64,
    pub scheduled: u64,
    /// Scheduled jobs whose time has come.
    pub due: u64,
    /// Scheduled jobs whose scripts wait.
    pub waits: u64,
    #[serde(rename = "dead_letters")]
    pub dead: u64,
    /// The counters of the last hour. `None` until a supervisor has sampled them.
    #[serde(rename = "last_hour")]
    pub hour: Option<LastHour>,
}

impl TypeState {
    pub fn unused(script_type: ScriptType) -> Self {
        Self { script_type, waiting: 0, scheduled: 0, due: 0, waits: 0, dead: 0, hour: None }
    }

    pub fn add(&mut self, other: &Self) {
        self.waiting += other.waiting;
        self.scheduled += other.scheduled;
        self.due += other.due;
        self.waits += other.waits;
        self.dead += other.dead;
        self.hour = match (self.hour, other.hour) {
            (Some(own), Some(other)) => Some(LastHour {
                finished: own.finished + other.finished,
                failed: own.failed + other.failed,
                dead: own.dead + other.dead,
                since: own.since.max(other.since),
            }),
            (own, other) => own.or(other),
        };
    }
}

/// The counters of a script type since its first sample of the last hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastHour {
    pub finished: u64,
    /// Jobs that ended in `error`.
    pub failed: u64,
    pub dead: u64,
    /// The time since that sample: an hour, less for a new type, more if no supervisor was live.
    #[serde(rename = "since_s", serialize_with = "seconds", deserialize_with = "duration")]
    #[schemars(with = "f64")]
    pub since: Duration,
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(from)?;
    Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)
}

fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

impl SupervisorStore<'_> {
    /// Renews the presence of a supervisor. Returns how many are live, and if Redis did not have the
    /// presence any more, the mark of its data: another one once it was emptied.
    pub async fn supervise(
        self,
        id: &BootId,
        presence: &SupervisorPresence,
        times: &TypeTimes,
    ) -> Result<(u64, Option<String>)> {
        let mut script = self.store.scripts.supervise.prepare_invoke();
        script.arg(id.as_str()).arg(presence.to_json()).arg(PRESENCE_TTL_SECS);
        for (field, seconds) in times.fields() {
            script.arg(field).arg(seconds);
        }
        let doing = "renewing the presence of a supervisor";
        let (live, mark): (u64, String) = self.store.invoke(doing, &script).await?;
        Ok((live, Some(mark).filter(|mark| !mark.is_empty())))
    }

    pub async fn leave(self, id: &BootId) -> Result<()> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("DEL").arg(self.store.keys.supervisor(id)).ignore();
        pipeline.cmd("ZREM").arg(self.store.keys.supervisors()).arg(id.as_str()).ignore();
        self.store.link.pipeline("giving up the presence of a supervisor", &pipeline).await
    }

    /// The live supervisors, by unit and host.
    pub async fn list(self) -> Result<Vec<SupervisorPresence>> {
        const DOING: &str = "listing supervisors";
        let Legal::<BootId>(known) = self
            .store
            .link
            .command(DOING, "ZRANGE", (self.store.keys.supervisors(), 0, -1))
            .await?;
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<String> = known.iter().map(|id| self.store.keys.supervisor(id)).collect();
        let texts: Vec<Option<Vec<u8>>> = self.store.link.command(DOING, "MGET", keys).await?;
        let texts = texts.into_iter().flatten();
        let mut live: Vec<SupervisorPresence> =
            texts.filter_map(|text| SupervisorPresence::parse(&text).ok()).collect();
        live.sort_by(|a, b| (&a.unit, &a.hostname, a.pid).cmp(&(&b.unit, &b.hostname, b.pid)));
        Ok(live)
    }
}

impl StatsStore<'_> {
    /// The jobs of every known script type, counted. Reads counts alone: it costs the types and not the jobs.
    pub async fn type_states(self) -> Result<Vec<TypeState>> {
        const DOING: &str = "counting jobs";
        let (s, us): (u64, u64) = self.store.link.query(DOING, &redis::cmd("TIME")).await?;
        let now_us = s * 1_000_000 + us;
        let mut states = Vec::new();
        for page in self.store.jobs().types().await?.chunks(TYPES_PER_PAGE) {
            let mut pipeline = redis::pipe();
            pipeline.ignore_errors();
            for of in page {
                let index = |status| self.store.keys.index(status, of);
                let scheduled = index(JobStatus::Scheduled);
                pipeline.cmd("ZCARD").arg(index(JobStatus::WaitingForPrerequisites));
                pipeline.cmd("ZCARD").arg(&scheduled);
                pipeline.cmd("ZCOUNT").arg(&scheduled).arg("-inf").arg(now_us);
                pipeline.cmd("ZCARD").arg(self.store.keys.waits(of));
                pipeline.cmd("LLEN").arg(self.store.keys.dead(of));
                pipeline.cmd("HMGET").arg(self.store.keys.stats(of)).arg(&HOUR_COUNTERS);
                pipeline.cmd("LINDEX").arg(self.store.keys.hour(of)).arg(0);
            }
            let mut answers =
                self.store.link.pipeline::<Vec<Value>>(DOING, &pipeline).await?.into_iter();
            for script_type in page {
                // A key of a wrong type counts nothing.
                let mut number = || answers.next().and_then(read).unwrap_or_default();
                let (waiting, scheduled, due) = (number(), number(), number());
                let (waits, dead) = (number(), number());
                let counters: Vec<Option<u64>> = answers.next().and_then(read).unwrap_or_default();
                let sample: Option<String> = answers.next().and_then(read).flatten();
                let hour = sample.and_then(|sample| last_hour(&sample, &counters, now_us));
                let script_type = script_type.clone();
                states.push(TypeState { script_type, waiting, scheduled, due, waits, dead, hour });
            }
        }
        Ok(states)
    }
}

/// The counters of a sample, in its order.
const HOUR_COUNTERS: [&str; 3] = ["finished", "failed", "dead"];

/// Compares the counters with a sample, `AT_US FINISHED FAILED DEAD`.
fn last_hour(sample: &str, counters: &[Option<u64>], now_us: u64) -> Option<LastHour> {
    let mut numbers = sample.split(' ').map(|number| number.parse::<u64>().ok());
    let since = Duration::from_micros(now_us.saturating_sub(numbers.next()??));
    let mut counters = counters.iter().map(|counter| counter.unwrap_or_default());
    let mut grown = || Some(counters.next().unwrap_or_default().saturating_sub(numbers.next()??));
    Some(LastHour { finished: grown()?, failed: grown()?, dead: grown()?, since })
}

const FIELD: &str = "emptied";
/// It is a problem for so long.
const TOLD: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptiedRedis {
    #[serde(serialize_with = "as_text", deserialize_with = "of_text")]
    pub at: Timestamp,
    /// The number of jobs when they were last counted before.
    pub jobs: u64,
    /// True if another process of Redis has the namespace now.
    pub restarted: bool,
}

fn as_text<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(at)
}

fn of_text<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

impl RedisStore<'_> {
    pub async fn note_emptied(self, emptied: &EmptiedRedis) -> Result<()> {
        let text = serde_json::to_string(emptied).unwrap_or_default();
        let arguments = (self.store.keys.marks(), FIELD, text);
        self.store.link.command("noting that redis was emptied", "HSET", arguments).await
    }

    /// Returns the last loss of all keys, if it was in the last day before `now`.
    pub async fn emptied(self, now: Timestamp) -> Result<Option<EmptiedRedis>> {
        let arguments = (self.store.keys.marks(), FIELD);
        let text: Option<String> =
            self.store.link.command("asking whether redis was emptied", "HGET", arguments).await?;
        let emptied: Option<EmptiedRedis> = text.and_then(|text| serde_json::from_str(&text).ok());
        let is_told = |of: &EmptiedRedis| {
            Duration::try_from(now.duration_since(of.at)).is_ok_and(|age| age < TOLD)
        };
        Ok(emptied.filter(is_told))
    }
}

const TERMINAL: [JobStatus; 2] = [JobStatus::Finished, JobStatus::Error];
const TYPES_PER_STEP: usize = 100;
const INDEXES_PER_PAGE: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCounts {
    /// The jobs of each state, the held ones among the dispatched.
    pub states: [(JobStatus, u64); JobStatus::ALL.len()],
    pub ends: [(JobEnd, u64); JobEnd::ALL.len()],
    /// The ended jobs of an older version that are not sorted by their ends yet.
    pub unsorted: u64,
}

impl Default for JobCounts {
    fn default() -> Self {
        let states = JobStatus::ALL.map(|status| (status, 0));
        Self { states, ends: JobEnd::ALL.map(|end| (end, 0)), unsorted: 0 }
    }
}

impl JobCounts {
    pub fn of_state(&self, status: JobStatus) -> u64 {
        self.states.iter().filter(|(of, _)| *of == status).map(|(_, number)| number).sum()
    }

    /// Returns the number of jobs with one of these ends; `None` while some are unsorted.
    pub fn of_ends(&self, ends: &[JobEnd]) -> Option<u64> {
        let wanted = self.ends.iter().filter(|(end, _)| ends.contains(end));
        (self.unsorted == 0).then(|| wanted.map(|(_, number)| number).sum())
    }

    pub fn all(&self) -> u64 {
        self.states.iter().map(|(_, number)| number).sum()
    }

    fn add(&mut self, status: JobStatus, number: u64) {
        let own = self.states.iter_mut().filter(|(of, _)| *of == status);
        own.for_each(|(_, sum)| *sum += number);
    }

    /// Adds the sizes of the indexes of a type: of the terminal states, then of the ends.
    fn add_ended(&mut self, sizes: &[u64]) {
        let (of_states, of_ends) = sizes.split_at(TERMINAL.len().min(sizes.len()));
        for (status, number) in TERMINAL.into_iter().zip(of_states) {
            let ends = JobEnd::ALL.into_iter().zip(of_ends);
            let sorted: u64 =
                ends.filter(|(end, _)| end.status() == status).map(|(_, number)| number).sum();
            self.unsorted += number.abs_diff(sorted);
            self.add(status, *number);
        }
        self.ends.iter_mut().zip(of_ends).for_each(|((_, sum), number)| *sum += number);
    }

    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.states.iter_mut().zip(other.states).for_each(|((_, sum), (_, of))| *sum += of);
        self.ends.iter_mut().zip(other.ends).for_each(|((_, sum), (_, of))| *sum += of);
        self.unsorted += other.unsorted;
        self
    }
}

impl JobStore<'_> {
    /// Counts the jobs of each state and end. It costs the indexes and not the jobs.
    pub async fn count(self) -> Result<JobCounts> {
        let mut counts = self.count_ended().await?;
        for status in JobStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
            let indexes = self.indexes(status, None).await?;
            counts.add(status, self.sizes(&indexes).await?.into_iter().sum());
        }
        Ok(counts)
    }

    /// Counts the ended jobs alone. The indexes of a type are counted in one step, so that none is between two.
    pub(super) async fn count_ended(self) -> Result<JobCounts> {
        let mut counts = JobCounts::default();
        for types in self.types().await?.chunks(TYPES_PER_STEP) {
            let mut step = redis::pipe();
            for of in types {
                for status in TERMINAL {
                    step.cmd("ZCARD").arg(self.store.keys.index(status, of));
                }
                for end in JobEnd::ALL {
                    step.cmd("ZCARD").arg(self.store.keys.ended(end, of));
                }
            }
            let sizes: Vec<u64> = self.store.read_at_once("counting jobs", &step).await?;
            for of_type in sizes.chunks(TERMINAL.len() + JobEnd::ALL.len()) {
                counts.add_ended(of_type);
            }
        }
        Ok(counts)
    }

    async fn sizes(self, indexes: &[String]) -> Result<Vec<u64>> {
        let mut sizes = Vec::with_capacity(indexes.len());
        for page in indexes.chunks(INDEXES_PER_PAGE) {
            let size = |index: &'_ String| ("ZCARD", index.clone());
            let numbers: Vec<Option<u64>> =
                self.store.link.each("counting jobs", page, size).await?;
            // A key of a wrong type counts nothing.
            sizes.extend(numbers.into_iter().map(Option::unwrap_or_default));
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_hour_is_what_grew_since_the_sample() {
        let counters = [Some(12), Some(5), None];
        let hour = last_hour("1000000 2 5 0", &counters, 61_000_000).expect("legible");
        let expected = LastHour { finished: 10, failed: 0, dead: 0, since: Duration::from_mins(1) };
        assert_eq!(hour, expected);
        assert_eq!(last_hour("1000000 2 5", &counters, 0), None);
        assert_eq!(last_hour("x", &[], 0), None);
    }
}
