//! Periodic jobs whose firings are batches.

use hero::proto::cron::{CatchUp, CronName, Overlap};
use hero::proto::graph::GraphKind;
use hero::proto::job::{Job, JobId};
use hero::proto::window::GraphWindow;
use hero::store::{BackfilledJob, BatchOutcome, Fired, FiredBatch, NewGraph, Verdict};
use jiff::{SignedDuration, Timestamp};

use crate::support::{Life, RETENTION, World, ids, job, keys};

const RULES: (Overlap, CatchUp) = (Overlap::Skip, CatchUp::Skip);

fn tidy() -> CronName {
    "tidy".parse().expect("legal")
}

fn second(number: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(4_000_000_000 + number)
}

fn new_graph(id: &str) -> NewGraph {
    NewGraph {
        id: id.parse().expect("legal"),
        kind: GraphKind::Batch,
        caller: "cron tidy".to_owned(),
        window: GraphWindow { at_a_time: Some(2), ..GraphWindow::default() },
        cron: Some(tidy()),
        ..NewGraph::default()
    }
}

fn copies(graph: &NewGraph, names: &[&str]) -> Vec<Job> {
    let copy = |name: &&str| Job { graph_id: Some(graph.id.clone()), ..job(name) };
    names.iter().map(copy).collect()
}

async fn fire(world: &World, at: i64, id: &str, names: &[&str]) -> Option<Fired> {
    fire_by(world, at, RULES, id, names).await
}

async fn fire_by(
    world: &World,
    at: i64,
    rules: (Overlap, CatchUp),
    id: &str,
    names: &[&str],
) -> Option<Fired> {
    let batch = fired_batch(id, names);
    let name = tidy();
    let fired = world.store.cron().fire_batch(&name, second(at), rules, &batch, RETENTION.into());
    let fired = fired.await.expect("firing");
    world.check();
    fired.ok()
}

fn fired_batch(id: &str, names: &[&str]) -> FiredBatch {
    let graph = new_graph(id);
    FiredBatch { jobs: copies(&graph, names), graph, note: "absent: web9".to_owned() }
}

fn batch(id: &str) -> Fired {
    Fired::Batch(id.parse().expect("legal"))
}

fn done() -> Verdict {
    Verdict::Finished { output: "".into(), exit_code: None }
}

async fn end_all(world: &World, life: &Life, verdict: fn() -> Verdict) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let attempts = world.claim(life, 9).await.attempts;
        let some: Vec<String> = ids(&attempts).into_iter().map(str::to_owned).collect();
        if some.is_empty() {
            return all;
        }
        for id in &some {
            world.finish(life, &id.parse::<JobId>().expect("legal"), verdict()).await;
        }
        all.extend(some);
    }
}

#[tokio::test]
async fn batch_of_a_firing_is_submitted_once_by_two_supervisors() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    assert_eq!(fire(&world, 10, "cron-tidy-1", &["a", "b", "c"]).await, Some(batch("cron-tidy-1")));
    assert_eq!(fire(&world, 10, "cron-tidy-1", &["d", "e", "f"]).await, Some(Fired::Past));
    assert_eq!(world.field("d", "status"), None);
    let graph = world.store.graphs().get(&"cron-tidy-1".parse().expect("legal")).await;
    let graph = graph.expect("reading").expect("it exists");
    assert_eq!((graph.counts.jobs, graph.window.at_a_time), (3, Some(2)));
    assert_eq!(world.claim(&life, 9).await.attempts.len(), 2, "two at a time");
    let (firing, state) = &world.store.cron().firings(&tidy(), 9).await.expect("reading")[0];
    assert_eq!((firing.batch, firing.why.as_deref()), (true, Some("absent: web9")));
    assert_eq!(*state, Some("running"));
    let last = world.store.cron().get(&tidy()).await.expect("reading").last.expect("it fired");
    assert_eq!(
        (last.id.as_str(), last.is_batch, last.status),
        ("cron-tidy-1", true, Some("running"))
    );
    assert!(world.store.cron().fired().await.expect("reading").iter().all(|of| of.is_running));
}

#[tokio::test]
async fn firing_is_left_out_until_the_batch_of_the_last_one_has_ended() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.store.cron().state(&[tidy()]).await.expect("looking");
    fire(&world, 10, "cron-tidy-1", &["a", "b"]).await;
    let first = "cron-tidy-1".parse().expect("legal");
    assert_eq!(fire(&world, 11, "cron-tidy-2", &["c", "d"]).await, Some(Fired::LeftOut(first)));
    assert_eq!(end_all(&world, &life, done).await, ["a", "b"]);
    let (firing, state) = &world.store.cron().firings(&tidy(), 9).await.expect("reading")[0];
    assert!(firing.batch && firing.why.as_deref() == Some("overlap"), "{firing:?}");
    assert_eq!(*state, Some("finished"));
    assert_eq!(fire(&world, 12, "cron-tidy-3", &["e"]).await, Some(batch("cron-tidy-3")));
}

#[tokio::test]
async fn end_of_a_batch_counts_as_the_end_of_a_firing() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let ends = async || world.store.cron().ends(&tidy()).await.expect("reading");
    let id = "cron-tidy-20260101T000000Z";
    fire(&world, 10, id, &["a", "b", "c"]).await;
    assert!(ends().await.succeeded.is_none());
    end_all(&world, &life, done).await;
    assert_eq!(ends().await.succeeded.map(|(_, of)| of).as_deref(), Some(id));
    let id = "cron-tidy-20260102T000000Z";
    fire(&world, 11, id, &["d", "e"]).await;
    let failed = || Verdict::Error { error: "no".to_owned(), exit_code: None, dead: true };
    end_all(&world, &life, failed).await;
    let (_, of, why) = ends().await.failed.expect("it failed");
    assert_eq!((of.as_str(), why.as_str()), (id, "2 of 2 jobs failed"));
}

#[tokio::test]
async fn batch_that_its_supervisor_left_after_the_decision_is_submitted_by_another() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let names: Vec<String> = (0..2500).map(|number| format!("j{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let batch = fired_batch("cron-tidy-1", &names);
    let (graph, name, retention) = (&batch.graph, tidy(), RETENTION.into());
    let firing = world.store.cron().fire_batch(&name, second(10), RULES, &batch, retention);
    let decided =
        async { while world.store.graphs().get(&graph.id).await.expect("reading").is_none() {} };
    // Its supervisor dies with the decision.
    tokio::select! { biased; () = decided => {} , fired = firing => drop(fired) };
    assert_eq!(fire(&world, 10, "cron-tidy-9", &["x"]).await, Some(Fired::Past));
    while world.store.batches().commit_left(RETENTION).await.expect("committing") {}
    world.check();
    let graph = world.store.graphs().get(&graph.id).await.expect("reading").expect("it exists");
    assert_eq!(graph.counts.waiting(), 2500);
    assert_eq!(world.redis.keys(&keys::prefix("JOB")).len(), 2500);
    assert_eq!(world.claim(&life, 9).await.attempts.len(), 2);
}

#[tokio::test]
async fn taken_id_of_a_batch_changes_nothing() {
    let world = World::new();
    let taken = NewGraph { cron: None, ..new_graph("cron-tidy-1") };
    let jobs = copies(&taken, &["other"]);
    let submitted = world.store.batches().submit(&jobs, Some(&taken), RETENTION).await;
    assert_eq!(submitted.expect("submitting"), BatchOutcome::Accepted);
    assert_eq!(fire(&world, 10, "cron-tidy-1", &["a"]).await, None);
    assert_eq!(fire(&world, 10, "cron-tidy-2", &["b"]).await, Some(batch("cron-tidy-2")));
    assert_eq!(world.store.cron().firings(&tidy(), 9).await.expect("reading").len(), 1);
}

async fn settle(world: &World) {
    while world.store.schedule().settle(RETENTION).await.expect("settling") {}
}

#[tokio::test]
async fn replaced_batch_is_stopped_with_the_jobs_that_run() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    fire(&world, 10, "cron-tidy-1", &["a", "b", "c"]).await;
    let started = world.claim(&life, 1).await.attempts;
    assert_eq!(ids(&started), ["a"], "it runs, and the others wait");
    let rules = (Overlap::Replace, CatchUp::Skip);
    let second = fire_by(&world, 11, rules, "cron-tidy-2", &["d"]).await;
    assert_eq!(second, Some(batch("cron-tidy-2")));
    settle(&world).await;
    let ends = ["b", "c"].map(|id| world.field(id, "error"));
    assert_eq!(ends, ["stopped", "stopped"].map(|text| Some(text.to_owned())));
    let told = world.redis.list(&keys::control("osis:default:1"));
    assert_eq!(told, ["a"], "the actor is told to stop it");
    world.finish(&life, &"a".parse().expect("legal"), done()).await;
    let graph = world.store.graphs().get(&"cron-tidy-1".parse().expect("legal")).await;
    let counts = graph.expect("reading").expect("it exists").counts;
    assert_eq!((counts.finished, counts.cancelled, counts.waiting()), (1, 2, 0));
    let (firing, _) = &world.store.cron().firings(&tidy(), 9).await.expect("reading")[0];
    assert_eq!(firing.why.as_deref(), Some("replaced cron-tidy-1; absent: web9"));
    assert_eq!(end_all(&world, &life, done).await, ["d"]);
    world.check();
}

#[tokio::test]
async fn firing_is_skipped_while_a_manual_run_has_not_ended() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.store.cron().state(&[tidy()]).await.expect("looking");
    let ran = fired_batch("cron-tidy-run", &["a"]);
    let submitted = world.store.batches().submit(&ran.jobs, Some(&ran.graph), RETENTION).await;
    assert_eq!(submitted.expect("submitting"), BatchOutcome::Accepted);
    world.store.cron().note_run(&tidy(), &ran.graph.id, true).await.expect("noting");
    let left_out = Some(Fired::LeftOut(ran.graph.id.clone()));
    assert_eq!(fire(&world, 10, "cron-tidy-1", &["b"]).await, left_out);
    end_all(&world, &life, done).await;
    assert_eq!(fire(&world, 11, "cron-tidy-2", &["c"]).await, Some(batch("cron-tidy-2")));
    end_all(&world, &life, done).await;
    // A single job too.
    world.accepts(&[job("d")]).await;
    let d = "d".parse().expect("legal");
    world.store.cron().note_run(&tidy(), &d, false).await.expect("noting");
    assert_eq!(fire(&world, 12, "cron-tidy-3", &["e"]).await, Some(Fired::LeftOut(d)));
}

#[tokio::test]
async fn graph_of_a_backfill_is_submitted_once() {
    let world = World::new();
    let fill = async |id: &str, names: &[&str], only_missing: bool| {
        let (graph, fired) = (fired_batch(id, names), "cron-tidy-1".parse().expect("legal"));
        let (name, fired) = (tidy(), (&fired, only_missing));
        let filled = world
            .store
            .cron()
            .backfill_graph(&name, second(10), fired, &graph, RETENTION.into())
            .await;
        filled.expect("filling").expect("it is staged")
    };
    assert_eq!(fill("cron-tidy-1-fill", &["a", "b"], true).await, BackfilledJob::Submitted);
    assert_eq!(fill("cron-tidy-1-fill", &["c"], true).await, BackfilledJob::Exists);
    assert_eq!(world.field("c", "status"), None);
    let (firing, _) = &world.store.cron().firings(&tidy(), 9).await.expect("reading")[0];
    assert!(firing.batch && firing.why.as_deref() == Some("backfill"), "{firing:?}");
    fire(&world, 10, "cron-tidy-1", &["d"]).await;
    let fired = BackfilledJob::Fired("cron-tidy-1".to_owned());
    assert_eq!(fill("cron-tidy-2-fill", &["e"], true).await, fired);
    assert_eq!(fill("cron-tidy-2-fill", &["e"], false).await, BackfilledJob::Submitted);
    world.check();
}
