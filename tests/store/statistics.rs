//! Samples of throughput, and the removal of unused entries.

use std::time::Duration;

use hero::store::Verdict;

use crate::support::{Life, World, job, keys, script_type, wait_until};

fn done() -> Verdict {
    Verdict::Finished { output: "".into(), exit_code: None }
}

#[tokio::test]
async fn a_queue_that_is_empty_is_retired_and_comes_back_with_its_next_job() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.store.sample(Duration::ZERO).await.expect("sampling");
    assert!(world.store.queue_states().await.expect("listing").is_empty());
    let back = [(own, None)];
    world.store.requeue(&life.boot, &back).await.expect("giving back");
    assert_eq!(world.store.queue_states().await.expect("listing").len(), 1);
    world.store.sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(world.store.queue_states().await.expect("listing").len(), 1);
}

#[tokio::test]
async fn popped_job_without_a_claim_keeps_its_queue_listed() {
    let world = World::new();
    world.accepts(&[job("a")]).await;
    world.redis.pop(&keys::work("type:osis"));
    world.store.sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(world.store.queue_states().await.expect("listing").len(), 1);
}

#[tokio::test]
async fn entries_of_expired_jobs_are_trimmed_from_indexes_and_dead_letters() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let dead = || Verdict::Error { error: String::new(), exit_code: None, dead: true };
    for name in ["a", "b"] {
        world.ended(&life, name, dead()).await;
    }
    world.ended(&life, "c", done()).await;
    world.redis.delete(&keys::job("a"));
    world.redis.delete(&keys::job("c"));
    world.redis.put(&keys::index("error", "osis"), 1, "a");
    world.redis.put(&keys::index("finished", "osis"), 1, "c");
    world.store.sample(Duration::ZERO).await.expect("sampling");
    world.check();
    assert_eq!(world.redis.list(&keys::dead("osis")), ["b"]);
    assert_eq!(world.indexes_of("c"), [] as [&str; 0]);
}

#[tokio::test]
async fn throughput_is_what_ended_between_two_samples() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "before", done()).await;
    assert_eq!(world.store.sample(Duration::ZERO).await.expect("sampling"), 1);
    let hour = Duration::from_hours(1);
    assert_eq!(world.store.sample(hour).await.expect("sampling"), 0, "it was sampled just now");
    for name in ["a", "b", "c"] {
        world.ended(&life, name, done()).await;
    }
    world.accepts(&[job("d")]).await;
    wait_until("the next sample is due", || {
        let (s, us): (i64, i64) = world.redis.ask("TIME");
        let at = world.redis.field(&keys::rate("osis"), "at_us").expect("sampled");
        s * 1_000_000 + us > at.parse::<i64>().expect("a number") + 1000
    });
    assert_eq!(world.store.sample(Duration::from_millis(1)).await.expect("sampling"), 1);
    let states = world.store.queue_states().await.expect("listing");
    let rate = states[0].type_throughput_per_s.expect("it was sampled");
    assert!(rate > 0.0, "{rate}");
    let counters = world.store.counters(&script_type("osis")).await.expect("counting");
    assert_eq!((counters["submitted"], counters["finished"]), (5, 4));
}
