//! The look for work of supervisors.

use std::collections::BTreeSet;
use std::time::Duration;

use hero::proto::message::Control;
use hero::store::{Outlook, WorkKind};
use jiff::Timestamp;

use super::large_outputs::{rules_without, store_of};
use crate::support::{Life, RETENTION, World, job, keys};

async fn look(world: &World) -> Outlook {
    world.store.schedule().plan().await.expect("looking")
}

#[tokio::test]
async fn empty_namespace_has_no_work() {
    let world = World::new();
    assert_eq!(look(&world).await, Outlook::default());
}

#[tokio::test]
async fn poll_finds_each_kind_of_work() {
    let world = World::new();
    let sees = async |work: &[WorkKind], why: &str| {
        let expected: BTreeSet<WorkKind> = work.iter().copied().collect();
        assert_eq!(look(&world).await.work, expected, "{why}");
    };
    world.accepts(&[job("a")]).await;
    sees(&[WorkKind::Queues], "a job stands in its queue").await;
    world.redis.push(&keys::control_of_type("osis"), &[Control::Drain.to_json()]);
    sees(&[WorkKind::Queues, WorkKind::Control], "a message waits").await;
    world.redis.delete(&keys::control_of_type("osis"));
    for (index, work) in [
        (keys::index("created", "osis"), WorkKind::Orphans),
        (keys::index("waiting_for_prerequisites", "osis"), WorkKind::Orphans),
        (keys::index("started", "osis"), WorkKind::Foreign),
        (keys::limits(), WorkKind::Limits),
        (keys().wrong_types(), WorkKind::WrongTypes),
    ] {
        world.redis.put(&index, 1, "x");
        sees(&[WorkKind::Queues, work], &index).await;
        world.redis.delete(&index);
    }
    for list in [keys().settling(), keys().notes()] {
        world.redis.push(&list, &["x"]);
        sees(&[WorkKind::Queues, WorkKind::Unsettled], &list).await;
        world.redis.delete(&list);
    }
    sees(&[WorkKind::Queues], "all of it is done").await;
}

#[tokio::test]
async fn poll_returns_when_the_first_job_is_due() {
    let world = World::new();
    let at = |id: &str, time| {
        let mut job = job(id);
        job.spec.run_at = Some(time);
        job
    };
    let now = Timestamp::now();
    world.accepts(&[at("a", now + RETENTION), at("b", now + RETENTION / 2)]).await;
    let outlook = look(&world).await;
    let next = outlook.next_due.expect("a job is scheduled");
    assert!(next <= RETENTION / 2 && next > RETENTION / 4, "{next:?}");
    world.redis.put(&keys::index("scheduled", "osis"), 1, "b");
    assert_eq!(look(&world).await.next_due, Some(Duration::ZERO));
}

#[tokio::test]
async fn poll_with_more_types_than_a_sweep_takes_lets_every_duty_poll() {
    let world = World::new();
    let types: Vec<String> = (0..201).map(|number| format!("t{number}")).collect();
    world.redis.ask_with::<u64, _>(&format!("SADD {}", keys().types()), &types);
    let outlook = look(&world).await;
    let expected = [WorkKind::Control, WorkKind::Foreign, WorkKind::Orphans];
    assert_eq!(outlook.work, expected.into());
    assert_eq!(outlook.next_due, Some(Duration::ZERO));
}

#[tokio::test]
async fn work_whose_keys_a_user_may_not_read_counts_as_there() {
    let world = World::new();
    let of = async |kind: &str| {
        let store = store_of(&world, &kind.to_lowercase(), &rules_without(kind));
        store.schedule().plan().await.expect("looking")
    };
    assert_eq!(of("LIMITS").await.work, [WorkKind::Limits].into());
    world.accepts(&[job("a")]).await;
    assert_eq!(of("LIMITS").await.work, [WorkKind::Limits, WorkKind::Queues].into());
    assert_eq!(of("INDEX").await.next_due, Some(Duration::ZERO));
}

#[tokio::test]
async fn supervisor_counts_as_live_for_an_actor_that_may_not_read_its_presence() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world
        .store
        .actors()
        .appear(&life.actor, &life.presence(), RETENTION, None)
        .await
        .expect("appearing");
    let store = store_of(&world, "older", &rules_without("SUPERVISORS"));
    let renewed = store.actors().heartbeat(&life.boot, RETENTION, &[], &[]).await;
    assert_eq!(renewed.expect("beating"), hero::store::Renewal::Kept);
}

#[tokio::test]
async fn heartbeat_reports_that_no_supervisor_is_live() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world
        .store
        .actors()
        .appear(&life.actor, &life.presence(), RETENTION, None)
        .await
        .expect("appearing");
    let beat = async || world.store.actors().heartbeat(&life.boot, RETENTION, &[], &[]).await;
    assert_eq!(beat().await.expect("beating"), hero::store::Renewal::Unsupervised);
    let now = u64::try_from(Timestamp::now().as_microsecond()).expect("after 1970");
    world.redis.put(&keys().supervisors(), now, "one");
    assert_eq!(beat().await.expect("beating"), hero::store::Renewal::Kept);
}
