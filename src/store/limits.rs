//! Limits: the argument of a claim, and the care for limits that hold jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::listing::read;
use super::newest::BoundedIndex;
use super::text::StoredText;
use super::{Store, StoreError};
use crate::config::{LimitConfig, LimitName};
use crate::proto::job::JobStatus;

/// The limits of a configuration, as the claim reads them. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimLimits(Arc<str>);

impl ClaimLimits {
    /// The limits of a configuration.
    pub fn new(limits: &BTreeMap<LimitName, LimitConfig>) -> Self {
        if limits.is_empty() {
            return Self::default();
        }
        let all: Vec<Value> = limits.iter().map(|(name, limit)| entry(name, limit)).collect();
        Self(Value::from(all).to_string().into())
    }

    pub(super) fn as_argument(&self) -> &str {
        &self.0
    }
}

/// Leaves out absent keys: `null` in Lua's JSON is not nil.
fn entry(name: &LimitName, limit: &LimitConfig) -> Value {
    let mut entry = serde_json::Map::from_iter([("name".to_owned(), json!(name))]);
    let mut put = |key: &str, value: Option<Value>| {
        entry.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("per", limit.per.map(|per| json!(per.as_str())));
    put("type", limit.script_type.as_ref().map(|name| json!(name)));
    put("group", limit.group.as_ref().map(|name| json!(name)));
    put("caller", limit.caller.as_ref().map(|text| json!(text)));
    put("key", limit.key.as_ref().map(|key| json!(key)));
    put("running", limit.running.map(|number| json!(number)));
    put("rate", limit.rate.map(|rate| json!(rate.number)));
    let period_us = limit.rate.and_then(|rate| u64::try_from(rate.period.as_micros()).ok());
    put("period_us", period_us.map(|us| json!(us)));
    Value::Object(entry)
}

/// The result of a look at limits that hold jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tended {
    /// Held jobs released to their queues, to try again.
    pub released: u64,
    /// Freed slots of jobs that no longer run.
    pub taken_back: u64,
    /// The time until the next look, if a limit holds jobs.
    pub next: Option<Duration>,
}

impl Store {
    /// Tends the limits that hold jobs and are due, up to `most` of them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tend_limits(&self, most: usize) -> Result<Tended, StoreError> {
        let (released, taken_back, next_us): (u64, u64, i64) =
            self.run_script("tending limits", &self.scripts.tend_limits, most).await?;
        let next = u64::try_from(next_us).ok().map(Duration::from_micros);
        Ok(Tended { released, taken_back, next })
    }
}

/// The jobs under a limit, or under one of the values that it counts separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitState {
    /// Its name; `@TYPE/GROUP/INSTANCE` for the serial lane of an actor.
    pub name: String,
    /// The value that is counted here.
    pub value: Option<String>,
    /// Jobs that run.
    pub running: u64,
    /// Jobs that it holds.
    pub held: u64,
    /// Jobs that started within the time of its rate.
    pub started: u64,
}

/// The bounds of running jobs whose limits are read, and of limits that are listed.
const RUNNING_MAX: usize = 10_000;
const LISTED_MAX: usize = 1000;
/// Hashes that one round trip reads.
const HASHES_PER_CALL: usize = 1000;

impl Store {
    /// The state of these limits, and of all others that have running or held jobs, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn limit_states(
        &self,
        limits: &BTreeMap<LimitName, LimitConfig>,
    ) -> Result<Vec<LimitState>, StoreError> {
        const DOING: &str = "listing limits";
        let mut names: BTreeSet<String> = limits.keys().map(ToString::to_string).collect();
        let arguments = (self.keys.limits(), 0, LISTED_MAX - 1);
        let holding: Vec<StoredText> = self.link.command(DOING, "ZRANGE", arguments).await?;
        names.extend(holding.into_iter().map(String::from));
        names.extend(self.limits_of_running().await?);
        let names: Vec<String> = names.into_iter().take(LISTED_MAX).collect();
        let now_us = self.now().await?.as_microsecond();
        let mut pipeline = redis::pipe();
        // A user of an older access list may not read all of them.
        pipeline.ignore_errors();
        for name in &names {
            let of = limits.iter().find(|(of, _)| of.as_str() == parts(name).0);
            let period = of.and_then(|(_, limit)| limit.rate).map(|rate| rate.period.as_micros());
            let since = now_us - period.and_then(|us| i64::try_from(us).ok()).unwrap_or_default();
            pipeline.cmd("ZCARD").arg(self.keys.limit_running(name));
            pipeline.cmd("ZCARD").arg(self.keys.limit_held(name));
            pipeline.cmd("ZCOUNT").arg(self.keys.limit_starts(name)).arg(since).arg("+inf");
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers =
            self.link.pipeline::<Vec<redis::Value>>(DOING, &pipeline).await?.into_iter();
        let mut number = || answers.next().and_then(read).unwrap_or_default();
        let state = |name: &String| {
            let (name, value) = parts(name);
            let (name, value) = (name.to_owned(), value.map(ToOwned::to_owned));
            LimitState { name, value, running: number(), held: number(), started: number() }
        };
        Ok(names.iter().map(state).collect())
    }

    /// The limits that gave slots to running jobs.
    async fn limits_of_running(&self) -> Result<BTreeSet<String>, StoreError> {
        let indexes = self.indexes(JobStatus::Started, None).await?.into_iter();
        let indexes: Vec<BoundedIndex> = indexes.map(BoundedIndex::whole).collect();
        let entries = self.newest(&indexes, None, RUNNING_MAX).await?;
        let mut names = BTreeSet::new();
        for some in entries.chunks(HASHES_PER_CALL) {
            let limits = |(_, id): &_| ("HGET", (self.keys.job(id), "limits"));
            let fields: Vec<Option<String>> =
                self.link.each("listing limits", some, limits).await?;
            for field in fields.into_iter().flatten() {
                names.extend(
                    field.split_whitespace().filter(|name| is_legal(name)).map(str::to_owned),
                );
            }
        }
        Ok(names)
    }
}

/// Returns the name of a limit, and the value that it counts separately.
fn parts(name: &str) -> (&str, Option<&str>) {
    match name.find(['=', '#']).filter(|_| !name.starts_with('@')) {
        Some(at) => (&name[..at], Some(name[at..].trim_start_matches('='))),
        None => (name, None),
    }
}

/// Returns true if a name that a job carries may be part of a key.
fn is_legal(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.@/=#-".contains(&byte);
    (1..=200).contains(&name.len()) && name.bytes().all(is_legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_keys_of_a_limit_are_left_out() {
        assert_eq!(ClaimLimits::new(&BTreeMap::new()).as_argument(), "");
        let limit = LimitConfig {
            key: Some("api".parse().expect("legal")),
            rate: Some("10/s".parse().expect("legal")),
            ..LimitConfig::default()
        };
        let limits = BTreeMap::from([("a".parse().expect("legal"), limit)]);
        assert_eq!(
            ClaimLimits::new(&limits).as_argument(),
            r#"[{"name":"a","key":"api","rate":10,"period_us":1000000}]"#
        );
    }
}
