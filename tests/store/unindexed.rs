//! Jobs that a waiting foreign actor popped before Hero knew of them: no index and no list has them.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::job::{JobId, JobStatus};
use hero::store::{AdoptionRules, FoundUnindexed, Verdict};

use crate::support::{Life, RETENTION, World, job, keys};

fn list() -> String {
    keys::work("type:osis")
}

/// The key of the jobs that are noted.
fn noted() -> String {
    keys::prefix("UNINDEXED")
}

/// Writes the hash of a job as a program that pushes into an empty queue, where an actor waits, leaves it.
fn popped(world: &World, id: &str, fields: &str) {
    world.redis.set_job(id, &format!("script 1 {fields}"));
}

/// Looks with a walk through all hashes, which is due.
async fn look(world: &World) -> FoundUnindexed {
    let found = world.store.recovery().find_unindexed(true, Duration::ZERO, RETENTION).await;
    found.expect("looking")
}

/// Lets the grace of noted jobs be over.
fn grace_is_over(world: &World) {
    for id in world.redis.members(&noted()) {
        world.redis.put(&noted(), 1, &id);
    }
}

#[tokio::test]
async fn job_that_a_waiting_actor_popped_and_never_started_goes_back_to_its_queue_once() {
    let world = World::new();
    popped(&world, "a", "script_type osis status dispatched");
    assert_eq!(look(&world).await.recovered.put_back, 0, "its actor may be about to start it");
    assert_eq!(world.redis.members(&noted()), ["a"]);
    grace_is_over(&world);
    let found = look(&world).await;
    assert_eq!(found.recovered.put_back, 1);
    assert!(found.recovered.notes[0].to_string().contains("front of queue type:osis"));
    assert_eq!(world.redis.list(&list()), ["a"]);
    assert_eq!(world.adopt(&list()).await.jobs, 1);
    world.check();
    grace_is_over(&world);
    assert_eq!(look(&world).await.recovered.put_back, 0, "it is known now");
    assert!(world.redis.members(&noted()).is_empty());
}

#[tokio::test]
async fn job_that_stands_in_a_list_is_left_to_its_adoption() {
    let world = World::new();
    for (id, list) in [("a", list()), ("b", format!("{}:prio:1", list()))] {
        popped(&world, id, "script_type osis status dispatched");
        world.redis.push(&list, &[id]);
    }
    look(&world).await;
    grace_is_over(&world);
    assert_eq!(look(&world).await.recovered.put_back, 0);
    assert_eq!(world.redis.list(&list()), ["a"]);
}

#[tokio::test]
async fn start_and_end_by_a_waiting_actor_are_noted_in_their_indexes() {
    let world = World::new();
    popped(&world, "runs", "script_type osis status started");
    popped(&world, "ended", "script_type osis status finished output x");
    assert_eq!(look(&world).await.recovered.foreign, 2);
    world.check();
    assert_eq!(world.indexes_of("runs"), [keys::index("started", "osis")]);
    assert!(world.redis.ttl(&keys::job("ended")) > 0);
    assert_eq!(look(&world).await.recovered.foreign, 0);
}

#[tokio::test]
async fn job_that_another_waits_for_is_looked_at_without_a_walk() {
    let world = World::new();
    popped(&world, "first", "script_type osis status started");
    let after = JobBuilder::new("osis", "1").id("second").after("first").build().expect("legal");
    world.store.jobs().submit(&[after], true, RETENTION).await.expect("submitting");
    assert_eq!(world.redis.members(&noted()), ["first"]);
    world.redis.set_job("first", "status finished output x");
    let found = world.store.recovery().find_unindexed(false, Duration::ZERO, RETENTION).await;
    assert_eq!(found.expect("looking").recovered.foreign, 1);
    assert_eq!(world.status("second"), JobStatus::Dispatched);
    world.check();
}

#[tokio::test]
async fn job_that_a_client_waits_for_is_noted_if_no_index_has_it() {
    let world = World::new();
    let note = async |id: &str| {
        let id: JobId = id.parse().expect("legal");
        world.store.recovery().note_awaited(&id).await.expect("noting");
    };
    popped(&world, "popped", "script_type osis status dispatched");
    world.store.jobs().submit(&[job("queued")], true, RETENTION).await.expect("submitting");
    for id in ["popped", "queued", "missing"] {
        note(id).await;
    }
    assert_eq!(world.redis.members(&noted()), ["popped"]);
}

#[tokio::test]
async fn hash_without_a_script_type_is_counted_and_left_alone() {
    let world = World::new();
    popped(&world, "a", "status dispatched");
    popped(&world, "b", "script_type OSIS status started");
    popped(&world, "c", "status finished");
    let found = look(&world).await;
    assert_eq!(found.untyped.map(|(number, _)| number), Some(2));
    assert_eq!(found.recovered.foreign + found.recovered.put_back, 0);
    assert_eq!(look(&world).await.untyped, None, "it is told once");
    assert_eq!(world.redis.ttl(&keys::job("c")), -1);
}

#[tokio::test]
async fn supervisors_share_one_walk_and_its_pauses() {
    let world = World::new();
    let hour = Duration::from_hours(1);
    let step = async || {
        world.store.recovery().find_unindexed(true, hour, RETENTION).await.expect("looking")
    };
    step().await;
    popped(&world, "late", "script_type osis status started");
    let next = step().await;
    assert_eq!(next.recovered.foreign, 0, "the next walk is not due");
    assert!(next.next > hour / 2 && next.next <= hour);
    // A clock that was set back makes the next walk due.
    let ahead = format!("{} 0 0 ", u64::pow(10, 18));
    world.redis.set_field(&keys::prefix("MARKS"), "walk", ahead);
    assert_eq!(step().await.recovered.foreign, 1);
}

#[tokio::test]
async fn id_that_is_pushed_before_its_hash_runs_once_the_hash_is_there() {
    let world = World::new();
    world.redis.push(&list(), &["late"]);
    let adopted = world.adopt(&list()).await;
    assert_eq!((adopted.jobs, adopted.removed), (0, 1));
    assert_eq!(look(&world).await.recovered.put_back, 0, "it has no hash yet");
    let early = world.store.recovery().ids_without_hash().await.expect("reading");
    assert_eq!(early, [(list(), "late".to_owned())]);
    // As the minimal protocol writes it: its queue alone says its type.
    popped(&world, "late", "status dispatched");
    let found = look(&world).await;
    assert_eq!(found.recovered.put_back, 1);
    assert!(found.recovered.notes[0].to_string().contains("before its hash was written"));
    assert_eq!(world.adopt(&list()).await.jobs, 1);
    assert_eq!(world.work("type:osis"), ["late"]);
    world.check();
    assert_eq!(look(&world).await.recovered.put_back, 0);
}

#[tokio::test]
async fn id_without_a_hash_is_forgotten_after_a_minute() {
    let world = World::new();
    world.redis.push(&list(), &["none"]);
    world.adopt(&list()).await;
    look(&world).await;
    let entries = world.redis.members(&noted());
    assert_eq!(entries, [format!("{} none", list())]);
    world.redis.ask_with::<i64, _>(&format!("ZADD {} 1", noted()), &entries);
    look(&world).await;
    assert!(world.redis.members(&noted()).is_empty());
}

#[tokio::test]
async fn push_soon_after_the_end_is_a_repetition_and_a_later_one_runs_the_job_again() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    world.ended(&life, "a", done).await;
    let push = async |requeue_after| {
        world.redis.push(&list(), &["a"]);
        let rules =
            AdoptionRules { retention: RETENTION.into(), requeue_by_push: true, requeue_after };
        world.store.legacy().adopt(&list(), rules).await.expect("adopting")
    };
    let repeated = push(Duration::from_hours(1)).await;
    assert_eq!((repeated.jobs, repeated.removed), (0, 1));
    assert!(repeated.skipped[0].1.contains("a push that was repeated"), "{repeated:?}");
    assert_eq!(world.status("a"), JobStatus::Finished);
    assert_eq!(push(Duration::ZERO).await.again, ["a"]);
    world.check();
}
