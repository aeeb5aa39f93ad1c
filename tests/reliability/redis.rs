//! A Redis whose memory is full, that may evict keys, or that became a replica.

use std::time::Duration;

use hero::client::{Client, JobBuilder};
use hero::config::JobConfig;
use hero::error::Exit;
use hero::proto::job::JobStatus;
use hero::store::{BootDeath, PresenceOf, Recorded, Renewal, StoreError, Verdict, Woken};

use crate::support::{Hero, Life, RETENTION, Redis, World, ids, job, keys, queue, wait_until};

const FULL: &str = "CONFIG SET maxmemory 1";
const ROOM: &str = "CONFIG SET maxmemory 0";

fn done() -> Verdict {
    Verdict::Finished { output: "1".into(), exit_code: None }
}

#[tokio::test]
async fn a_submission_to_a_full_redis_is_refused_in_words_and_with_its_exit_code() {
    let world = World::new();
    world.redis.run(FULL);
    let client = Client::with(&world.redis.config("hero"), JobConfig::default()).expect("a client");
    let job = JobBuilder::new("osis", "1").build().expect("legal");
    let error = client.submit(job).await.expect_err("there is no room");
    assert_eq!(error.exit(), Exit::Unavailable);
    assert!(error.to_string().contains("memory is full"), "{error}");
    assert!(world.redis.all("HERO").is_empty(), "nothing is half written");
}

#[tokio::test]
async fn what_was_accepted_goes_on_and_ends_though_the_memory_is_full() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let presence = life.presence();
    world.store.actors().appear(&life.actor, &presence, RETENTION, None).await.expect("appearing");
    let own = world.started(&life, "a").await;
    let again = world.started(&life, "again").await;
    let large = world.started(&life, "large").await;
    let output = "x".repeat(100 << 10);
    let whole = || Verdict::Finished { output: output.as_str().into(), exit_code: None };
    let stored = world.ended(&life, "stored", whole()).await;
    world.accepts(&[job("b")]).await;
    world.redis.run(FULL);
    // A lease that could not be renewed would cost the actor its jobs.
    let actors = [PresenceOf { actor: life.actor.clone(), presence }];
    let renewed = world.store.actors().heartbeat(&life.boot, RETENTION, &actors, &[]).await;
    assert_ne!(renewed.expect("beating"), Renewal::Lost);
    assert_eq!(world.finish(&life, &own, done()).await, Recorded::Recorded);
    assert_eq!(world.finish(&life, &large, whole()).await, Recorded::Recorded);
    for id in [&large, &stored] {
        let outcome = world.store.jobs().outcome(id).await.expect("reading");
        assert_eq!(outcome, Some((JobStatus::Finished, Some(output.clone().into_bytes()))), "{id}");
    }
    let delay = Duration::from_micros(1);
    let retry = Verdict::Retry { error: "no".to_owned(), exit_code: None, delay };
    assert_eq!(world.finish(&life, &again, retry).await, Recorded::Recorded);
    assert_eq!(
        world.store.schedule().dispatch_due(9, RETENTION).await.expect("dispatching").jobs,
        1
    );
    let queue = world.work("type:osis");
    assert_eq!(queue, ["b", "again"]);
    let popped: Vec<String> = world.redis.ask(&format!("LPOP {} 2", keys::work("type:osis")));
    assert_eq!(popped, queue);
    world.store.recovery().pops(RETENTION).await.expect("a sweep");
    // A mark that is older than a pop may be.
    world.redis.run(ROOM);
    let future = "9000000000000000";
    world.redis.set_field(&keys().marks(), "type:osis", format!("1 {future}"));
    world.redis.run(FULL);
    let found = world.store.recovery().pops(RETENTION).await.expect("a sweep");
    assert_eq!((found.put_back, world.work("type:osis")), (2, queue));
    world.store.recovery().orphans().await.expect("a sweep");
    world.store.stats().sample(Duration::from_secs(1)).await.expect("a sample");
    let every = Duration::from_secs(1);
    world.store.recovery().foreign(RETENTION, every, 3, RETENTION).await.expect("a sweep");
    world.store.recovery().boots(None, Duration::ZERO, 3, RETENTION).await.expect("a sweep");
    world.redis.run(ROOM);
    world.check();
    assert_eq!(world.status("a"), JobStatus::Finished);
}

#[tokio::test]
async fn job_is_adopted_claimed_and_its_token_passed_on_though_the_memory_is_full() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.started(&life, "first").await;
    world.accepts(&[job("a")]).await;
    world.redis.set_job("raw", "script 1 status dispatched");
    world.redis.push(&keys::work("type:osis"), &["raw"]);
    let list = keys().wake(&queue("type:osis").target);
    let token = Woken { entry: world.redis.pop(&list).into_bytes(), list: list.clone() };
    world.redis.run(FULL);
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["raw"]);
    world.redis.delete(&list);
    world.store.jobs().pass_on(&token).await.expect("passing on");
    assert_eq!(world.redis.list(&list).len(), 1);
}

#[test]
fn running_jobs_end_once_while_the_memory_is_full_and_the_log_stays_short() {
    const JOBS: usize = 60;
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"2s\"");
    let supervisor = hero.supervisor().start();
    let ids: Vec<String> = (0..JOBS).map(|number| format!("j{number}")).collect();
    let script = "for n in 0..20 { print(`line ${n}`); sleep(0.01); } 1";
    for id in &ids {
        redis.push_job("osis", id, script);
    }
    let osis = hero.actor("osis-default-1").tasks(4).start();
    let finished = || redis.count("osis", "finished");
    wait_until("a job has ended", || finished() > 0);
    redis.run(FULL);
    wait_until("all have ended", || finished() == JOBS as u64);
    assert_eq!(redis.count("osis", "started"), JOBS as u64, "no job ran twice");
    // Lines that were on their way when the job ended are not in the count.
    let missing = redis.field(&keys::job(&ids[JOBS - 1]), "log_missing");
    let missing: u64 = missing.and_then(|text| text.parse().ok()).unwrap_or_default();
    assert!((1..=20).contains(&missing), "{missing} lines");
    let gone: i64 = redis.ask(&format!("EXISTS {}", keys::log(&ids[JOBS - 1])));
    assert_eq!(gone, 0, "its log was dropped");
    for process in [&osis, &supervisor] {
        let of_jobs =
            |line: &&str| line.contains(" of osis starts") || line.contains(" of osis finished");
        let lines = process.err().lines().filter(|line| !of_jobs(line)).count();
        assert!(lines < 100, "{lines} lines");
    }
}

#[test]
fn log_marks_the_lines_that_a_full_redis_refused() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let python = hero.actor("python-default-1").start();
    let (first, second) = (redis.folder().join("first"), redis.folder().join("second"));
    let script = format!(
        "import os, sys, time\ndef log(line): print(line, file=sys.stderr, flush=True)\ndef until(f):\n    while not os.path.exists(f): time.sleep(0.01)\n\
         log('one'); until({first:?}); log('two')\n\
         until({second:?}); log('three')"
    );
    redis.push_job("python", "a", &script);
    let log = keys::log("a");
    let lines = || redis.ask::<i64>(&format!("XLEN {log}"));
    wait_until("it has written a line", || lines() == 1);
    redis.run(FULL);
    std::fs::write(&first, "").expect("a file");
    wait_until("a line was refused", || python.err().contains("redis refuses lines"));
    redis.run(ROOM);
    std::fs::write(&second, "").expect("a file");
    wait_until("it has ended", || redis.count("python", "finished") == 1);
    let log: Vec<(String, Vec<String>)> = redis.ask(&format!("XRANGE {log} - +"));
    let lines: Vec<&str> = log.iter().map(|(_, fields)| fields[3].as_str()).collect();
    let mark = "1 line of this log is missing: redis refused it";
    assert_eq!(lines, ["one", mark, "three"]);
    assert_eq!(redis.field(&keys::job("a"), "log_missing").as_deref(), Some("1"));
}

#[tokio::test]
async fn a_dead_boots_jobs_are_put_back_though_the_memory_is_full() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.started(&life, "a").await;
    world.redis.run(FULL);
    let gone = Some((&life.boot, BootDeath::Unknown));
    let found =
        world.store.recovery().boots(gone, Duration::ZERO, 3, RETENTION).await.expect("recovering");
    world.redis.run(ROOM);
    assert_eq!(found.put_back, 1);
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
}

#[tokio::test]
async fn a_redis_that_became_a_replica_is_left_and_looked_for_anew() {
    let world = World::new();
    world.accepts(&[job("a")]).await;
    world.redis.run("CONFIG RESETSTAT");
    // A master that nobody listens at: it stays a replica.
    world.redis.run("REPLICAOF 127.0.0.1 1");
    let before: i64 = connections(&world);
    let error =
        world.store.jobs().submit(&[job("b")], true, RETENTION).await.expect_err("read only");
    assert!(matches!(error, StoreError::NotServing { .. }), "{error:?}");
    world.store.ping().await.expect("it still answers");
    assert!(connections(&world) >= before + 2, "the next call made a new connection");
    world.redis.run("REPLICAOF NO ONE");
    world.accepts(&[job("b")]).await;
}

/// Returns the number of connections ever made; this call makes one.
fn connections(world: &World) -> i64 {
    let info: String = world.redis.ask("INFO stats");
    let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    line.expect("redis counts").trim().parse().expect("a number")
}
