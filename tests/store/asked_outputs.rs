//! The outputs that running scripts ask for: only while the boot owns the job that asks, and only of the jobs that it
//! may have.

use hero::proto::job::{AskedOutput, FoundOutput, Job, JobId};
use jiff::Timestamp;

use crate::support::{Life, World, keys};

async fn asked(world: &World, life: &Life, (job, at): (&Job, u64), name: &str) -> FoundOutput {
    let name = AskedOutput::named(name.to_owned()).expect("a name");
    world.store.jobs().asked_output(&life.boot, (job, at), &name).await.expect("reading")
}

#[tokio::test]
async fn output_is_read_by_the_attempt_that_runs_and_of_no_later_job_with_the_same_id() {
    let (world, life, other) =
        (World::new(), Life::of("osis-default-1"), Life::of("osis-default-2"));
    let id = world.started(&life, "a").await;
    let at = world.claimed_at(&life, &id);
    let prerequisite: JobId = "b".parse().expect("legal");
    for (name, value) in
        [("status", "finished"), ("output", "7"), ("created_at", "2026-01-31T12:00:00.000Z")]
    {
        world.redis.set_field(&keys::job("b"), name, value);
    }
    let stranger = Job::new(id.clone(), "1");
    let mut job = stranger.clone();
    job.spec.prerequisites.push(prerequisite.clone());
    let finished = FoundOutput::Finished(prerequisite.clone(), "7".into());
    assert_eq!(asked(&world, &life, (&job, at), "b").await, finished);
    assert_eq!(asked(&world, &life, (&stranger, at), "b").await, FoundOutput::Stranger);
    assert_eq!(asked(&world, &other, (&job, at), "b").await, FoundOutput::Lost);
    job.prerequisites_at = "2026-01-31T11:00:00.000Z".parse::<Timestamp>().ok();
    let gone = FoundOutput::Gone(prerequisite);
    assert_eq!(asked(&world, &life, (&job, at), "b").await, gone);
    job.prerequisites_at = "2026-01-31T13:00:00.000Z".parse::<Timestamp>().ok();
    assert_eq!(asked(&world, &life, (&job, at), "b").await, finished);
    world.give_back(&life, &[(id, None)]).await;
    assert_eq!(asked(&world, &life, (&job, at), "b").await, FoundOutput::Lost);
}

#[tokio::test]
async fn child_is_known_by_its_parent_field_alone() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let at = world.claimed_at(&life, &id);
    let job = Job::new(id, "1");
    world.redis.set_field(&keys::job("b"), "status", "started");
    assert_eq!(asked(&world, &life, (&job, at), "b").await, FoundOutput::Stranger);
    // A program wrote the list; the other job knows no parent.
    world.redis.set_field(&keys::job("a"), "children", "[\"b\"]");
    let child: JobId = "b".parse().expect("legal");
    assert_eq!(asked(&world, &life, (&job, at), "b").await, FoundOutput::Gone(child.clone()));
    world.redis.set_field(&keys::job("b"), "parent", "a");
    let unended = FoundOutput::Unended(child, "started".parse().expect("a state"));
    assert_eq!(asked(&world, &life, (&job, at), "b").await, unended);
}

#[tokio::test]
async fn job_that_a_deleted_graph_left_reads_no_later_graph_with_its_id() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let at = world.claimed_at(&life, &id);
    let graph: JobId = "g".parse().expect("legal");
    let job = Job { graph_id: Some(graph.clone()), ..Job::new(id, "1") };
    for (of, field, value) in [
        ("a", "graph_id", "g"),
        ("b", "graph_id", "g"),
        ("b", "status", "finished"),
        ("b", "name", "step"),
        ("b", "output", "7"),
    ] {
        world.redis.set_field(&keys::job(of), field, value);
    }
    let members = keys::keys().graph_jobs(&graph);
    world.redis.ask::<i64>(&format!("ZADD {members} 1000000000 b"));
    let info = keys::keys().graph(&graph);
    world.redis.set_field(&info, "created_at", "2026-01-31T12:00:00.000Z");
    for name in ["b", "step"] {
        assert_eq!(asked(&world, &life, (&job, at), name).await, FoundOutput::Stranger, "{name}");
    }
    // So does a callback of the deleted one.
    world.redis.set_field(&keys::job("a"), "graph_callback", "on_end");
    world.redis.set_field(&keys::job("a"), "created_at", "2026-01-31T11:00:00.000Z");
    assert_eq!(asked(&world, &life, (&job, at), "b").await, FoundOutput::Stranger);
    world.redis.ask::<i64>(&format!("ZADD {members} 0 a"));
    let finished = FoundOutput::Finished("b".parse().expect("legal"), "7".into());
    for name in ["b", "step"] {
        assert_eq!(asked(&world, &life, (&job, at), name).await, finished, "{name}");
    }
}
