//! Purging queues.

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobStatus};

use crate::support::{Life, RETENTION, World, ids, job, keys, queue};

#[tokio::test]
async fn purge_ends_waiting_jobs_like_a_stop_and_releases_dependents() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.started(&life, "runs").await;
    world.accepts(&[job("a"), job("b")]).await;
    let after = JobBuilder::new("sal", "1").id("after").after("b").build().expect("legal");
    let urgent = JobBuilder::new("osis", "1").id("urgent").priority(0).build().expect("legal");
    world.accepts(&[after, urgent]).await;
    let purged = world.store.queues().purge(&queue("type:osis"), RETENTION).await.expect("purging");
    world.check();
    assert_eq!(purged, 2);
    for name in ["a", "b"] {
        assert_eq!(world.status(name), JobStatus::Error);
        assert_eq!(world.field(name, "error").as_deref(), Some("stopped"));
        assert_eq!(world.redis.list(&keys::reply(name)).len(), 1);
    }
    assert_eq!(world.field("after", "error").as_deref(), Some("prerequisite failed: b"));
    assert_eq!(world.status("runs"), JobStatus::Started);
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["urgent"]);
    assert_eq!(
        world.store.queues().purge(&queue("type:osis"), RETENTION).await.expect("purging"),
        0
    );
}

#[tokio::test]
async fn a_long_queue_is_purged_in_steps_and_both_spellings_of_normal_priority_are() {
    let world = World::new();
    let jobs: Vec<Job> = (0..1300).map(|n| job(&format!("j{n}"))).collect();
    for batch in jobs.chunks(1000) {
        world.store.jobs().submit(batch, true, RETENTION).await.expect("submitting");
    }
    world.redis.set_job("raw", "id raw script 1 status dispatched");
    let other = &keys().work_as_read(&queue("type:osis"))[0];
    world.redis.push(other, &["raw", "nobody", "not:legal"]);
    let purged = world.store.queues().purge(&queue("type:osis"), RETENTION).await.expect("purging");
    world.check();
    assert_eq!(purged, 1301);
    assert!(world.redis.all("WORK").is_empty());
    assert!(world.redis.all("READY").is_empty());
}

#[tokio::test]
async fn jobs_of_foreign_actors_and_ended_jobs_are_not_purged() {
    let world = World::new();
    world.accepts(&[job("a"), job("b")]).await;
    world.redis.set_job("a", "status started");
    world.redis.set_job("b", "status finished output theirs");
    let purged = world.store.queues().purge(&queue("type:osis"), RETENTION).await.expect("purging");
    assert_eq!(purged, 0);
    assert_eq!(world.indexes_of("a"), [keys::index("started", "osis")]);
    assert_eq!(world.field("b", "output").as_deref(), Some("theirs"));
    world.store.recovery().pops(RETENTION).await.expect("sweeping");
    assert_eq!(world.status("b"), JobStatus::Finished);
}

#[tokio::test]
async fn a_list_of_another_type_is_nothing_to_purge() {
    let world = World::new();
    world.redis.spoil(&keys::work("type:osis"));
    assert_eq!(
        world.store.queues().purge(&queue("type:osis"), RETENTION).await.expect("purging"),
        0
    );
}
