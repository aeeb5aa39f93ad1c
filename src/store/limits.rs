//! Limits: the argument of a claim, and the care for limits that hold jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::backoff::from_now;
use super::newest::BoundedIndex;
use super::text::{StoredText, read};
use super::{LimitStore, Result};
use crate::config::{Fair, LimitConfig, LimitName, Per};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::target::{ActorId, Group, ScriptType};
use crate::proto::text::hexadecimal;

type LimitsOfActors = BTreeMap<(ScriptType, Group), Arc<ActorLimits>>;

/// The limits of a configuration, as claims read them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ClaimLimits {
    all: Arc<BTreeMap<LimitName, LimitConfig>>,
    /// The limits for the actors of a script type and group: a claim reads only those that may select one of their jobs.
    of_actors: Arc<Mutex<LimitsOfActors>>,
}

/// The limits that may select a job which some actors claim, as JSON.
#[derive(Debug, Default)]
pub(super) struct ActorLimits {
    /// The whole list; empty if there is none.
    pub(super) all: String,
    /// The limits that a claim carries: all, unless many select by a caller or key.
    pub(super) wide: String,
    /// The other limits, by the caller or key that they select by: Redis has them in a hash, where a claim looks up what its
    /// jobs select.
    selecting: BTreeMap<String, String>,
    /// The digest of the others, of which the name of the hash is made; empty if there is none.
    pub(super) digest: String,
}

/// The limits that select by a caller or key, up to which a claim gets all of them.
const SELECTING_MAX: usize = 50;
/// The time for which Redis keeps the limits that a configuration had, in seconds.
const RULES_TTL_S: u64 = 24 * 3600;

impl PartialEq for ClaimLimits {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Eq for ClaimLimits {}

impl ClaimLimits {
    pub fn new(limits: &BTreeMap<LimitName, LimitConfig>) -> Self {
        Self { all: Arc::new(limits.clone()), ..Self::default() }
    }

    /// Returns the limits that may select a job which this actor claims.
    pub(super) fn of_actor(&self, actor: &ActorId) -> Arc<ActorLimits> {
        if self.all.is_empty() {
            return Arc::default();
        }
        let key = (actor.script_type.clone(), actor.group.clone());
        let mut of_actors = self.of_actors.lock();
        let limits = of_actors.entry(key).or_insert_with(|| Arc::new(self.limits_for(actor)));
        Arc::clone(limits)
    }

    fn limits_for(&self, actor: &ActorId) -> ActorLimits {
        let default = Group::default();
        let is_of = |limit: &LimitConfig| {
            limit.script_type.as_ref().is_none_or(|of| *of == actor.script_type)
                && limit.group.as_ref().is_none_or(|of| *of == actor.group || *of == default)
        };
        let (mut all, mut wide, mut selecting) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (name, limit) in self.all.iter().filter(|(_, limit)| is_of(limit)) {
            let entry = entry(name, limit);
            all.push(entry.clone());
            match selected_by(limit) {
                Some(field) => selecting.entry(field).or_insert_with(Vec::new).push(entry),
                None => wide.push(entry),
            }
        }
        let text = |limits: Vec<Value>| match limits.len() {
            0 => String::new(),
            _ => Value::from(limits).to_string(),
        };
        if all.len() - wide.len() <= SELECTING_MAX {
            let all = text(all);
            return ActorLimits { wide: all.clone(), all, ..ActorLimits::default() };
        }
        let selecting = selecting.into_iter().map(|(field, limits)| (field, text(limits)));
        let (all, wide, selecting) = (text(all), text(wide), selecting.collect());
        let digest = hexadecimal(digest(&SHA256, all.as_bytes()).as_ref());
        ActorLimits { all, wide, selecting, digest }
    }
}

/// Returns the field of the hash that has a limit; `None` if it may select jobs of any caller and key, and if it is fair:
/// a claim knows from the limits that it carries whether jobs wait for their share.
fn selected_by(limit: &LimitConfig) -> Option<String> {
    if limit.fair.is_some() {
        return None;
    }
    let caller = limit.caller.as_ref().map(|caller| format!("caller {caller}"));
    caller.or_else(|| limit.key.as_ref().map(|key| format!("key {key}")))
}

fn entry(name: &LimitName, limit: &LimitConfig) -> Value {
    let period_us = limit.rate.and_then(|rate| u64::try_from(rate.period.as_micros()).ok());
    let mut entry = json!({
        "name": name,
        "per": limit.per.map(Per::as_str),
        "fair": limit.fair.map(Fair::as_str),
        "weights": Some(&limit.weights).filter(|weights| !weights.is_empty()),
        "type": limit.script_type,
        "group": limit.group,
        "caller": limit.caller,
        "key": limit.key,
        "running": limit.running,
        "rate": limit.rate.map(|rate| rate.number),
        "period_us": period_us,
    });
    // `null` in Lua's JSON is not nil.
    if let Some(members) = entry.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    entry
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

/// The jobs under a limit, or under one of the values that it counts separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitState {
    /// Its name; `@TYPE/GROUP/INSTANCE` for the serial lane of an actor, `@graph=ID` for the window of a graph or batch,
    /// `@paused=ID` for its pause.
    pub name: String,
    /// The value that is counted here.
    pub value: Option<String>,
    pub running: u64,
    pub held: u64,
    /// Jobs that started within the time of its rate.
    pub started: u64,
    /// The number of jobs of a graph or batch that run at once, for its window; zero without a bound.
    pub at_a_time: Option<u32>,
}

/// The bounds of running jobs whose limits are read, and of limits that are listed.
const RUNNING_MAX: usize = 10_000;
const LISTED_MAX: usize = 1000;
const HASHES_PER_CALL: usize = 1000;

impl LimitStore<'_> {
    /// Writes the limits that select by a caller or key where claims look them up.
    pub(super) async fn publish(self, limits: &ActorLimits) -> Result<()> {
        let key = self.store.keys.limit_rules(&limits.digest);
        let fields: Vec<(&String, &String)> = limits.selecting.iter().collect();
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        pipeline.cmd("DEL").arg(&key);
        pipeline.cmd("HSET").arg(&key).arg(fields);
        pipeline.cmd("EXPIRE").arg(&key).arg(RULES_TTL_S);
        self.store.link.pipeline::<redis::Value>("publishing limits", &pipeline).await.map(drop)
    }

    /// Tends the limits that hold jobs and are due, up to `most` of them.
    pub async fn tend(self, most: usize) -> Result<Tended> {
        let (released, taken_back, next_us): (u64, u64, i64) =
            self.store.run_script("tending limits", &self.store.scripts.tend_limits, most).await?;
        Ok(Tended { released, taken_back, next: from_now(next_us) })
    }

    /// The state of these limits, and of all others that have running or held jobs, by name.
    pub async fn states(
        self,
        limits: &BTreeMap<LimitName, LimitConfig>,
    ) -> Result<Vec<LimitState>> {
        const DOING: &str = "listing limits";
        let mut names: BTreeSet<String> = limits.keys().map(ToString::to_string).collect();
        let arguments = (self.store.keys.limits(), 0, LISTED_MAX - 1);
        let holding: Vec<StoredText> = self.store.link.command(DOING, "ZRANGE", arguments).await?;
        names.extend(holding.into_iter().map(String::from));
        names.extend(self.limits_of_running().await?);
        let names: Vec<String> = names.into_iter().take(LISTED_MAX).collect();
        let now_us = self.store.now().await?.as_microsecond();
        let mut pipeline = redis::pipe();
        // A user of an older access list may not read all of them.
        pipeline.ignore_errors();
        for name in &names {
            let of = limits.iter().find(|(of, _)| of.as_str() == parts(name).0);
            let period = of.and_then(|(_, limit)| limit.rate).map(|rate| rate.period.as_micros());
            let since = now_us - period.and_then(|us| i64::try_from(us).ok()).unwrap_or_default();
            pipeline.cmd("ZCARD").arg(self.store.keys.limit_running(name));
            pipeline.cmd("ZCARD").arg(self.store.keys.limit_held(name));
            pipeline.cmd("ZCOUNT").arg(self.store.keys.limit_starts(name)).arg(since).arg("+inf");
            if let Some(graph) = graph_of(name) {
                pipeline.cmd("HGET").arg(self.store.keys.graph(&graph)).arg("at_a_time");
            }
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers =
            self.store.link.pipeline::<Vec<redis::Value>>(DOING, &pipeline).await?.into_iter();
        let mut number = || answers.next().and_then(read).unwrap_or_default();
        let state = |name: &String| {
            let [running, held, started] = [number(), number(), number()];
            let at_a_time = graph_of(name).map(|_| u32::try_from(number()).unwrap_or(u32::MAX));
            let at_a_time = at_a_time.or(name.starts_with("@paused=").then_some(0));
            let (name, value) = parts(name);
            let (name, value) = (name.to_owned(), value.map(ToOwned::to_owned));
            LimitState { name, value, running, held, started, at_a_time }
        };
        Ok(names.iter().map(state).collect())
    }

    async fn limits_of_running(self) -> Result<BTreeSet<String>> {
        let indexes = self.store.jobs().indexes(JobStatus::Started, None).await?.into_iter();
        let indexes: Vec<BoundedIndex> = indexes.map(BoundedIndex::whole).collect();
        let entries = self.store.jobs().newest(&indexes, None, RUNNING_MAX).await?;
        let mut names = BTreeSet::new();
        for some in entries.chunks(HASHES_PER_CALL) {
            let limits = |(_, id): &_| ("HGET", (self.store.keys.job(id), "limits"));
            let fields: Vec<Option<String>> =
                self.store.link.each("listing limits", some, limits).await?;
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

/// Returns the graph or batch whose window has this name.
fn graph_of(name: &str) -> Option<JobId> {
    name.strip_prefix("@graph=")?.parse().ok()
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
        let actor: ActorId = "osis:io:1".parse().expect("legal");
        assert_eq!(ClaimLimits::new(&BTreeMap::new()).of_actor(&actor).wide, "");
        let limit = LimitConfig {
            key: Some("api".parse().expect("legal")),
            rate: Some("10/s".parse().expect("legal")),
            ..LimitConfig::default()
        };
        let limits = BTreeMap::from([("a".parse().expect("legal"), limit)]);
        assert_eq!(
            ClaimLimits::new(&limits).of_actor(&actor).wide,
            r#"[{"name":"a","key":"api","rate":10,"period_us":1000000}]"#
        );
    }
    #[test]
    fn claim_reads_only_limits_that_may_select_a_job_of_its_actor() {
        let limit = |script_type: Option<&str>, group: Option<&str>| LimitConfig {
            script_type: script_type.map(|of| of.parse().expect("legal")),
            group: group.map(|of| of.parse().expect("legal")),
            running: Some(1),
            ..LimitConfig::default()
        };
        let limits = BTreeMap::from(
            [
                ("all", limit(None, None)),
                ("type", limit(Some("osis"), None)),
                ("type-2", limit(Some("bash"), None)),
                ("group", limit(None, Some("io"))),
                ("group-2", limit(None, Some("web"))),
                ("default", limit(Some("osis"), Some("default"))),
            ]
            .map(|(name, limit)| (name.parse().expect("legal"), limit)),
        );
        let limits = ClaimLimits::new(&limits);
        let names = |actor: &str| -> Vec<String> {
            let text = limits.of_actor(&actor.parse().expect("legal"));
            let all: Vec<Value> = serde_json::from_str(&text.wide).expect("JSON");
            all.iter().map(|of| of["name"].as_str().expect("text").to_owned()).collect()
        };
        // A job without a group counts as one of `default`.
        assert_eq!(names("osis:io:1"), ["all", "default", "group", "type"]);
        assert_eq!(names("bash:web:1"), ["all", "group-2", "type-2"]);
    }
}
