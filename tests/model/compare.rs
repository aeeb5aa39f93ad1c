//! Compares all of Redis with the model, and checks the invariants that hold for any model.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hero::proto::job::JobStatus;
use hero::proto::target::SelectorDigest;

use super::expressions::of_queue;
use super::kin::text_of;
use super::reference::Model;
use super::waits::{Wait, name_of, names_told};
use crate::support::{World, keys};

/// The kinds of keys that stay without a TTL though no job needs them: they are bounded by the number of types,
/// queues and boots.
const LASTING: [&str; 18] = [
    "AWAITED",
    "UNINDEXED",
    "EXPIRING",
    "EXPECTED",
    "QUEUES",
    "PAUSED",
    "TYPES",
    "ACTORS",
    "BOOTS",
    "BOOT_HOSTS",
    "MARKS",
    "EVENTS",
    "STATS",
    "RUNNING",
    "DEAD",
    "WAKE",
    "WHERE",
    "WHERE_USED",
];
/// The kinds of keys that belong to one job each, whose id is their name.
const OF_ONE_JOB: [&str; 4] = ["JOB", "PENDING", "LOG", "REPLY"];

type Sets = BTreeMap<String, BTreeSet<String>>;
type Lists = BTreeMap<String, Vec<String>>;

/// Everything in Redis.
#[derive(Debug, Default)]
struct Seen {
    jobs: BTreeMap<String, BTreeMap<String, String>>,
    /// Ids of jobs whose hash has a TTL.
    retained: BTreeSet<String>,
    lists: Lists,
    ready: Lists,
    running: Lists,
    indexes: Sets,
    /// The jobs that are counted as waiting, by type.
    waits: Sets,
    unique: BTreeMap<String, String>,
    pending: Sets,
    dead: Lists,
    boots: BTreeSet<String>,
    counts: BTreeMap<(String, String), i64>,
    /// The texts of expressions, by type and digest.
    expressions: BTreeMap<(String, String), String>,
    /// The expressions that have a time of their last use.
    used: BTreeSet<(String, String)>,
}

/// Reads everything, checks what must always hold, and compares with the model.
pub(super) fn check(world: &World, model: &Model) {
    let seen = read(world);
    each_job_stands_in_the_index_of_its_state(&seen);
    running_sets_hold_only_what_their_boot_started(&seen);
    unique_keys_are_held_only_by_jobs_on_their_way(&seen);
    ready_indexes_are_ordered_like_their_lists(&seen);
    waiting_jobs_are_counted(&seen);
    actors_know_the_expression_of_each_queue(&seen);
    agrees(&seen, model);
}

fn read(world: &World) -> Seen {
    let mut seen = Seen::default();
    let mut link = world.redis.link();
    let all = world.redis.keys("");
    let kinds = keys::kinds(&keys());
    let all: Vec<(&str, &str, &str)> = all.iter().map(|key| of_kind(key, &kinds)).collect();
    let mut pipeline = redis::pipe();
    for (key, kind, _) in &all {
        pipeline.cmd("PTTL").arg(key);
        match *kind {
            "WORK" | "DEAD" => pipeline.cmd("LRANGE").arg(key).arg(0).arg(-1),
            "READY" | "BOOTS" | "RUNNING" | "INDEX" | "WHERE_USED" => {
                pipeline.cmd("ZRANGE").arg(key).arg(0).arg(-1)
            }
            "JOB" | "STATS" | "WHERE" => pipeline.cmd("HGETALL").arg(key),
            "PENDING" => pipeline.cmd("SMEMBERS").arg(key),
            "UNIQUE" => pipeline.cmd("MGET").arg(key),
            _ => pipeline.cmd("MGET").arg("none"),
        };
    }
    let answers: Vec<redis::Value> =
        if all.is_empty() { Vec::new() } else { pipeline.query(&mut link).expect("redis answers") };
    for ((_, kind, name), answer) in all.iter().zip(answers.chunks_exact(2)) {
        let ttl: i64 = redis::from_redis_value(answer[0].clone()).expect("a TTL");
        let values: Vec<Option<String>> =
            redis::from_redis_value(answer[1].clone()).expect("strings");
        if ttl != -2 {
            seen.add(kind, name, ttl > 0, values.into_iter().flatten().collect());
        }
    }
    seen.nothing_outlives_its_job();
    let told = all.iter().all(|(_, kind, _)| *kind != "SETTLING");
    assert!(told, "dependents are left to be told though each had few");
    seen
}

/// Returns a key, its kind, and its name within the kind.
fn of_kind<'a>(key: &'a str, kinds: &'a [(String, String)]) -> (&'a str, &'a str, &'a str) {
    kinds
        .iter()
        .filter_map(|(kind, prefix)| Some((key, kind.as_str(), key.strip_prefix(prefix)?)))
        .min_by_key(|(_, _, name)| name.len())
        .expect("every key is in the namespace")
}

impl Seen {
    fn add(&mut self, kind: &str, name: &str, expires: bool, values: Vec<String>) {
        let name = name.to_owned();
        match kind {
            "JOB" => {
                if expires {
                    self.retained.insert(name.clone());
                }
                self.jobs.insert(name, pairs(values));
            }
            "WORK" => _ = self.lists.insert(name, values),
            "READY" => _ = self.ready.insert(name, values),
            "RUNNING" => _ = self.running.insert(name, values),
            "INDEX" if name.starts_with("waits:") => {
                _ = self.waits.insert(name, values.into_iter().collect());
            }
            "INDEX" => _ = self.indexes.insert(name, values.into_iter().collect()),
            "UNIQUE" => _ = self.unique.insert(name, values.concat()),
            "PENDING" => _ = self.pending.insert(name, values.into_iter().collect()),
            "DEAD" => _ = self.dead.insert(name, values),
            "BOOTS" => self.boots = values.into_iter().collect(),
            "STATS" => {
                for (what, number) in pairs(values) {
                    let number = number.parse().expect("a counter is a number");
                    self.counts.insert((name.clone(), what), number);
                }
            }
            "WHERE" => {
                let of = |digest| (name.clone(), digest);
                self.expressions.extend(pairs(values).into_iter().map(|(d, text)| (of(d), text)));
            }
            "WHERE_USED" => {
                self.used.extend(values.into_iter().map(|digest| (name.clone(), digest)));
            }
            _ => assert!(
                expires || LASTING.contains(&kind) || OF_ONE_JOB.contains(&kind),
                "{kind} {name} has no TTL, and nothing is known that would remove it"
            ),
        }
    }

    /// A key without a TTL that belongs to one job must go with it.
    fn nothing_outlives_its_job(&self) {
        for id in self.pending.keys() {
            assert!(self.jobs.contains_key(id), "the pending set of {id} outlives it");
        }
        for (key, holder) in &self.unique {
            assert!(self.jobs.contains_key(holder), "{key} is held by {holder}, which is gone");
        }
        for (index, ids) in &self.indexes {
            for id in ids {
                assert!(self.jobs.contains_key(id), "{id} stands in {index} and is gone");
            }
        }
    }

    fn field(&self, id: &str, name: &str) -> &str {
        self.jobs.get(id).and_then(|job| job.get(name)).map_or("", String::as_str)
    }

    /// Returns whether a foreign actor has ended the job and Hero has not noticed it yet.
    fn ended_unnoticed(&self, id: &str) -> bool {
        matches!(self.field(id, "status"), "finished" | "error") && !self.retained.contains(id)
    }
}

fn pairs(values: Vec<String>) -> BTreeMap<String, String> {
    let mut values = values.into_iter();
    std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect()
}

/// Every index that holds each id.
fn places(seen: &Seen) -> BTreeMap<&str, Vec<String>> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut add = |id, place| places.entry(id).or_default().push(place);
    for (queue, ids) in &seen.ready {
        for id in ids {
            add(id.as_str(), format!("ready{queue}"));
        }
    }
    for (boot, ids) in &seen.running {
        for id in ids {
            add(id.as_str(), format!("running{boot}"));
        }
    }
    for (index, ids) in &seen.indexes {
        for id in ids {
            add(id.as_str(), index.clone());
        }
    }
    places
}

fn each_job_stands_in_the_index_of_its_state(seen: &Seen) {
    let places = places(seen);
    for id in seen.jobs.keys() {
        let stands = places.get(id.as_str()).cloned().unwrap_or_default();
        let (ends, stands): (Vec<_>, Vec<_>) =
            stands.into_iter().partition(|place| place.starts_with("ended:"));
        let [stands] = &stands[..] else { panic!("{id} stands in {stands:?}: not in one index") };
        let (status, boot) = (seen.field(id, "status"), seen.field(id, "boot_id"));
        let script_type = seen.field(id, "script_type");
        let foreign = status == "started" && boot.is_empty() || seen.ended_unnoticed(id);
        let right = match status {
            // Until a sweep has noticed them.
            _ if foreign => stands.starts_with("ready") || stands.starts_with("started:"),
            "dispatched" => stands.starts_with("ready"),
            "started" => *stands == format!("running{boot}"),
            _ => *stands == format!("{status}:type:{script_type}"),
        };
        assert!(right, "{id} is {status} and stands in {stands}");
        if !foreign {
            let is_of_its_end = |place: &String| match status {
                "finished" => place.starts_with("ended:finished:"),
                _ => status == "error" && !place.starts_with("ended:finished:"),
            };
            let number = usize::from(matches!(status, "finished" | "error"));
            assert!(
                ends.len() == number && ends.iter().all(is_of_its_end),
                "{id} is {status} and stands in {ends:?}"
            );
        }
    }
}

/// Each job whose script waits stands once more in the index that counts such jobs, and no other job does.
fn waiting_jobs_are_counted(seen: &Seen) {
    let mut waits = Sets::new();
    for id in seen.jobs.keys().filter(|id| !seen.field(id, "wait").is_empty()) {
        assert_eq!(seen.field(id, "status"), "scheduled", "{id}, which waits");
        let index = format!("waits:type:{}", seen.field(id, "script_type"));
        waits.entry(index).or_default().insert(id.clone());
    }
    assert_eq!(seen.waits, waits, "the index of jobs that wait");
}

/// Otherwise its jobs would wait though an actor matches. Each is kept under the digest of its text.
fn actors_know_the_expression_of_each_queue(seen: &Seen) {
    for (queue, ids) in seen.ready.iter().chain(&seen.lists) {
        let known = of_queue(queue).is_none_or(|of| seen.expressions.contains_key(&of));
        assert!(known || ids.is_empty(), "no actor learns of {queue}, where {ids:?} wait");
    }
    for ((_, digest), text) in &seen.expressions {
        assert_eq!(SelectorDigest::of_text(text).as_str(), digest, "the digest of {text}");
    }
}

fn running_sets_hold_only_what_their_boot_started(seen: &Seen) {
    for (boot, ids) in &seen.running {
        for id in ids {
            assert_eq!(seen.field(id, "status"), "started", "{id}, which {boot} runs");
            assert_eq!(seen.field(id, "boot_id"), boot, "the owner of {id}");
        }
        assert!(seen.boots.contains(boot), "{boot} runs jobs, and nobody would notice its death");
    }
}

fn unique_keys_are_held_only_by_jobs_on_their_way(seen: &Seen) {
    for (key, holder) in &seen.unique {
        let ended = matches!(seen.field(holder, "status"), "finished" | "error");
        assert!(!ended || seen.ended_unnoticed(holder), "{key} is held by {holder}, which ended");
    }
}

fn ready_indexes_are_ordered_like_their_lists(seen: &Seen) {
    for (queue, ready) in &seen.ready {
        let list = seen.lists.get(queue).map_or(&[][..], Vec::as_slice);
        // A claim later than the grace leaves a second copy of its id, void until the job comes
        // back: such a job has two places.
        let once = |id: &&String| list.iter().filter(|other| other == id).count() == 1;
        let ready: Vec<&String> = ready.iter().filter(once).collect();
        let list: Vec<&String> = list.iter().filter(once).filter(|id| ready.contains(id)).collect();
        assert_eq!(ready, list, "the order of {queue}");
    }
}

fn agrees(seen: &Seen, model: &Model) {
    for (id, job) in &model.jobs {
        let number = |name| seen.field(id, name).parse().unwrap_or(0);
        assert_eq!(
            (seen.field(id, "status"), number("attempt"), number("crashes")),
            (job.status.as_str(), job.attempt, job.crashes),
            "status, attempts and crashes of {id}"
        );
        assert_eq!(seen.field(id, "boot_id"), job.boot.as_deref().unwrap_or(""), "boot of {id}");
        assert_eq!(seen.retained.contains(id), job.retained, "the TTL of {id}");
        let pending = seen.pending.get(id).cloned().unwrap_or_default();
        assert_eq!(pending, job.pending, "what {id} waits for");
        let state = job.state.map(|state| state.to_string()).unwrap_or_default();
        assert_eq!(seen.field(id, "kept_state"), state, "the state of {id}");
        assert_eq!(seen.field(id, "children"), text_of(&job.children), "the children of {id}");
        let (parent, generation) = (seen.field(id, "parent"), number("generation"));
        let expected = (job.parent.as_deref().unwrap_or(""), job.generation);
        assert_eq!((parent, generation), expected, "the parent of {id}, and the jobs above it");
        let wait = seen.field(id, "wait");
        let expected = job.wait.as_ref().map(Wait::text).unwrap_or_default();
        assert_eq!((wait, number("waits")), (expected.as_str(), job.waits), "the wait of {id}");
        assert_eq!(name_of(seen.field(id, "event")).as_deref(), job.event, "the event of {id}");
        let told: Vec<&str> = job.told.iter().copied().collect();
        assert_eq!(names_told(seen.field(id, "told_events")), told, "events kept by {id}");
    }
    let ids = |jobs: Vec<&String>| jobs.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(ids(seen.jobs.keys().collect()), ids(model.jobs.keys().collect()), "the jobs");
    let deques = |lists: &BTreeMap<String, VecDeque<String>>| {
        filled(lists.iter().map(|(name, ids)| (name, ids.iter().cloned().collect())))
    };
    let vectors = |lists: &Lists| filled(lists.iter().map(|(name, ids)| (name, ids.clone())));
    assert_eq!(seen.lists, deques(&model.lists), "the work lists");
    assert_eq!(seen.ready, vectors(&model.ready), "the ready indexes");
    assert_eq!(seen.running, vectors(&model.running), "the running sets");
    assert_eq!(seen.dead, vectors(&model.dead), "the dead letters");
    assert_eq!(seen.unique, model.unique, "the unique keys");
    assert_eq!(seen.boots, model.leases.keys().cloned().collect(), "the leases");
    let indexes: Sets = model
        .indexes
        .iter()
        .filter(|(_, ids)| !ids.is_empty())
        .map(|((status, of), ids)| (format!("{status}:type:{of}"), ids.clone()))
        .collect();
    let seen_indexes = seen.indexes.clone().into_iter();
    let of_states: Sets = seen_indexes.filter(|(name, _)| !name.starts_with("ended:")).collect();
    assert_eq!(of_states, indexes, "the indexes");
    let counts: BTreeMap<(String, String), i64> = model
        .counts
        .iter()
        .map(|((of, what), number)| ((of.clone(), (*what).to_owned()), *number))
        .collect();
    assert_eq!(seen.counts, counts, "the counters");
    let known: BTreeSet<_> = model.expressions.keys().cloned().collect();
    assert_eq!(seen.expressions.keys().cloned().collect::<BTreeSet<_>>(), known, "expressions");
    assert_eq!(seen.used, known, "the times of expressions");
}

fn filled<'a>(lists: impl Iterator<Item = (&'a String, Vec<String>)>) -> Lists {
    lists.filter(|(_, ids)| !ids.is_empty()).map(|(name, ids)| (name.clone(), ids)).collect()
}

/// Checks that every job is in the state of its last event, reached by legal transitions. A change
/// by a foreign program has its event when a sweep notices it.
pub(super) fn events_agree(world: &World, model: &Model) {
    let events: Vec<(String, BTreeMap<String, String>)> =
        world.redis.ask(&format!("XRANGE {} - +", keys().events()));
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, event) in &events {
        let (id, from, to) = (&event["id"], &event["from"], &event["to"]);
        if let (Ok(from), Ok(to)) = (from.parse::<JobStatus>(), to.parse::<JobStatus>()) {
            assert!(from.may_become(to), "{id} is told to have gone from {from} to {to}");
        }
        last.insert(id, to);
    }
    for (id, job) in &model.jobs {
        let is_noticed = job.retained || !job.status.is_terminal() && !job.is_foreign();
        let is_ours = world.field(id, "created_at").is_some();
        if is_noticed && (is_ours || job.status != JobStatus::Dispatched) {
            let told = last.get(id.as_str()).copied().unwrap_or("nothing");
            assert_eq!(told, job.status.as_str(), "what is told of {id} is not where it stands");
        }
    }
}

pub(super) fn states(model: &Model) -> BTreeMap<String, JobStatus> {
    model.jobs.iter().map(|(id, job)| (id.clone(), job.status)).collect()
}
