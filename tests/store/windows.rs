//! Windows of graphs and batches: how many of their jobs run at once, and after how many failures no other starts.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::graph::{GraphCallback, GraphKind, GraphState};
use hero::proto::job::{Job, JobId, JobStatus};
use hero::proto::window::{FailureBound, GraphWindow, StopAfter};
use hero::store::{BatchOutcome, NewGraph, Verdict};

use crate::support::{Life, RETENTION, World, ids, job, keys, queue};

pub(super) fn id(text: &str) -> JobId {
    text.parse().expect("a legal id")
}

fn window(at_a_time: Option<u32>, stop_after: &str) -> GraphWindow {
    GraphWindow { at_a_time, stop_after: stop_after.parse().ok(), pause_after: None }
}

pub(super) fn new_graph(kind: GraphKind, window: GraphWindow) -> NewGraph {
    NewGraph { id: id("g"), kind, window, ..NewGraph::default() }
}

/// A job of `g`.
pub(super) fn member(name: &str) -> Job {
    Job { graph_id: Some(id("g")), ..job(name) }
}

fn after(name: &str, other: &str) -> Job {
    let job = JobBuilder::new("osis", "1").id(name).after(other).build().expect("a legal job");
    Job { graph_id: Some(id("g")), ..job }
}

pub(super) fn numbered(number: usize) -> Vec<Job> {
    (0..number).map(|n| member(&format!("j{n:04}"))).collect()
}

/// Submits jobs as the graph `g`.
pub(super) async fn graph(world: &World, jobs: &[Job], window: GraphWindow) {
    submit_graph(world, jobs, &new_graph(GraphKind::Graph, window)).await;
}

async fn submit_graph(world: &World, jobs: &[Job], new: &NewGraph) {
    let submitted = world.store.batches().submit(jobs, Some(new), RETENTION).await;
    assert_eq!(submitted.expect("submitting"), BatchOutcome::Accepted);
    world.check();
}

pub(super) fn done() -> Verdict {
    Verdict::Finished { output: "".into(), exit_code: None }
}

pub(super) fn failed() -> Verdict {
    Verdict::Error { error: "no".to_owned(), exit_code: None, dead: true }
}

pub(super) fn again() -> Verdict {
    let delay = Duration::ZERO;
    Verdict::Retry { error: "no".to_owned(), exit_code: None, delay }
}

pub(super) async fn claimed(world: &World, life: &Life) -> Vec<String> {
    let attempts = world.claim(life, 9).await.attempts;
    ids(&attempts).into_iter().map(ToOwned::to_owned).collect()
}

pub(super) async fn settle(world: &World) {
    while world.store.schedule().settle(RETENTION).await.expect("settling") {}
    world.check();
}

pub(super) async fn progress(world: &World) -> String {
    world.check();
    world
        .store
        .graphs()
        .get(&id("g"))
        .await
        .expect("reading")
        .expect("it exists")
        .counts
        .to_string()
}

fn error(world: &World, id: &str) -> Option<String> {
    world.field(id, "error")
}

/// Lets every limit that holds jobs look for free slots.
pub(super) async fn tend(world: &World) {
    for limit in world.redis.members(&keys::limits()) {
        world.redis.put(&keys::limits(), 1, &limit);
    }
    world.store.limits().tend(100).await.expect("looking after limits");
    world.check();
}

#[tokio::test]
async fn jobs_that_have_not_started_are_cancelled_with_the_last_failure_that_is_allowed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs = ["a", "b", "c", "d"].map(member);
    let waits = [after("e", "c"), after("f", "e")];
    let later = JobBuilder::new("osis", "1").id("later").delay(Duration::from_mins(15));
    let later = Job { graph_id: Some(id("g")), ..later.build().expect("a legal job") };
    graph(&world, &[&jobs[..], &waits, &[later]].concat(), window(None, "2")).await;
    assert_eq!(ids(&world.claim(&life, 3).await.attempts), ["a", "b", "c"]);
    world.finish(&life, &id("a"), failed()).await;
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 7 done, 1 failed, 6 waiting");
    world.finish(&life, &id("b"), failed()).await;
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 7 done, 2 failed, 4 cancelled, 1 waiting");
    for name in ["d", "e", "f", "later"] {
        let text = error(&world, name);
        assert_eq!(text.as_deref(), Some("stopped after 2 failures of graph g"), "{name}");
    }
    assert_eq!(world.status("c"), JobStatus::Started, "what runs ends by itself");
    world.finish(&life, &id("c"), done()).await;
    assert_eq!(progress(&world).await, "1 of 7 done, 2 failed, 4 cancelled");
    assert_eq!(world.count("osis", "cancelled"), 4);
}

#[tokio::test]
async fn no_job_starts_after_the_step_that_stops_a_large_graph() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(1000), window(None, "1")).await;
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["j0000"]);
    world.finish(&life, &id("j0000"), failed()).await;
    let progress_before = progress(&world).await;
    assert_eq!(progress_before, "0 of 1000 done, 1 failed, 800 cancelled, 199 waiting");
    assert_eq!(claimed(&world, &life).await, [] as [&str; 0]);
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 1000 done, 1 failed, 999 cancelled");
    assert_eq!(error(&world, "j0999").as_deref(), Some("stopped after 1 failure of graph g"));
    assert!(world.redis.all("LIMIT_HELD").is_empty() && world.redis.all("HELD").is_empty());
    assert_eq!(world.redis.field(&keys::keys().graph(&id("g")), "stopping"), None);
}

#[tokio::test]
async fn attempt_that_is_retried_is_no_failure_and_none_follows_the_stop() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &["a", "b", "c", "d", "e"].map(member), window(None, "1")).await;
    assert_eq!(ids(&world.claim(&life, 4).await.attempts), ["a", "b", "c", "d"]);
    world.finish(&life, &id("a"), again()).await;
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 5 done, 5 waiting");
    world.finish(&life, &id("b"), failed()).await;
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 5 done, 1 failed, 2 cancelled, 2 waiting");
    let stopped = Some("stopped after 1 failure of graph g".to_owned());
    assert_eq!(error(&world, "a"), stopped, "it waited for its next attempt");
    world.finish(&life, &id("c"), again()).await;
    assert_eq!((world.status("c"), error(&world, "c").as_deref()), (JobStatus::Error, Some("no")));
    let (wait, exit_code, delay) = (r#"{"event":"go"}"#.to_owned(), None, Duration::from_secs(9));
    world.finish(&life, &id("d"), Verdict::Wait { wait, exit_code, delay }).await;
    assert_eq!(error(&world, "d"), stopped);
    assert_eq!(progress(&world).await, "0 of 5 done, 2 failed, 3 cancelled");
}

#[tokio::test]
async fn job_of_a_dead_actor_does_not_run_again_in_a_stopped_graph() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let dead = Life::of("osis-default-2");
    graph(&world, &["a", "b"].map(member), window(None, "1")).await;
    assert_eq!(ids(&world.claim(&dead, 1).await.attempts), ["a"]);
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["b"]);
    world.finish(&life, &id("b"), failed()).await;
    settle(&world).await;
    world.dies(&dead, 3).await;
    assert_eq!(claimed(&world, &life).await, [] as [&str; 0]);
    settle(&world).await;
    assert_eq!(error(&world, "a").as_deref(), Some("stopped after 1 failure of graph g"));
}

#[tokio::test]
async fn share_of_failures_is_of_all_jobs_and_rounded_up() {
    for (jobs, percent, allowed) in [(21, 5, 2), (20, 5, 1), (3, 1, 1), (4, 100, 4)] {
        let (world, life) = (World::new(), Life::of("osis-default-1"));
        let bound = FailureBound::Share(percent);
        let stop_after = Some(StopAfter { bound, stops_running: false });
        let window = GraphWindow { stop_after, ..GraphWindow::default() };
        graph(&world, &numbered(jobs), window).await;
        for number in 0..allowed {
            let own = format!("j{number:04}");
            assert_eq!(ids(&world.claim(&life, 1).await.attempts), [&own], "{percent}% of {jobs}");
            world.finish(&life, &id(&own), failed()).await;
        }
        assert_eq!(claimed(&world, &life).await, [] as [&str; 0], "{percent}% of {jobs}");
    }
}

#[tokio::test]
async fn share_of_a_batch_counts_once_it_has_all_of_its_jobs() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let new = new_graph(GraphKind::Batch, window(None, "50%"));
    assert!(world.store.graphs().open(&new).await.expect("opening"));
    world.accepts(&numbered(1)).await;
    world.claim(&life, 9).await;
    world.finish(&life, &id("j0000"), failed()).await;
    world.accepts(&numbered(5)[1..]).await;
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["j0001"], "1 of 5 failed");
    world.finish(&life, &id("j0001"), failed()).await;
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["j0002"]);
    world.finish(&life, &id("j0002"), failed()).await;
    world.store.graphs().close(&id("g"), RETENTION).await.expect("closing");
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 5 done, 3 failed, 2 cancelled");
    assert_eq!(error(&world, "j0004").as_deref(), Some("stopped after 3 failures of batch g"));
}

#[tokio::test]
async fn job_that_is_added_to_a_stopped_batch_is_cancelled() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let new = new_graph(GraphKind::Batch, window(None, "1"));
    assert!(world.store.graphs().open(&new).await.expect("opening"));
    world.accepts(&[member("a")]).await;
    world.claim(&life, 9).await;
    world.finish(&life, &id("a"), failed()).await;
    settle(&world).await;
    world.accepts(&[member("b"), member("c")]).await;
    assert_eq!(claimed(&world, &life).await, [] as [&str; 0]);
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 3 done, 1 failed, 2 cancelled");
}

#[tokio::test]
async fn retry_of_a_stopped_graph_counts_failures_from_zero() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &["a", "b", "c", "d"].map(member), window(None, "2")).await;
    world.claim(&life, 2).await;
    for name in ["a", "b"] {
        world.finish(&life, &id(name), failed()).await;
    }
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 4 done, 2 failed, 2 cancelled");
    for name in ["a", "b", "c", "d"] {
        world.store.jobs().retry(&id(name)).await.expect("retrying");
    }
    assert_eq!(claimed(&world, &life).await, ["a", "b", "c", "d"]);
    world.finish(&life, &id("c"), failed()).await;
    world.finish(&life, &id("a"), again()).await;
    assert_eq!(progress(&world).await, "0 of 4 done, 1 failed, 3 waiting");
    world.finish(&life, &id("d"), failed()).await;
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 4 done, 2 failed, 1 cancelled, 1 waiting");
}

#[tokio::test]
async fn callback_of_a_stopped_graph_runs() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let mut new = new_graph(GraphKind::Graph, window(Some(1), "1"));
    new.callbacks.insert(GraphCallback::Failure, job("any"));
    submit_graph(&world, &["a", "b"].map(member), &new).await;
    assert_eq!(claimed(&world, &life).await, ["a"]);
    world.finish(&life, &id("a"), failed()).await;
    settle(&world).await;
    let callbacks = claimed(&world, &life).await;
    assert!(callbacks.len() == 1 && callbacks[0].starts_with("callback-"), "{callbacks:?}");
}

#[tokio::test]
async fn no_more_jobs_of_a_graph_run_at_once_than_its_window() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(5), window(Some(2), "")).await;
    world.accepts(&[job("other")]).await;
    assert_eq!(claimed(&world, &life).await, ["j0000", "j0001", "other"]);
    assert_eq!(world.field("j0002", "held_by").as_deref(), Some("@graph=g"));
    let mut seen = vec!["j0000".to_owned(), "j0001".to_owned()];
    // An attempt that is retried gives its slot to the next.
    world.finish(&life, &id("j0000"), again()).await;
    for _ in 0..4 {
        world.store.schedule().dispatch_due(9, RETENTION).await.expect("dispatching");
        let next = claimed(&world, &life).await;
        assert_eq!(next.len(), 1, "one is free: {next:?}");
        seen.push(next[0].clone());
        world.finish(&life, &id(&next[0]), done()).await;
    }
    assert_eq!(seen, ["j0000", "j0001", "j0002", "j0003", "j0004", "j0000"]);
    world.finish(&life, &id("j0001"), done()).await;
    assert_eq!(progress(&world).await, "5 of 5 done");
    assert!(world.redis.all("LIMIT_RUNNING").is_empty());
}

#[tokio::test]
async fn claim_holds_the_jobs_of_a_large_graph_in_steps() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(1000), window(Some(1), "")).await;
    world.hold_lease(&life);
    let held_key = format!("{}@graph=g", keys::prefix("LIMIT_HELD"));
    let held = || world.redis.members(&held_key).len();
    let mut claimed = world.try_claim(&life, 9).await.expect("claiming");
    assert_eq!((ids(&claimed.attempts), claimed.more, held()), (vec!["j0000"], true, 100));
    while claimed.more {
        claimed = world.try_claim(&life, 9).await.expect("claiming");
        assert!(claimed.attempts.is_empty());
    }
    assert_eq!(held(), 999);
    world.check();
}

#[tokio::test]
async fn slot_of_a_dead_actor_is_free_once_its_job_is_in_its_queue() {
    let world = World::new();
    let (dead, life) = (Life::of("osis-default-1"), Life::of("osis-default-2"));
    graph(&world, &numbered(4), window(Some(2), "")).await;
    assert_eq!(claimed(&world, &dead).await, ["j0000", "j0001"]);
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, [] as [&str; 0], "both run still, as far as is known");
    world.dies(&dead, 3).await;
    assert_eq!(claimed(&world, &life).await, ["j0000", "j0001"]);
    assert_eq!(claimed(&world, &life).await, [] as [&str; 0]);
    world.give_back(&life, &[(id("j0000"), Some(queue("type:osis")))]).await;
    assert_eq!(claimed(&world, &life).await.len(), 1);
}

#[tokio::test]
async fn held_jobs_of_a_graph_are_stopped_deleted_and_purged() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(6), window(Some(1), "")).await;
    assert_eq!(claimed(&world, &life).await, ["j0000"]);
    world.store.jobs().stop(&id("j0001"), RETENTION, None).await.expect("stopping");
    world.store.jobs().delete(&id("j0002"), RETENTION).await.expect("deleting");
    world.finish(&life, &id("j0000"), done()).await;
    assert_eq!(claimed(&world, &life).await, ["j0003"]);
    world.store.queues().purge(&queue("type:osis"), RETENTION).await.expect("purging");
    assert_eq!(progress(&world).await, "1 of 6 done, 4 cancelled, 1 waiting");
    assert!(world.redis.all("LIMIT_HELD").is_empty());
}

#[tokio::test]
async fn jobs_of_a_window_are_not_claimed_ahead() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(3), window(None, "1")).await;
    world.hold_lease(&life);
    let claimed = world.claim_ahead(&life, (3, 2)).await.expect("claiming");
    assert_eq!(ids(&claimed.attempts), ["j0000"]);
}

#[tokio::test]
async fn window_is_changed_while_its_graph_runs() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(9), GraphWindow::default()).await;
    assert_eq!(ids(&world.claim(&life, 2).await.attempts), ["j0000", "j0001"]);
    let edit = async |at_a_time, stop_after| {
        let edited = world.store.graphs().edit(&id("g"), window(at_a_time, stop_after)).await;
        assert!(edited.expect("changing"));
        world.check();
    };
    edit(Some(1), "").await;
    assert_eq!(claimed(&world, &life).await, ["j0002"], "those that run have no slot");
    edit(Some(3), "").await;
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, ["j0003", "j0004"]);
    edit(Some(1), "").await;
    world.finish(&life, &id("j0002"), failed()).await;
    world.finish(&life, &id("j0003"), done()).await;
    tend(&world).await;
    assert_eq!(claimed(&world, &life).await, [] as [&str; 0]);
    world.finish(&life, &id("j0004"), failed()).await;
    assert_eq!(claimed(&world, &life).await.len(), 1);
    edit(Some(0), "3").await;
    let info = world.store.graphs().get(&id("g")).await.expect("reading").expect("it exists");
    assert_eq!(info.window, window(None, "3"));
    world.finish(&life, &id("j0000"), failed()).await;
    settle(&world).await;
    assert_eq!(progress(&world).await, "1 of 9 done, 3 failed, 3 cancelled, 2 waiting");
    assert!(!world.store.graphs().edit(&id("none"), window(Some(1), "")).await.expect("changing"));
}

#[tokio::test]
async fn bound_that_is_already_reached_stops_the_graph_at_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(3), GraphWindow::default()).await;
    world.claim(&life, 1).await;
    world.finish(&life, &id("j0000"), failed()).await;
    world.store.graphs().edit(&id("g"), window(None, "1")).await.expect("changing");
    assert_eq!(claimed(&world, &life).await, [] as [&str; 0]);
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 3 done, 1 failed, 2 cancelled");
}

#[tokio::test]
async fn job_that_only_names_a_graph_takes_none_of_its_slots_and_is_not_stopped_with_it() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &numbered(3), window(Some(1), "1")).await;
    world.redis.push_job("osis", "stranger", "1");
    world.redis.set_job("stranger", "graph_id g");
    let mut started = claimed(&world, &life).await;
    started.sort_unstable();
    assert_eq!(started, ["j0000", "stranger"]);
    world.finish(&life, &id("stranger"), failed()).await;
    settle(&world).await;
    assert_eq!(progress(&world).await, "0 of 3 done, 3 waiting");
}

#[tokio::test]
async fn failure_of_a_job_that_may_fail_counts_for_nothing() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let may_fail = |name: &str| {
        let job = JobBuilder::new("osis", "1").id(name).may_fail(true).build();
        Job { graph_id: Some(id("g")), ..job.expect("a legal job") }
    };
    graph(&world, &[may_fail("a"), may_fail("b"), member("c")], window(None, "1")).await;
    assert_eq!(ids(&world.claim(&life, 2).await.attempts), ["a", "b"]);
    world.finish(&life, &id("a"), failed()).await;
    assert_eq!(progress(&world).await, "1 of 3 done, 2 waiting");
    world.store.jobs().retry(&id("a")).await.expect("retrying");
    assert_eq!(progress(&world).await, "0 of 3 done, 3 waiting");
    assert_eq!(claimed(&world, &life).await, ["c", "a"]);
    world.finish(&life, &id("a"), failed()).await;
    world.store.jobs().stop(&id("b"), RETENTION, None).await.expect("stopping");
    world.finish(&life, &id("c"), done()).await;
    world.finish(&life, &id("b"), failed()).await;
    let info = world.store.graphs().get(&id("g")).await.expect("reading").expect("it exists");
    assert_eq!((info.counts.state(), info.counts.finished), (GraphState::Finished, 3));
}
