//! Fences against an actor that was declared dead, and against foreign actors.

use std::time::Duration;

use hero::proto::job::JobStatus;
use hero::store::{Claimed, Recorded, Renewal, StopOutcome, Verdict};

use crate::support::{Life, RETENTION, World, ids, job, keys};

const CRASH_LIMIT: u32 = 3;

async fn appear(world: &World, life: &Life, lease: Duration) {
    let presence = life.presence();
    world.store.actors().appear(&life.actor, &presence, lease, None).await.expect("appearing");
}

async fn claim(world: &World, life: &Life) -> Claimed {
    world.try_claim(life, 8).await.expect("claiming")
}

fn failed() -> Verdict {
    Verdict::Retry { error: "no".to_owned(), exit_code: None, delay: Duration::from_micros(1) }
}

#[tokio::test]
async fn a_boot_that_was_declared_dead_claims_nothing() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    appear(&world, &life, RETENTION).await;
    world.dies(&life, CRASH_LIMIT).await;
    world.accepts(&[job("a")]).await;
    let claimed = claim(&world, &life).await;
    assert!(claimed.fenced && claimed.attempts.is_empty());
    assert_eq!(world.work("type:osis"), ["a"]);
    world.check();
}

#[tokio::test]
async fn a_boot_with_jobs_still_to_be_put_back_is_dead_all_the_same() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    appear(&world, &life, RETENTION).await;
    // The state after a sweep that could not put back all jobs in one step.
    world.set_lease(&life, 0);
    let presence = [];
    let renewed = world.store.actors().heartbeat(&life.boot, RETENTION, &presence, &[]).await;
    assert_eq!(renewed.expect("beating"), Renewal::Lost);
    assert!(claim(&world, &life).await.fenced);
}

#[tokio::test]
async fn a_finish_after_the_lease_counts_until_somebody_has_recovered_the_job() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let (a, b) = (world.started(&life, "a").await, world.started(&life, "b").await);
    world.set_lease(&life, 1);
    let done = || Verdict::Finished { output: "1".into(), exit_code: None };
    assert_eq!(world.finish(&life, &a, done()).await, Recorded::Recorded);
    let found = world
        .store
        .recovery()
        .boots(None, Duration::ZERO, CRASH_LIMIT, RETENTION)
        .await
        .expect("recovering");
    world.check();
    assert_eq!((found.boots, found.put_back), (1, 1));
    assert_eq!(world.finish(&life, &b, done()).await, Recorded::Lost);
    assert_eq!(
        (world.status("a"), world.status("b")),
        (JobStatus::Finished, JobStatus::Dispatched)
    );
}

#[tokio::test]
async fn a_retry_that_a_foreign_actor_takes_is_watched_like_any_other_of_its_jobs() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    world.finish(&life, &id, failed()).await;
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching");
    // Its first attempt was ours, long ago.
    assert_eq!(world.field("a", "started_at"), None);
    assert_eq!(world.field("a", "boot_id"), None);
    world.redis.pop(&keys::work("type:osis"));
    world.redis.set_job("a", "status started");
    world.redis.push(&keys::work("type:osis"), &["a"]);
    let other = Life::of("osis-default-2");
    assert_eq!(world.claim(&other, 1).await.skipped, 1);
    assert_eq!(world.indexes_of("a"), [keys::index("started", "osis")]);
    world.redis.set_job("a", "status finished output 1");
    world.redis.put(&keys::index("started", "osis"), 0, "a");
    let every = Duration::from_secs(1);
    let found = world.store.recovery().foreign(RETENTION, every, CRASH_LIMIT, RETENTION).await;
    assert_eq!(found.expect("looking").foreign, 1);
    world.check();
    assert_eq!(world.count("osis", "finished"), 1);
}

#[tokio::test]
async fn a_job_whose_end_a_foreign_actor_wrote_is_noticed_though_its_copy_is_skipped() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a")]).await;
    world.redis.set_job("a", "status finished output 1");
    world.set_lease(&life, 9_000_000_000_000_000);
    assert_eq!(claim(&world, &life).await.skipped, 1);
    // A mark that is older than a pop may be.
    world.redis.set_field(&keys().marks(), "type:osis", "1 9000000000000000");
    let found = world.store.recovery().pops(RETENTION).await.expect("a sweep");
    assert_eq!(found.foreign, 1);
    world.check();
    let ttl = world.redis.ttl(&keys::job("a"));
    assert!(ttl > 0, "it does not expire");
    assert_eq!(world.count("osis", "finished"), 1);
}

#[tokio::test]
async fn a_foreign_timeout_of_no_legal_number_ends_all_the_same() {
    for timeout in ["inf", "nan", "1e300", "-1", "x"] {
        let world = World::new();
        world.accepts(&[job("a")]).await;
        world.redis.pop(&keys::work("type:osis"));
        world.redis.remove(&keys::ready("type:osis"), "a");
        world.redis.set_job("a", &format!("status started timeout {timeout}"));
        world.redis.set_job("a", "started_at 2026-01-01T00:00:00.000Z");
        world.redis.put(&keys::index("started", "osis"), 1, "a");
        let (default, every) = (Duration::from_secs(1), Duration::from_secs(1));
        let found = world.store.recovery().foreign(default, every, CRASH_LIMIT, RETENTION).await;
        assert_eq!(found.expect("looking").put_back, 1, "{timeout}");
        world.check();
    }
}

#[tokio::test]
async fn a_stop_that_finds_its_actor_dead_waits_for_the_recovery_and_comes_back_to_nobody() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    appear(&world, &life, RETENTION).await;
    let id = world.started(&life, "a").await;
    // Its successor has the name by now, and is handed the stop.
    let successor = Life::of("osis-default-1");
    world.redis.delete(&keys::presence("osis:default:1"));
    appear(&world, &successor, RETENTION).await;
    let asking = Some(&successor.boot);
    let outcome = world.store.jobs().stop(&id, RETENTION, asking).await.expect("stopping");
    assert_eq!(outcome, StopOutcome::Requested);
    assert!(world.redis.all("CONTROL").is_empty(), "it would come back for ever");
    world.dies(&life, CRASH_LIMIT).await;
    assert_eq!(world.status("a"), JobStatus::Error);
    assert_eq!(world.field("a", "error").as_deref(), Some("stopped_by_request"));
    assert!(world.redis.all("DEAD").is_empty());
    world.store.jobs().retry(&id).await.expect("running again");
    assert_eq!(world.field("a", "stop_requested"), None);
}

#[tokio::test]
async fn a_key_that_a_stranger_made_no_hash_does_not_keep_other_jobs_from_being_recovered() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.started(&life, "a").await;
    world.started(&life, "b").await;
    world.redis.spoil(&keys::job("b"));
    world.dies(&life, CRASH_LIMIT).await;
    assert_eq!(world.work("type:osis"), ["a"]);
}

#[tokio::test]
async fn a_given_back_job_that_names_no_legal_queue_is_ended_with_its_boot() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.set_job("a", "id a script 1 status dispatched group NO");
    world.redis.push(&keys::work("type:osis"), &["a"]);
    let claimed = world.claim(&life, 8).await;
    assert_eq!(ids(&claimed.attempts), ["a"]);
    let back = [(claimed.attempts[0].id.clone(), None)];
    assert_eq!(world.give_back(&life, &back).await, 0);
    world.dies(&life, CRASH_LIMIT).await;
    assert_eq!(world.status("a"), JobStatus::Error);
}
