//! The pause of a graph or batch after its first jobs: a canary, then the others.

use hero::proto::graph::GraphKind;
use hero::proto::job::JobStatus;
use hero::proto::window::GraphWindow;
use hero::store::BatchOutcome;

use super::windows::{
    again, claimed, done, failed, graph, id, member, new_graph, numbered, progress, settle, tend,
};
use crate::support::{Life, RETENTION, World, ids, keys, queue};

const NONE: [&str; 0] = [];

fn window(at_a_time: Option<u32>, pause: &str) -> GraphWindow {
    let pause_after = Some(pause.parse().expect("a legal pause"));
    GraphWindow { at_a_time, stop_after: None, pause_after }
}

async fn is_paused(world: &World) -> bool {
    world.store.graphs().get(&id("g")).await.expect("reading").expect("it exists").paused
}

fn field_of_graph(world: &World, name: &str) -> Option<String> {
    world.redis.field(&keys::keys().graph(&id("g")), name)
}

/// Lets the time of the pause pass.
fn let_pass(world: &World) {
    let key = keys::keys().graph(&id("g"));
    world.redis.set_field(&key, "goes_on_us", "1");
}

#[tokio::test]
async fn no_second_job_starts_before_the_graph_is_continued() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(300), window(None, "1 tell")).await;
    assert_eq!(claimed(&world, &life).await, ["j0000"]);
    assert_eq!(world.field("j0001", "held_by").as_deref(), Some("@paused=g"));
    for _ in 0..3 {
        tend(&world).await;
        assert_eq!(claimed(&world, &life).await, NONE);
    }
    world.finish(&life, &id("j0000"), done()).await;
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, NONE, "nobody has told it");
    assert!(is_paused(&world).await && field_of_graph(&world, "goes_on_us").is_none());

    assert_eq!(world.store.graphs().end_pause(&id("g")).await.expect("telling"), Some(true));
    let went_on = field_of_graph(&world, "goes_on_us");
    assert_eq!(world.store.graphs().end_pause(&id("g")).await.expect("telling"), Some(true));
    assert_eq!(field_of_graph(&world, "goes_on_us"), went_on, "a repeat changes nothing");
    assert!(!is_paused(&world).await);
    tend(&world).await;
    let mut started = 1;
    while started < 300 {
        let next = claimed(&world, &life).await;
        assert_eq!(next.first(), Some(&format!("j{started:04}")), "in their order");
        for name in &next {
            world.finish(&life, &id(name), done()).await;
        }
        started += next.len();
    }
    assert_eq!(progress(&world).await, "300 of 300 done");
    assert!(world.redis.all("LIMIT_HELD").is_empty() && world.redis.all("HELD").is_empty());
}

#[tokio::test]
async fn others_start_once_the_first_have_ended_well_and_the_time_is_over() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(5), window(None, "2 10m")).await;
    assert_eq!(claimed(&world, &life).await, ["j0000", "j0001"]);
    world.finish(&life, &id("j0001"), done()).await;
    assert_eq!(field_of_graph(&world, "goes_on_us"), None, "one of them runs");
    world.finish(&life, &id("j0000"), done()).await;
    let goes_on: u64 =
        field_of_graph(&world, "goes_on_us").and_then(|us| us.parse().ok()).expect("a time");
    let ended = world.store.now().await.expect("the time").as_microsecond().unsigned_abs();
    assert!((ended + 590_000_000..=ended + 600_000_000).contains(&goes_on), "{goes_on} {ended}");
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, NONE);
    assert!(is_paused(&world).await);
    let_pass(&world);
    assert!(!is_paused(&world).await);
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, ["j0002", "j0003", "j0004"]);
}

#[tokio::test]
async fn pause_lasts_for_its_own_time_after_the_clock_was_set_back() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(2), window(None, "1 10m")).await;
    assert_eq!(claimed(&world, &life).await, ["j0000"]);
    world.finish(&life, &id("j0000"), done()).await;
    tend(&world).await;
    let now = world.store.now().await.expect("the time").as_microsecond();
    let key = keys::keys().graph(&id("g"));
    world.redis.set_field(&key, "goes_on_us", now + 36_000_000_000);
    assert_eq!(claimed(&world, &life).await, NONE);
    let goes_on: i64 =
        field_of_graph(&world, "goes_on_us").and_then(|us| us.parse().ok()).expect("a time");
    assert!((now..now + 660_000_000).contains(&goes_on), "{goes_on} {now}");
}

#[tokio::test]
async fn next_attempt_of_the_first_job_runs_and_no_other_does_in_its_place() {
    let world = World::new();
    let (dead, life) = (Life::of("osis-default-1"), Life::of("osis-default-2"));
    graph(&world, &numbered(4), window(None, "1 tell")).await;
    assert_eq!(claimed(&world, &dead).await, ["j0000"]);
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, NONE);
    world.dies(&dead, 3).await;
    assert_eq!(claimed(&world, &life).await, ["j0000"], "of a dead actor");
    world.finish(&life, &id("j0000"), again()).await;
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, NONE, "it waits for its next attempt");
    world.store.schedule().dispatch_due(9, RETENTION).await.expect("dispatching");
    assert_eq!(claimed(&world, &life).await, ["j0000"]);
    world.give_back(&life, &[(id("j0000"), Some(queue("type:osis")))]).await;
    assert_eq!(claimed(&world, &life).await, ["j0000"]);
    assert_eq!(field_of_graph(&world, "first").as_deref(), Some("j0000"));
}

#[tokio::test]
async fn first_jobs_keep_their_slots_before_those_that_pause() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(9), window(Some(1), "2 tell")).await;
    assert_eq!(claimed(&world, &life).await, ["j0000"]);
    world.finish(&life, &id("j0000"), again()).await;
    assert_eq!(claimed(&world, &life).await, ["j0001"], "the second of the first");
    world.store.schedule().dispatch_due(9, RETENTION).await.expect("dispatching");
    assert_eq!(claimed(&world, &life).await, NONE, "one runs");
    world.finish(&life, &id("j0001"), done()).await;
    for _ in 0..9 {
        if world.status("j0000") == JobStatus::Started {
            break;
        }
        assert!(claimed(&world, &life).await.iter().all(|name| name == "j0000"));
        tend(&world).await;
    }
    world.finish(&life, &id("j0000"), done()).await;
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, NONE);
    assert_eq!(progress(&world).await, "2 of 9 done, 7 waiting");
}

#[tokio::test]
async fn graph_stays_paused_after_a_failure_until_it_is_continued_or_retried() {
    for is_retried in [false, true] {
        let (world, life) = (World::new(), Life::of("osis-default-1"));
        graph(&world, &numbered(3), window(None, "1 10m")).await;
        assert_eq!(claimed(&world, &life).await, ["j0000"]);
        world.finish(&life, &id("j0000"), failed()).await;
        tend(&world).await;
        assert_eq!(claimed(&world, &life).await, NONE);
        assert!(is_paused(&world).await && field_of_graph(&world, "goes_on_us").is_none());
        if is_retried {
            world.store.jobs().retry(&id("j0000")).await.expect("retrying");
            assert_eq!(claimed(&world, &life).await, ["j0000"]);
            world.finish(&life, &id("j0000"), done()).await;
            let_pass(&world);
        } else {
            world.store.graphs().end_pause(&id("g")).await.expect("telling");
        }
        tend(&world).await;
        assert_eq!(claimed(&world, &life).await, ["j0001", "j0002"]);
    }
}

#[tokio::test]
async fn failure_among_the_first_stops_a_graph_that_stops_after_one() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let window = GraphWindow { stop_after: "1".parse().ok(), ..window(None, "1 tell") };
    graph(&world, &numbered(3), window).await;
    assert_eq!(claimed(&world, &life).await, ["j0000"]);
    world.finish(&life, &id("j0000"), failed()).await;
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 3 done, 1 failed, 2 cancelled");
    assert!(world.redis.all("LIMIT_HELD").is_empty());
}

#[tokio::test]
async fn pause_is_ended_in_advance_added_and_taken_away() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(9), window(None, "1 tell")).await;
    assert_eq!(world.store.graphs().end_pause(&id("g")).await.expect("telling"), Some(true));
    assert_eq!(ids(&world.claim(&life, 2).await.attempts), ["j0000", "j0001"]);
    let edit = async |pause: &str| {
        assert!(world.store.graphs().edit(&id("g"), window(None, pause)).await.expect("changing"));
        world.check();
    };
    edit("2 tell").await;
    assert_eq!(claimed(&world, &life).await, ["j0002", "j0003"], "from now on");
    edit("0").await;
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await.len(), 5);
    assert_eq!(world.store.graphs().end_pause(&id("g")).await.expect("telling"), Some(false));
    assert_eq!(world.store.graphs().end_pause(&id("none")).await.expect("telling"), None);
}

#[tokio::test]
async fn jobs_that_a_batch_gets_while_it_pauses_wait_too() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let new = new_graph(GraphKind::Batch, window(None, "1 tell"));
    assert!(world.store.graphs().open(&new).await.expect("opening"));
    world.accepts(&[member("a")]).await;
    assert_eq!(claimed(&world, &life).await, ["a"]);
    world.accepts(&[member("b"), member("c")]).await;
    assert_eq!(claimed(&world, &life).await, NONE);
    world.finish(&life, &id("a"), done()).await;
    world.store.jobs().stop(&id("b"), RETENTION, None).await.expect("stopping");
    world.store.graphs().end_pause(&id("g")).await.expect("telling");
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, ["c"]);
    let twice = world.store.batches().submit(&[member("d")], Some(&new), RETENTION).await;
    assert_eq!(twice.expect("submitting"), BatchOutcome::GraphExists);
}
