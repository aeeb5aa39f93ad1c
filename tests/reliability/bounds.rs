//! Bounds: indexes of names, and the work of skipping garbage.

use std::time::{Duration, Instant};

use hero::client::JobBuilder;
use hero::store::Verdict;

use crate::support::{Hero, Life, RETENTION, Redis, World, keys, wait_until};

const SAMPLED: Duration = Duration::from_secs(1);

fn types(world: &World) -> Vec<String> {
    let mut types: Vec<String> = world.redis.ask(&format!("SMEMBERS {}", keys().types()));
    types.sort();
    types
}

#[tokio::test]
async fn a_type_that_no_job_and_no_actor_has_any_more_is_given_up_and_can_come_back() {
    let world = World::new();
    let life = Life::of("python-default-1");
    world
        .store
        .actors()
        .appear(&life.actor, &life.presence(), RETENTION, None)
        .await
        .expect("appearing");
    for name in ["a", "b"] {
        world.accepts(&[JobBuilder::new(name, "1").id(name).build().expect("legal")]).await;
        let actor = Life::of(&format!("{name}-default-1"));
        let id = world.claim(&actor, 1).await.attempts.remove(0).id;
        let done = Verdict::Finished { output: "".into(), exit_code: None };
        world.finish(&actor, &id, done).await;
    }
    world.store.stats().sample(SAMPLED).await.expect("a sample");
    assert_eq!(types(&world), ["a", "b", "python"], "retention keeps their jobs");
    let id = "a".parse().expect("legal");
    world.store.jobs().delete(&id, RETENTION).await.expect("deleting");
    world.store.stats().sample(SAMPLED).await.expect("a sample");
    assert_eq!(types(&world), ["b", "python"], "an actor keeps its type");
    let ttl = |world: &World| world.redis.ttl(&keys::stats("a"));
    assert!(ttl(&world) > 0, "its counters go too");
    world.accepts(&[JobBuilder::new("a", "1").build().expect("legal")]).await;
    assert_eq!((types(&world).len(), ttl(&world)), (3, -1));
    assert_eq!(world.count("a", "submitted"), 2, "it has the counters it had");
}

#[test]
fn a_flood_of_garbage_costs_good_jobs_no_more_than_the_work_of_skipping_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let garbage: Vec<String> = (0..100_000).map(|n| format!("garbage{n}")).collect();
    for some in garbage.chunks(10_000) {
        redis.push(&keys::work("type:osis"), some);
    }
    hero.run(&["submit", "-t", "osis", "--id", "good", "-e", "1"]).code(0);
    let supervisor = hero.supervisor().start();
    let began = Instant::now();
    let osis = hero.actor("osis-default-1").start();
    wait_until("the good job has ended", || {
        redis.field(&keys::job("good"), "status").as_deref() == Some("finished")
    });
    let took = began.elapsed();
    let log = format!("{}{}", osis.err(), supervisor.err());
    let lines = log.lines().filter(|line| line.contains("skipped ids")).count();
    // Each of the two processes tells of it once a second.
    let most = 2 * (took.as_secs() + 2);
    assert!(lines >= 1 && lines as u64 <= most, "{lines} lines in {took:?}");
    assert!(log.len() < 20_000, "the log is short");
    assert!(took < Duration::from_secs(20), "{took:?}");
}
