//! Crashes under load, of actors, connections and Redis: no job is lost, and none ends twice.

use hero::client::{Client, JobBuilder};
use hero::config::JobConfig;
use hero::proto::job::Job;
use nix::sys::signal::Signal;

use crate::support::{Hero, Redis, World, keys, wait_until};

/// Builds quick jobs and some slow ones, so that every crash hits a running job.
fn jobs(number: usize) -> Vec<Job> {
    let job = |n: usize| {
        let script = if n.is_multiple_of(20) { "sleep(0.02); 1" } else { "1" };
        let job = JobBuilder::new("osis", script).id(&format!("j{n}")).reply_format("json");
        job.build().expect("a legal job")
    };
    (0..number).map(job).collect()
}

async fn submit(redis: &Redis, number: usize) {
    let client = Client::with(&redis.config("hero"), JobConfig::default()).expect("a client");
    for result in client.submit_all(&jobs(number)).await.expect("submitting") {
        result.expect("every job is accepted");
    }
}

/// Returns a Hero with short leases and many allowed crashes.
fn hero_on(redis: &Redis) -> Hero {
    Hero::on(redis).set("actor.lease", "\"1s\"").set("job.crash_limit", "1000")
}

fn ended(redis: &Redis) -> usize {
    let count = |what| redis.field(&keys::stats("osis"), what);
    ["finished", "failed"]
        .into_iter()
        .filter_map(count)
        .map(|n| n.parse::<usize>().expect("n"))
        .sum()
}

/// Waits until some more jobs of this number have ended, or all, so that the next crash comes in the midst of the load.
#[track_caller]
fn some_more_end(redis: &Redis, number: usize) {
    let enough = number.min(ended(redis) + 50);
    wait_until("some more jobs have ended", || ended(redis) >= enough);
}

/// Checks that every job finished once: with one reply, and in one index.
#[track_caller]
fn all_finished_once(redis: Redis, number: usize) {
    wait_until("all jobs have ended", || ended(&redis) >= number);
    let mut pipeline = redis::pipe();
    for n in 0..number {
        pipeline.cmd("LLEN").arg(keys::reply(&format!("j{n}")));
        pipeline.cmd("HGET").arg(keys::job(&format!("j{n}"))).arg("status");
    }
    let found: Vec<(usize, String)> = pipeline.query(&mut redis.link()).expect("reading jobs");
    let odd: Vec<_> =
        found.iter().enumerate().filter(|(_, f)| **f != (1, "finished".into())).collect();
    let first = odd.first().map(|(n, _)| format!("j{n}")).unwrap_or_default();
    let its = |command: String| format!("{:?}", redis.ask::<redis::Value>(&command));
    assert!(
        odd.is_empty(),
        "{} of {number}: {odd:?}\n{first} has {}\nits log {}",
        odd.len(),
        its(format!("HGETALL {}", keys::job(&first))),
        its(format!("XRANGE {} - +", keys::log(&first)))
    );
    assert_eq!(ended(&redis), number, "some jobs ended twice");
    World::on(redis, "hero").check();
}

#[tokio::test]
async fn no_job_is_lost_while_actors_are_killed() {
    const NUMBER: usize = 2000;
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _supervisor = hero.supervisor().start();
    submit(&redis, NUMBER).await;
    for instance in [1, 2, 1, 3, 1] {
        let mut actor = hero.actor(&format!("osis-default-{instance}")).start();
        some_more_end(&redis, NUMBER);
        actor.kill();
    }
    let _last = hero.actor("osis-default-4").start();
    all_finished_once(redis, NUMBER);
}

#[tokio::test]
async fn no_job_is_lost_while_redis_is_killed() {
    const NUMBER: usize = 2000;
    let mut redis = Redis::that_keeps();
    let hero = hero_on(&redis);
    let _supervisor = hero.supervisor().start();
    let _actors = ["osis-default-1", "osis-default-2"].map(|unit| hero.actor(unit).start());
    submit(&redis, NUMBER).await;
    for _ in 0..3 {
        some_more_end(&redis, NUMBER);
        redis.kill();
        redis.start_again();
    }
    all_finished_once(redis, NUMBER);
}

#[tokio::test]
async fn no_job_is_lost_while_connections_are_cut_and_scripts_flushed() {
    const NUMBER: usize = 2000;
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _supervisor = hero.supervisor().start();
    let _actors = ["osis-default-1", "osis-default-2"].map(|unit| hero.actor(unit).start());
    submit(&redis, NUMBER).await;
    for _ in 0..10 {
        some_more_end(&redis, NUMBER);
        redis.run("SCRIPT FLUSH");
        redis.run("CLIENT KILL TYPE normal");
    }
    all_finished_once(redis, NUMBER);
}

#[tokio::test]
async fn no_job_is_lost_while_actors_are_restarted() {
    const NUMBER: usize = 2000;
    let redis = Redis::start();
    let hero = hero_on(&redis);
    submit(&redis, NUMBER).await;
    for _ in 0..5 {
        let actor = hero.actor("osis-default-1").start();
        some_more_end(&redis, NUMBER);
        actor.signal(Signal::SIGTERM);
        actor.ends().code(0);
        assert!(
            redis.all("BOOTS").is_empty() && redis.all("RUNNING").is_empty(),
            "the actor left keys behind"
        );
    }
    let _last = hero.actor("osis-default-1").start();
    all_finished_once(redis, NUMBER);
}

#[test]
fn folder_of_a_dead_process_is_removed_by_an_actor_of_sal() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let left = redis.folder().join("hero-jobs-dead");
    std::fs::create_dir_all(left.join("job-1")).expect("folders");
    let _sal = hero.actor("sal-default-1").env("RUNTIME_DIRECTORY", redis.folder()).start();
    wait_until("it is removed", || !left.exists());
}

#[test]
fn log_of_a_job_says_before_its_next_attempt_that_its_actor_died() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _supervisor = hero.supervisor().start();
    let actor = hero.actor("bash-default-1").start();
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", "echo on >&2; sleep 600"]).code(0);
    let log = || hero.run(&["job", "logs", "a"]).code(0).stdout;
    wait_until("it runs", || log().contains("on\n"));
    actor.signal(Signal::SIGKILL);
    let _next = hero.actor("bash-default-1").start();
    let told =
        "on\nattempt 1 begins, after 1 crash: its actor died, or its process was killed\non\n";
    wait_until("it runs again", || log() == told);
    hero.run(&["job", "stop", "a"]).code(0);
}
