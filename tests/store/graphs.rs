//! Graphs and batches as objects: their counts follow their jobs through every end, retry and deletion.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::graph::{GraphCallback, GraphJobOutcome, GraphKind, GraphState};
use hero::proto::job::{Job, JobId, JobStatus, is_id_of_callback};
use hero::store::{BatchOutcome, DeleteOutcome, NewGraph, Verdict};

use super::recovery::recover_pops;
use crate::support::{Life, RETENTION, World, ids, keys};

fn id(text: &str) -> JobId {
    text.parse().expect("a legal id")
}

/// A job of the graph `g`.
fn member(name: &str, after: &[&str]) -> Job {
    let job = JobBuilder::new("osis", "1").id(name);
    let job = after.iter().fold(job, |job, other| job.after(other));
    Job { graph_id: Some(id("g")), ..job.build().expect("a legal job") }
}

fn new_graph(kind: GraphKind) -> NewGraph {
    let name = Some("nightly".parse().expect("a legal name"));
    NewGraph { id: id("g"), kind, name, caller: "me".to_owned(), ..NewGraph::default() }
}

/// Submits jobs as the graph `g`.
async fn graph(world: &World, jobs: &[Job]) {
    let new = new_graph(GraphKind::Graph);
    let submitted = world.store.batches().submit(jobs, Some(&new), RETENTION).await;
    assert_eq!(submitted.expect("submitting"), BatchOutcome::Accepted);
    world.check();
}

/// The counts of `g` in words.
async fn progress(world: &World) -> String {
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

async fn end(world: &World, life: &Life, verdict: impl Fn() -> Verdict) {
    for attempt in world.claim(life, 9).await.attempts {
        world.finish(life, &attempt.id, verdict()).await;
    }
}

fn done() -> Verdict {
    Verdict::Finished { output: "".into(), exit_code: None }
}

fn failed() -> Verdict {
    Verdict::Error { error: "no".to_owned(), exit_code: None, dead: true }
}

#[tokio::test]
async fn counts_of_a_graph_follow_its_jobs_through_failure_retry_and_success() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &[member("c", &["b"]), member("a", &[]), member("b", &["a"])]).await;
    assert_eq!(progress(&world).await, "0 of 3 done, 3 waiting");
    end(&world, &life, done).await;
    assert_eq!(progress(&world).await, "1 of 3 done, 2 waiting");
    end(&world, &life, failed).await;
    assert_eq!(progress(&world).await, "1 of 3 done, 2 failed");
    let info = world.store.graphs().get(&id("g")).await.expect("reading").expect("it exists");
    assert_eq!((info.name.as_deref(), info.caller.as_str()), (Some("nightly"), "me"));
    assert!(info.ended_at.is_some());
    world.store.jobs().retry_with_dependents(&id("b"), &Vec::new()).await.expect("retrying");
    assert_eq!(progress(&world).await, "1 of 3 done, 2 waiting");
    let info = world.store.graphs().get(&id("g")).await.expect("reading").expect("it exists");
    assert_eq!((info.ended_at, info.counts.state()), (None, GraphState::Running));
    end(&world, &life, done).await;
    end(&world, &life, done).await;
    assert_eq!(progress(&world).await, "3 of 3 done");
    world.store.jobs().retry(&id("a")).await.expect("retrying");
    assert_eq!(progress(&world).await, "2 of 3 done, 1 waiting");
}

#[tokio::test]
async fn stopped_and_deleted_jobs_are_cancelled_and_what_has_ended_stays_counted() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(
        &world,
        &[member("a", &[]), member("b", &["a"]), member("c", &["a"]), member("d", &["c"])],
    )
    .await;
    world.store.jobs().stop(&id("b"), RETENTION, None).await.expect("stopping");
    assert_eq!(progress(&world).await, "0 of 4 done, 1 cancelled, 3 waiting");
    let gone = world.store.jobs().delete(&id("c"), RETENTION).await.expect("deleting");
    assert_eq!(gone, DeleteOutcome::Deleted);
    assert_eq!(progress(&world).await, "0 of 4 done, 1 failed, 2 cancelled, 1 waiting");
    end(&world, &life, done).await;
    assert_eq!(progress(&world).await, "1 of 4 done, 1 failed, 2 cancelled");
    world.store.jobs().delete(&id("a"), RETENTION).await.expect("deleting");
    assert_eq!(progress(&world).await, "1 of 4 done, 1 failed, 2 cancelled");
}

#[tokio::test]
async fn jobs_of_a_graph_are_listed_by_outcome_and_in_the_order_of_waiting() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs = [member("z", &["y"]), member("y", &["x"]), member("x", &[]), member("w", &[])];
    graph(&world, &jobs).await;
    let page = async |outcomes: &[GraphJobOutcome], after, limit| {
        let page = world.store.graphs().members(&id("g"), outcomes, after, limit).await;
        page.expect("listing")
    };
    let names = |page: &[hero::store::GraphMember]| -> Vec<String> {
        page.iter().map(|member| member.id.to_string()).collect()
    };
    let all = GraphJobOutcome::WORST_FIRST;
    assert_eq!(names(&page(&all, None, 9).await), ["x", "y", "z", "w"]);
    let x = world.claim(&life, 1).await;
    assert_eq!(ids(&x.attempts), ["x"]);
    world.finish(&life, &id("x"), failed()).await;
    let first = page(&all, None, 2).await;
    assert_eq!(names(&first), ["x", "y"]);
    let rest = page(&all, Some(first[1].score), 9).await;
    assert_eq!(names(&rest), ["z", "w"]);
    assert_eq!(names(&page(&[GraphJobOutcome::Waiting], None, 9).await), ["w"]);
}

#[tokio::test]
async fn batch_grows_with_each_portion_and_its_id_is_taken() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let new = new_graph(GraphKind::Batch);
    assert!(world.store.graphs().open(&new).await.expect("opening"));
    assert!(!world.store.graphs().open(&new).await.expect("opening"));
    world.accepts(&[member("a", &[]), member("b", &[])]).await;
    assert_eq!(progress(&world).await, "0 of 2 done, 2 waiting");
    end(&world, &life, done).await;
    assert_eq!(progress(&world).await, "2 of 2 done");
    world.accepts(&[member("c", &[])]).await;
    assert_eq!(progress(&world).await, "2 of 3 done, 1 waiting");
    let jobs = [Job { graph_id: Some(id("g")), ..member("d", &[]) }];
    let refused = world.store.batches().submit(&jobs, Some(&new), RETENTION).await;
    assert_eq!(refused.expect("asking"), BatchOutcome::GraphExists);
    assert!(world.field("d", "status").is_none() && world.redis.all("STAGED").is_empty());
    world.accepts(&[Job { graph_id: None, ..member("d", &[]) }]).await;
    assert_eq!(world.field("c", "graph_id").as_deref(), Some("g"));
}

#[tokio::test]
async fn graph_expires_with_its_jobs_and_not_while_one_of_them_may_run() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    graph(&world, &[member("a", &[]), member("b", &["a"])]).await;
    let ttl = || -> Vec<i64> {
        let keys = [keys::keys().graph(&id("g")), keys::keys().graph_jobs(&id("g"))];
        keys.iter().map(|key| world.redis.ask(&format!("TTL {key}"))).collect()
    };
    let retention = i64::try_from(RETENTION.as_secs()).expect("small");
    end(&world, &life, done).await;
    assert!(ttl().iter().all(|ttl| *ttl > 24 * retention), "{:?}", ttl());
    end(&world, &life, done).await;
    assert!(ttl().iter().all(|ttl| (1..=2 * retention).contains(ttl)), "{:?}", ttl());
    world.redis.delete(&keys::keys().graph(&id("g")));
    let page = world.store.graphs().list(9, None).await.expect("listing");
    assert!(page.items.is_empty() && page.next.is_none());
    assert!(world.redis.members(&keys::keys().graphs()).is_empty(), "an expired one is forgotten");
}

#[tokio::test]
async fn graphs_are_listed_page_by_page_the_newest_first() {
    let world = World::new();
    for number in 0..5 {
        let new = NewGraph { id: id(&format!("g{number}")), ..new_graph(GraphKind::Batch) };
        assert!(world.store.graphs().open(&new).await.expect("opening"));
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = world.store.graphs().list(2, after).await.expect("listing");
        seen.extend(page.items.iter().map(|graph| graph.id.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["g4", "g3", "g2", "g1", "g0"]);
}

#[tokio::test]
async fn jobs_of_a_dead_actor_stay_waiting_in_their_graph_until_they_end() {
    let world = World::new();
    let (dead, life) = (Life::of("osis-default-1"), Life::of("osis-default-2"));
    graph(&world, &[member("a", &[]), member("b", &["a"])]).await;
    assert_eq!(ids(&world.claim(&dead, 1).await.attempts), ["a"]);
    assert_eq!(progress(&world).await, "0 of 2 done, 2 waiting");
    world.set_lease(&dead, 1);
    world.store.recovery().boots(None, Duration::ZERO, 3, RETENTION).await.expect("recovering");
    assert_eq!(world.status("a"), JobStatus::Dispatched);
    assert_eq!(progress(&world).await, "0 of 2 done, 2 waiting");
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
    world.set_lease(&life, 1);
    world.store.recovery().boots(None, Duration::ZERO, 1, RETENTION).await.expect("recovering");
    assert_eq!(world.status("a"), JobStatus::Error);
    assert_eq!(progress(&world).await, "0 of 2 done, 2 failed");
}

#[tokio::test]
async fn ends_that_a_foreign_program_writes_are_counted() {
    let world = World::new();
    graph(&world, &[member("a", &[]), member("b", &[]), member("c", &["b"])]).await;
    world.redis.run(&format!("LPOP {} 2", keys::work("type:osis")));
    world.redis.set_job("a", "status finished output 42");
    world.redis.set_job("b", "status error error no");
    assert_eq!(recover_pops(&world).await.foreign, 2);
    assert_eq!(progress(&world).await, "1 of 3 done, 2 failed");
}

/// A graph with all callbacks.
fn with_callbacks() -> NewGraph {
    let callback = |of: GraphCallback| {
        let job = JobBuilder::new("python", "1").name(of.as_str()).env("A", "b");
        (of, job.build().expect("a legal job"))
    };
    NewGraph { callbacks: GraphCallback::ALL.map(callback).into(), ..new_graph(GraphKind::Graph) }
}

async fn settle(world: &World) {
    while world.store.schedule().settle(RETENTION).await.expect("settling") {}
    world.check();
}

/// Takes the callbacks that stand in their queue, by their names.
async fn called_back(world: &World, life: &Life) -> Vec<Job> {
    let claimed = world.claim(life, 9).await;
    let mut jobs: Vec<Job> = Vec::new();
    for attempt in claimed.attempts {
        jobs.push(attempt.job.expect("a legal job"));
        world.finish(life, &attempt.id, done()).await;
    }
    jobs
}

fn names(jobs: &[Job]) -> Vec<String> {
    jobs.iter().map(|job| job.spec.name.as_ref().expect("named").to_string()).collect()
}

#[tokio::test]
async fn callbacks_start_once_for_each_end_of_their_graph() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let calls = Life::of("python-default-1");
    let jobs = [member("a", &[]), member("b", &["a"])];
    let submitted = world.store.batches().submit(&jobs, Some(&with_callbacks()), RETENTION).await;
    assert_eq!(submitted.expect("submitting"), BatchOutcome::Accepted);
    end(&world, &life, done).await;
    settle(&world).await;
    assert!(called_back(&world, &calls).await.is_empty(), "the graph has not ended");
    end(&world, &life, failed).await;
    settle(&world).await;
    let called = called_back(&world, &calls).await;
    assert_eq!(names(&called), ["on_failure", "on_end"]);
    let variable = |name: &str| called[0].spec.env_vars.get(name).map(String::as_str);
    let found = ["A", "HERO_GRAPH_ID", "HERO_GRAPH_NAME", "HERO_GRAPH_STATE"].map(variable);
    assert_eq!(found, ["b", "g", "nightly", "failed"].map(Some));
    let counts = ["JOBS", "FINISHED", "FAILED", "CANCELLED"];
    let counts = counts.map(|name| variable(&format!("HERO_GRAPH_{name}")).map(str::to_owned));
    assert_eq!(counts, ["2", "1", "1", "0"].map(|text| Some(text.to_owned())));
    assert_eq!(called[0].graph_id, Some(id("g")));
    assert_eq!(world.count("python", "submitted"), 2);
    assert_eq!(progress(&world).await, "1 of 2 done, 1 failed");
    world.store.jobs().retry(&id("b")).await.expect("retrying");
    end(&world, &life, done).await;
    settle(&world).await;
    assert_eq!(names(&called_back(&world, &calls).await), ["on_success", "on_end"]);
    settle(&world).await;
    assert!(called_back(&world, &calls).await.is_empty());
    let info = world.store.graphs().get(&id("g")).await.expect("reading").expect("it exists");
    assert_eq!(
        info.callbacks.keys().copied().collect::<Vec<_>>(),
        ["on_end", "on_failure", "on_success"]
    );
}

#[tokio::test]
async fn callbacks_start_after_the_last_job_was_stopped_failed_with_another_or_died() {
    for last in ["stop", "prerequisite", "death", "delete"] {
        let (world, life) = (World::new(), Life::of("osis-default-1"));
        let calls = Life::of("python-default-1");
        let jobs = [member("a", &[]), member("b", &["a"])];
        let submitted =
            world.store.batches().submit(&jobs, Some(&with_callbacks()), RETENTION).await;
        assert_eq!(submitted.expect("submitting"), BatchOutcome::Accepted);
        match last {
            "stop" => {
                for job in ["b", "a"] {
                    world.store.jobs().stop(&id(job), RETENTION, None).await.expect("stopping");
                }
            }
            "delete" => {
                world.store.jobs().delete(&id("a"), RETENTION).await.expect("deleting");
            }
            "prerequisite" => end(&world, &life, failed).await,
            _ => {
                world.claim(&life, 1).await;
                world.set_lease(&life, 1);
                world
                    .store
                    .recovery()
                    .boots(None, Duration::ZERO, 0, RETENTION)
                    .await
                    .expect("recovering");
            }
        }
        settle(&world).await;
        let called = called_back(&world, &calls).await;
        assert_eq!(names(&called), ["on_failure", "on_end"], "{last}");
        let cancelled = called[0].spec.env_vars["HERO_GRAPH_CANCELLED"].as_str();
        let expected = match last {
            "stop" => "2",
            "delete" => "1",
            _ => "0",
        };
        assert_eq!(cancelled, expected, "{last}");
    }
}

#[tokio::test]
async fn later_graph_with_the_id_starts_no_callback_for_the_end_of_the_one_before() {
    let (world, calls) = (World::new(), Life::of("python-default-1"));
    let (jobs, new) = ([member("a", &[])], with_callbacks());
    let submitted = world.store.batches().submit(&jobs, Some(&new), RETENTION);
    assert_eq!(submitted.await.expect("submitting"), BatchOutcome::Accepted);
    let created = world.redis.field(&keys::keys().graph(&id("g")), "created_at").expect("a time");
    for (of, names_called) in [("2026-01-01", &[][..]), (&created, &["on_success", "on_end"])] {
        // The end of a graph, whose callbacks have not started yet.
        let counts = r#""ends":1,"finished":1,"failed":0,"cancelled":0"#;
        let ended = format!(r#"{{"graph":"g","created":"{of}",{counts}}}"#);
        world.redis.push(&keys::keys().settling(), &[&ended]);
        settle(&world).await;
        let called = called_back(&world, &calls).await;
        assert_eq!(names(&called), names_called, "{of}");
        assert!(called.iter().all(|job| is_id_of_callback(&job.id)), "{called:?}");
    }
}

#[tokio::test]
async fn nobody_can_take_the_id_of_a_callback_first() {
    let counts = r#""ends":1,"finished":1,"failed":0,"cancelled":0"#;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let (world, calls) = (World::new(), Life::of("python-default-1"));
        let (jobs, new) = ([member("a", &[])], with_callbacks());
        let submitted = world.store.batches().submit(&jobs, Some(&new), RETENTION);
        assert_eq!(submitted.await.expect("submitting"), BatchOutcome::Accepted);
        // The same end of the same graph, as if somebody had learned the ids of its callbacks.
        world.redis.set_field(&keys::keys().graph(&id("g")), "created_at", "2026-01-01T00:00:00Z");
        let ended = format!(r#"{{"graph":"g","created":"2026-01-01T00:00:00Z",{counts}}}"#);
        world.redis.push(&keys::keys().settling(), &[&ended]);
        settle(&world).await;
        let called = called_back(&world, &calls).await;
        assert_eq!(names(&called), ["on_success", "on_end"]);
        assert!(called.into_iter().all(|job| seen.insert(job.id)), "{seen:?}");
    }
}

#[tokio::test]
async fn callbacks_of_two_lives_of_a_graph_have_ids_of_their_own() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let calls = Life::of("python-default-1");
    let mut ids = std::collections::BTreeSet::new();
    for name in ["a", "b"] {
        let jobs = [member(name, &[])];
        world
            .store
            .batches()
            .submit(&jobs, Some(&with_callbacks()), RETENTION)
            .await
            .expect("submitting");
        let graph = keys::keys().graph(&id("g"));
        world.redis.set_field(&graph, "created_at", name);
        end(&world, &life, done).await;
        settle(&world).await;
        ids.extend(called_back(&world, &calls).await.into_iter().map(|job| job.id));
        world.store.graphs().drop(&id("g")).await.expect("deleting");
    }
    assert_eq!(ids.len(), 4, "{ids:?}");
}

#[tokio::test]
async fn job_of_a_batch_joins_no_later_batch_with_its_id() {
    let world = World::new();
    let new = new_graph(GraphKind::Batch);
    let [first, second] = ["first", "second"].map(|opening| world.store.adding_to(opening));
    for (store, job) in [(&first, "a"), (&second, "b")] {
        world.store.graphs().drop(&id("g")).await.expect("deleting");
        assert!(store.graphs().open(&new).await.expect("opening"));
        store.jobs().submit(&[member(job, &[])], true, RETENTION).await.expect("submitting");
    }
    first.jobs().submit(&[member("c", &[])], true, RETENTION).await.expect("submitting");
    let members: Vec<String> =
        world.redis.ask(&format!("ZRANGE {} 0 -1", keys::keys().graph_jobs(&id("g"))));
    assert_eq!(members, ["b"]);
    assert_eq!(progress(&world).await, "0 of 1 done, 1 waiting");
}
