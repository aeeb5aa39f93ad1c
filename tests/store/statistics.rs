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
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert!(world.store.queues().states([].into()).await.expect("listing").is_empty());
    let back = [(own, None)];
    world.give_back(&life, &back).await;
    assert_eq!(world.store.queues().states([].into()).await.expect("listing").len(), 1);
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(world.store.queues().states([].into()).await.expect("listing").len(), 1);
}

#[tokio::test]
async fn type_is_counted_while_its_jobs_wait_for_a_first_actor() {
    let world = World::new();
    world.accepts(&[job("a")]).await;
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(world.store.jobs().types().await.expect("types"), [script_type("osis")]);
}

#[tokio::test]
async fn popped_job_without_a_claim_keeps_its_queue_listed() {
    let world = World::new();
    world.accepts(&[job("a")]).await;
    world.redis.pop(&keys::work("type:osis"));
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(world.store.queues().states([].into()).await.expect("listing").len(), 1);
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
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    world.check();
    assert_eq!(world.redis.list(&keys::dead("osis")), ["b"]);
    assert_eq!(world.indexes_of("c"), [] as [&str; 0]);
}

#[tokio::test]
async fn throughput_is_what_ended_between_two_samples() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "before", done()).await;
    assert_eq!(world.store.stats().sample(Duration::ZERO).await.expect("sampling").types, 1);
    let hour = Duration::from_hours(1);
    assert_eq!(
        world.store.stats().sample(hour).await.expect("sampling").types,
        0,
        "it was sampled just now"
    );
    for name in ["a", "b", "c"] {
        world.ended(&life, name, done()).await;
    }
    world.accepts(&[job("d")]).await;
    wait_until("the next sample is due", || {
        let (s, us): (i64, i64) = world.redis.ask("TIME");
        let at = world.redis.field(&keys::rate("osis"), "at_us").expect("sampled");
        s * 1_000_000 + us > at.parse::<i64>().expect("a number") + 1000
    });
    assert_eq!(
        world.store.stats().sample(Duration::from_millis(1)).await.expect("sampling").types,
        1
    );
    let states = world.store.queues().states([].into()).await.expect("listing");
    let rate = states[0].type_throughput_per_s.expect("it was sampled");
    assert!(rate > 0.0, "{rate}");
    let counters = world.store.stats().counters_of(&[script_type("osis")]).await.expect("counting");
    assert_eq!((counters[0]["submitted"], counters[0]["finished"]), (5, 4));
}

#[tokio::test]
async fn last_hour_begins_at_the_newest_sample_that_is_an_hour_old() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let hour = keys::hour("osis");
    world.ended(&life, "a", done()).await;
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    let first = world.redis.list(&hour);
    assert_eq!(first.len(), 1);
    assert!(first[0].ends_with(" 0 0 0"), "a new type begins at zero: {first:?}");
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    assert_eq!(world.redis.list(&hour).len(), 1, "one sample in a minute");

    world.redis.delete(&hour);
    let (s, us): (u64, u64) = world.redis.ask("TIME");
    let ago = |minutes: u64| (s - 60 * minutes) * 1_000_000 + us;
    let samples = [(121, 0), (61, 1), (59, 2), (2, 3)];
    let samples = samples.map(|(minutes, failed)| format!("{} 0 {failed} 0", ago(minutes)));
    world.redis.push(&hour, &samples);
    world.redis.set_field(&keys::stats("osis"), "failed", 5);
    world.store.stats().sample(Duration::ZERO).await.expect("sampling");
    let kept = world.redis.list(&hour);
    assert_eq!(kept[..3], samples[1..], "{kept:?}");
    assert!(kept[3].ends_with(" 1 5 0") && kept.len() == 4, "{kept:?}");
    let states = world.store.stats().type_states().await.expect("counting");
    let hour = states[0].hour.expect("it was sampled");
    assert_eq!((hour.finished, hour.failed), (1, 4));
    assert!(hour.since >= Duration::from_mins(61), "{:?}", hour.since);
}

#[tokio::test]
async fn state_of_the_namespace_costs_its_queues_and_not_its_jobs() {
    const QUEUES: usize = 600;
    let world = World::new();
    let job = |queue: usize, number: usize| {
        let job = hero::client::JobBuilder::new("osis", "1").group(&format!("g{queue}"));
        let job = job.id(&format!("{queue}-{number}"));
        (if number == 1 { job.delay(Duration::from_hours(1)) } else { job }).build().expect("legal")
    };
    let read = async || {
        world.redis.run("CONFIG RESETSTAT");
        let queues = world.store.queues().states([].into()).await.expect("listing").len();
        let types = world.store.stats().type_states().await.expect("counting");
        world.store.redis().state(false).await.expect("asking");
        let stats: String = world.redis.ask("INFO stats");
        let line = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        (queues, types[0].scheduled, line.map(str::to_owned))
    };
    let mut seen = Vec::new();
    for round in [0..2, 2..12] {
        let jobs: Vec<_> =
            (0..QUEUES).flat_map(|queue| round.clone().map(move |n| job(queue, n))).collect();
        for some in jobs.chunks(500) {
            world
                .store
                .jobs()
                .submit(some, true, Duration::from_hours(1))
                .await
                .expect("submitting");
        }
        seen.push(read().await);
    }
    assert_eq!((seen[0].0, seen[0].1), (QUEUES, QUEUES as u64));
    assert_eq!(seen[0], seen[1], "six times the jobs cost the same");
}
