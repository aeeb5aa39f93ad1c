//! Several shards: jobs of all of them run on the tasks of one actor, and what happens to one leaves the
//! others alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hero::client::JobBuilder;
use hero::config::RedisConfig;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::proto::keys::Keys;
use hero::store::{Shards, Submitted};
use nix::sys::signal::Signal;
use tokio::runtime::Runtime;

use crate::support::{Cluster, Hero, Process, RETENTION, Redis, wait_until};

use super::ENDLESS;

/// The stores of a system, with the runtime of their connections.
struct System(Shards, Runtime);

impl System {
    fn open(config: &RedisConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self(Shards::open(config, Ok).expect("settings"), runtime.expect("a runtime"))
    }

    /// Some shards on one Redis.
    fn on(redis: &Redis, shards: u16) -> Self {
        Self::open(&RedisConfig { shards, ..redis.config("hero") })
    }

    /// Submits jobs to the shards that their ids tell.
    #[track_caller]
    fn submit(&self, jobs: Vec<Job>) {
        let mut of_shard: BTreeMap<u16, Vec<Job>> = BTreeMap::new();
        for job in jobs {
            let store = self.0.of(job.id.as_str()).expect("a shard");
            of_shard.entry(store.shard().number()).or_default().push(job);
        }
        for jobs in of_shard.values() {
            let store = self.0.of(jobs[0].id.as_str()).expect("a shard");
            let answers =
                self.1.block_on(store.jobs().submit(jobs, true, RETENTION)).expect("redis answers");
            let is_new = |answer: &Submitted| matches!(answer, Submitted::Accepted(_));
            assert!(answers.iter().all(is_new), "{answers:?}");
        }
    }

    /// The keys of the shard of an id, or of the beginning of one.
    fn keys(&self, id: &str) -> Keys {
        self.0.of(id).expect("a shard").keys().clone()
    }

    fn job(&self, id: &str) -> Option<Job> {
        let store = self.0.of(id).expect("a shard");
        self.1.block_on(store.jobs().job(&id.parse().expect("legal"))).ok()??.ok()
    }

    #[track_caller]
    fn until(&self, id: &str, status: JobStatus) {
        wait_until(&format!("job {id} is {status}"), || {
            self.job(id).is_some_and(|job| job.status == status)
        });
    }
}

/// Adds the shards to a configuration.
fn with_shards(hero: Hero, shards: u16) -> Hero {
    hero.set("redis.shards", &shards.to_string())
}

fn job(script_type: &str, id: &str, script: &str) -> Job {
    JobBuilder::new(script_type, script).id(id).build().expect("legal")
}

/// A job that notes its start and its end.
fn noted(folder: &Path, id: &str) -> Job {
    let file = folder.join("effects").display().to_string();
    let note = |mark: &str| format!("file_write_append(\"{file}\", \"{mark}{id}\\n\")");
    job("sal", id, &format!("{}; sleep(0.02); {}", note("+"), note("-")))
}

/// Returns the ids in the order of their ends, and the highest number that ran at once.
fn noted_in(folder: &Path) -> (Vec<String>, usize) {
    let text = std::fs::read_to_string(folder.join("effects")).unwrap_or_default();
    let (mut running, mut most, mut ended) = (0_usize, 0, Vec::new());
    for line in text.lines() {
        if let Some(id) = line.strip_prefix('-') {
            ended.push(id.to_owned());
            running -= 1;
        } else {
            running += 1;
        }
        most = most.max(running);
    }
    (ended, most)
}

/// Waits until jobs have run, and checks that each did once, and at most `tasks` at the same time.
#[track_caller]
fn until_each_ran_once(folder: &Path, ids: &[String], tasks: usize) {
    wait_until("all have run", || noted_in(folder).0.len() >= ids.len());
    let (mut ended, most) = noted_in(folder);
    assert!(most <= tasks, "{most} ran at once");
    let mut ids = ids.to_vec();
    ids.sort();
    ended.sort();
    assert_eq!(ended, ids);
}

/// The ids of jobs on the shards 0 to 3.
fn ids(each: usize) -> Vec<String> {
    let of_shard = |shard: usize| {
        let prefix = if shard == 0 { String::new() } else { format!("s{shard}-") };
        (0..each).map(move |number| format!("{prefix}j{number}"))
    };
    (0..4).flat_map(of_shard).collect()
}

#[test]
fn jobs_of_all_shards_run_once_and_within_the_tasks_of_their_actor() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 4);
    let system = System::on(&redis, 4);
    let _supervisor = hero.supervisor().start();
    let _sal = hero.actor("sal-default-1").tasks(3).start();
    let _osis = hero.actor("osis-default-1").start();
    let ids = ids(12);
    system.submit(ids.iter().map(|id| noted(redis.folder(), id)).collect());
    system.submit(vec![job("osis", "s1-other", "6 * 7"), job("osis", "s3-other", "2")]);
    until_each_ran_once(redis.folder(), &ids, 3);
    for id in ids.iter().map(String::as_str).chain(["s1-other", "s3-other"]) {
        system.until(id, JobStatus::Finished);
    }
    // Each stays in the namespace of its shard.
    for (id, namespace) in [("s3-j0", "{hero-3}"), ("j0", "hero")] {
        let id: JobId = id.parse().expect("legal");
        let keys = Keys::new(namespace.parse().expect("legal"));
        assert!(redis.ask::<bool>(&format!("EXISTS {}", keys.job(&id))), "{id}");
    }
}

#[test]
fn quick_jobs_of_many_shards_are_claimed_ahead_and_run_once() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 4);
    let system = System::on(&redis, 4);
    let ids = ids(400);
    system.submit(ids.iter().map(|id| job("osis", id, "1")).collect());
    let _osis = hero.actor("osis-default-1").tasks(2).start();
    for id in &ids {
        system.until(id, JobStatus::Finished);
    }
    assert!(ids.iter().all(|id| system.job(id).is_some_and(|job| job.attempt == 1)));
}

#[test]
fn shard_with_a_full_queue_does_not_starve_another() {
    const FLOOD: usize = 300;
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 2);
    let system = System::on(&redis, 2);
    let flood: Vec<String> = (0..FLOOD).map(|number| format!("f{number}")).collect();
    system.submit(flood.iter().map(|id| noted(redis.folder(), id)).collect());
    let _sal = hero.actor("sal-default-1").tasks(1).start();
    wait_until("the flood runs", || noted_in(redis.folder()).0.len() > 2);
    for number in 0..5 {
        let id = format!("s1-single{number}");
        let before = noted_in(redis.folder()).0.len();
        system.submit(vec![noted(redis.folder(), &id)]);
        system.until(&id, JobStatus::Finished);
        let (ended, _) = noted_in(redis.folder());
        let place = ended.iter().position(|ended| *ended == id).expect("it ended");
        assert!(place < before + FLOOD / 10, "{} of the flood went first", place - before);
    }
}

/// A job that runs until a file appears.
fn gated(gate: &Path, id: &str) -> Job {
    let gate = gate.display();
    job("sal", id, &format!("while !exist(\"{gate}\") {{ sleep(0.01); }} \"through\""))
}

#[test]
fn shutdown_drains_the_jobs_of_all_shards() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 3);
    let system = System::on(&redis, 3);
    let sal = hero.actor("sal-default-1").tasks(2).start();
    let gate = redis.folder().join("gate");
    system.submit(vec![gated(&gate, "a"), gated(&gate, "s2-a")]);
    system.until("a", JobStatus::Started);
    system.until("s2-a", JobStatus::Started);
    sal.signal(Signal::SIGTERM);
    wait_until("it drains", || sal.err().contains("running jobs may end"));
    system.submit(vec![gated(&gate, "s1-late")]);
    std::fs::write(&gate, "").expect("opening the gate");
    sal.ends().code(0);
    system.until("a", JobStatus::Finished);
    system.until("s2-a", JobStatus::Finished);
    system.until("s1-late", JobStatus::Dispatched);
}

#[test]
fn message_to_shut_down_on_one_shard_ends_the_process_on_all() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 2);
    let osis = hero.actor("osis-default-1").start();
    wait_until("it serves both", || osis.err().matches("ready: ").count() == 2);
    let system = System::on(&redis, 2);
    let control = system.keys("s1-").control(&"osis:default:1".parse().expect("legal"));
    redis.push(&control, &[r#"{"cmd":"shutdown"}"#]);
    osis.ends().code(0);
}

#[test]
fn actor_stop_leaves_no_message_that_would_end_the_next_start() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 4);
    let system = System::on(&redis, 4);
    let osis = hero.actor("osis-default-1").start();
    wait_until("it serves all", || osis.err().matches("ready: ").count() == 4);
    hero.run(&["actor", "stop", "osis-default-1"]).code(0);
    let ended = osis.ends().code(0);
    assert_eq!(ended.stderr.matches("was told to shut down").count(), 1, "{}", ended.stderr);
    let actor = "osis:default:1".parse().expect("legal");
    for id in ["a", "s1-a", "s2-a", "s3-a"] {
        let left = redis.list(&system.keys(id).control(&actor));
        assert!(left.is_empty(), "{id}: {left:?}");
    }
}

#[test]
fn actor_is_reported_by_the_shards_that_answer() {
    let (home, mut other) = (Redis::start(), Redis::start());
    let (hero, system) = two_servers(&home, &other);
    let osis = hero.actor("osis-default-1").start();
    wait_until("it serves both", || osis.err().matches("ready: ").count() == 2);
    other.kill();
    let done = hero.run(&["actor", "drain", "osis-default-1"]).code(0);
    done.stdout("osis:default:1 told to drain\n").says("not told on shard 1: redis at ");
    wait_until("it drains", || osis.err().contains("drains: claims no more jobs"));
    system.submit(vec![job("osis", "a", "1")]);
    hero.run(&["actor", "ping", "osis-default-1"]).code(0);
    system.until("a", JobStatus::Dispatched);
    hero.run(&["actor", "resume", "osis-default-1"]).code(0);
    system.until("a", JobStatus::Finished);
    hero.run(&["actor", "stop", "osis-default-1"]).code(0);
    osis.ends().code(0);
}

#[test]
fn jobs_of_all_shards_run_again_after_their_actor_was_killed() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 3);
    let system = System::on(&redis, 3);
    let _supervisor = hero.supervisor().start();
    let mut first = hero.actor("sal-default-1").tasks(3).start();
    let gate = redis.folder().join("gate");
    let all = ["a", "s1-a", "s2-a"];
    system.submit(all.iter().map(|id| gated(&gate, id)).collect());
    for id in all {
        system.until(id, JobStatus::Started);
    }
    first.kill();
    let _second = hero.actor("sal-default-1").tasks(3).start();
    std::fs::write(&gate, "").expect("opening the gate");
    for id in all {
        system.until(id, JobStatus::Finished);
        assert_eq!(system.job(id).map(|job| job.attempt), Some(1), "a crash is no attempt");
    }
}

#[test]
fn lost_lease_on_one_shard_restarts_the_boot_of_that_shard_only() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 2);
    let system = System::on(&redis, 2);
    let osis = hero.actor("osis-default-1").tasks(2).start();
    system.submit(vec![job("osis", "a", ENDLESS), job("osis", "s1-a", ENDLESS)]);
    system.until("a", JobStatus::Started);
    system.until("s1-a", JobStatus::Started);
    let key = |id: &str| system.keys(id).job(&id.parse().expect("legal"));
    let boot = |id: &str| redis.field(&key(id), "boot_id");
    let (home, other) = (boot("a"), boot("s1-a").expect("it has an owner"));
    assert_ne!(home.as_ref(), Some(&other));
    // A score of 0: its lease was declared over.
    redis.put(&system.keys("s1-").boots(), 0, &other);
    wait_until("it runs again", || boot("s1-a").is_some_and(|boot| boot != other));
    assert_eq!(osis.err().matches("lost the lease: ").count(), 1, "{}", osis.err());
    assert_eq!(boot("a"), home, "the other shard's job went on");
    assert_eq!(redis.field(&key("a"), "status").as_deref(), Some("started"));
}

#[test]
fn another_shard_moves_and_loses_nothing() {
    let redis = Redis::start();
    let waiting = ["a", "s1-a", "s1-b"];
    System::on(&redis, 2).submit(waiting.iter().map(|id| noted(redis.folder(), id)).collect());
    let hero = with_shards(Hero::on(&redis), 5);
    let system = System::on(&redis, 5);
    system.submit(vec![noted(redis.folder(), "s4-a")]);
    let _supervisor = hero.supervisor().start();
    let _sal = hero.actor("sal-default-1").tasks(2).start();
    let all = waiting.iter().chain(&["s4-a"]).map(|id| (*id).to_owned()).collect::<Vec<_>>();
    until_each_ran_once(redis.folder(), &all, 2);
    for id in &all {
        system.until(id, JobStatus::Finished);
    }
}

#[test]
fn unit_serves_only_its_shards() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 3);
    let system = System::on(&redis, 3);
    let hero = hero.set("redis.serve", "[0, 2]");
    let _osis = hero.actor("osis-default-1").start();
    system.submit(vec![job("osis", "s1-a", "1"), job("osis", "s2-a", "1"), job("osis", "a", "1")]);
    system.until("s2-a", JobStatus::Finished);
    system.until("a", JobStatus::Finished);
    system.until("s1-a", JobStatus::Dispatched);
}

/// Home on the first server, shard 1 on the second.
fn two_servers(home: &Redis, other: &Redis) -> (Hero, System) {
    let hero = with_shards(Hero::on(home), 2);
    let hero = hero.set("redis.shard_urls", &format!("[{:?}]", other.url()));
    let shard_urls = vec![other.url().into()];
    (hero, System::open(&RedisConfig { shards: 2, shard_urls, ..home.config("hero") }))
}

fn ready_on(process: &Process, shard: u16) -> bool {
    process
        .err()
        .lines()
        .any(|line| line.contains("ready: ") && line.contains(&format!("on shard {shard}")))
}

#[test]
fn jobs_of_one_shard_run_while_the_redis_of_the_other_is_away() {
    let (home, mut other) = (Redis::start(), Redis::that_keeps());
    let (hero, system) = two_servers(&home, &other);
    let supervisor = hero.supervisor().start();
    let osis = hero.actor("osis-default-1").tasks(1).start();
    wait_until("both serve both", || {
        [&osis, &supervisor].iter().all(|process| ready_on(process, 0) && ready_on(process, 1))
    });
    system.submit(vec![job("osis", "a", "1"), job("osis", "s1-a", "1")]);
    system.until("a", JobStatus::Finished);
    system.until("s1-a", JobStatus::Finished);
    other.kill();
    for number in 0..20 {
        let id = format!("b{number}");
        system.submit(vec![job("osis", &id, "1")]);
        system.until(&id, JobStatus::Finished);
    }
    other.start_again();
    let system = two_servers(&home, &other).1;
    system.submit(vec![job("osis", "s1-c", "1")]);
    system.until("s1-c", JobStatus::Finished);
    assert_eq!(osis.err().matches("ready: ").count(), 2, "no boot was lost: {}", osis.err());
}

#[test]
fn actor_starts_with_the_shards_whose_redis_answers() {
    let (home, mut other) = (Redis::start(), Redis::absent(false));
    let (hero, system) = two_servers(&home, &other);
    let osis = hero.actor("osis-default-1").tasks(1).start();
    system.submit(vec![job("osis", "a", "1")]);
    system.until("a", JobStatus::Finished);
    assert!(!ready_on(&osis, 1));
    other.start_again();
    system.submit(vec![job("osis", "s1-a", "1")]);
    system.until("s1-a", JobStatus::Finished);
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
}

#[test]
fn drained_actor_claims_nothing_on_a_shard_that_comes_later() {
    let (home, mut other) = (Redis::start(), Redis::absent(false));
    let (hero, system) = two_servers(&home, &other);
    let osis = hero.actor("osis-default-1").start();
    wait_until("it serves home", || ready_on(&osis, 0));
    hero.run(&["actor", "drain", "osis-default-1"]).code(0);
    wait_until("it drains", || osis.err().contains("drains: claims no more jobs"));
    other.start_again();
    system.submit(vec![job("osis", "s1-a", "1")]);
    wait_until("it serves the other", || ready_on(&osis, 1));
    let presence = system.keys("s1-").presence(&"osis:default:1".parse().expect("legal"));
    let presence: String = other.get(&presence);
    assert!(presence.contains("\"state\":\"draining\""), "{presence}");
    system.until("s1-a", JobStatus::Dispatched);
    hero.run(&["actor", "resume", "osis-default-1"]).code(0);
    system.until("s1-a", JobStatus::Finished);
}

#[test]
fn shards_of_a_cluster_lie_on_several_nodes_and_jobs_of_all_run() {
    let cluster = Cluster::start();
    let hero = with_shards(Hero::on_cluster(&cluster), 6);
    let system = System::open(&RedisConfig { shards: 6, ..cluster.config() });
    let _supervisor = hero.supervisor().start();
    let _sal = hero.actor("sal-default-1").tasks(2).start();
    let ids: Vec<String> =
        ["a".to_owned()].into_iter().chain((1..6).map(|shard| format!("s{shard}-a"))).collect();
    system.submit(ids.iter().map(|id| noted(cluster.folder(), id)).collect());
    until_each_ran_once(cluster.folder(), &ids, 2);
    let owner = |id: &String| {
        let key = system.keys(id).job(&id.parse().expect("legal"));
        cluster.owner_of(&key).expect("a node has it")
    };
    let owners: BTreeSet<usize> = ids.iter().map(owner).collect();
    assert!(owners.len() > 1, "{owners:?}");
    let status = hero.run(&["status"]).code(0).stdout;
    assert!(status.contains(&format!("shards  6, on {} servers", owners.len())), "{status}");
}

#[test]
fn child_on_a_further_shard_has_the_published_script_of_the_home_shard() {
    let redis = Redis::start();
    let hero = with_shards(Hero::on(&redis), 3).set("type.osis.may_submit", "[\"osis\"]");
    let system = System::on(&redis, 3);
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("osis-default-1").start();
    hero.run(&["script", "publish", "double", "-t", "osis", "-e", "params.n * 2"]).code(0);
    let script = "hero_submit(#{uses: \"double\", name: \"c\", params: #{n: 21}}).id";
    let parents = ["p", "s1-p", "s2-p"];
    system.submit(parents.iter().map(|id| job("osis", id, script)).collect());
    for id in parents {
        system.until(id, JobStatus::Finished);
        let child = hero.run(&["job", "output", id]).code(0).stdout;
        assert_eq!(child.starts_with("child-"), id == "p", "{child}");
        system.until(&child, JobStatus::Finished);
        hero.run(&["job", "output", &child]).code(0).stdout("42");
        let uses = system.job(&child).and_then(|job| job.spec.uses).map(|uses| uses.to_string());
        assert_eq!(uses.as_deref(), Some("double@1"));
    }
}
