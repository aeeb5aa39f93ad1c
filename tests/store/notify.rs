//! Messages of notifications: one supervisor plans, one delivers, and what others do too late changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use hero::proto::notification::{
    MessagePlan, NotifyEvent, NotifyKind, NotifyMessage, NotifyName, NotifyState,
};
use hero::store::{NotifySnapshot, Verdict};
use redis::streams::StreamRangeReply;

use crate::support::{Life, World, keys};

const HOUR: Duration = Duration::from_hours(1);

fn ops() -> NotifyName {
    "ops".parse().expect("a legal name")
}

fn event(error: &str) -> NotifyEvent {
    let kind = Some(NotifyKind::Failed);
    NotifyEvent { kind, error: error.to_owned(), ..NotifyEvent::default() }
}

/// Returns a plan that tells so many events, each by a message of its own.
fn plan(look: &NotifySnapshot, places: &[&str]) -> MessagePlan {
    let mut plan = MessagePlan::new(look.now_ms, look.states.clone(), look.undelivered);
    for place in places {
        plan.tell(&ops(), NotifyKind::Failed, &event("broken"), place, 0);
    }
    plan
}

/// Writes messages, and returns the place of each.
async fn planned(world: &World, places: &[&str]) {
    let look = world.store.notifications().look().await.expect("read");
    let plan = plan(&look, places);
    assert!(world.store.notifications().plan(&look, &plan, &[]).await.expect("planned"));
}

async fn take(world: &World, lease: Duration) -> Vec<NotifyMessage> {
    world.store.notifications().take(16, lease).await.expect("taken")
}

/// Records the end of an attempt, as a supervisor does.
async fn done(world: &World, message: &NotifyMessage, error: &str, again: Option<u64>) -> bool {
    let record = message.record("2026-01-01T00:00:00Z".to_owned(), error, again.is_some());
    world.store.notifications().done(message, &record, again).await.expect("recorded")
}

fn messages(world: &World) -> BTreeMap<String, String> {
    world.redis.ask(&format!("HGETALL {}", keys::keys().notify_messages()))
}

fn due(world: &World) -> Vec<String> {
    world.redis.members(&keys::keys().notify_due())
}

#[tokio::test]
async fn of_two_supervisors_that_decide_about_the_same_events_one_writes() {
    let world = World::new();
    let (one, other) =
        (world.store.notifications().look().await, world.store.notifications().look().await);
    let (one, other) = (one.expect("read"), other.expect("read"));
    let (first, second) = (plan(&one, &["1-0", "2-0"]), plan(&other, &["1-0", "2-0", "3-0"]));
    assert!(world.store.notifications().plan(&one, &first, &[]).await.expect("planned"));
    assert!(!world.store.notifications().plan(&other, &second, &[]).await.expect("answered"));
    assert_eq!(due(&world), ["ops-1-0", "ops-2-0"]);
    assert_eq!(messages(&world).len(), 2);
    let again = world.store.notifications().look().await.expect("read");
    assert_eq!((again.undelivered, again.states.len()), (2, 1));
    assert!(
        world
            .store
            .notifications()
            .plan(&again, &plan(&again, &["3-0"]), &[])
            .await
            .expect("planned")
    );
    assert_eq!(due(&world).len(), 3);
}

#[tokio::test]
async fn event_joins_no_message_that_may_be_under_way() {
    let world = World::new();
    planned(&world, &["1-0"]).await;
    let taken = take(&world, HOUR).await;
    let look = world.store.notifications().look().await.expect("read");
    // As if it gathered still when this supervisor looked.
    let (gathers, gathers_until_ms) = (taken[0].id.clone(), look.now_ms + 1000);
    let state = NotifyState { gathers, gathers_until_ms, ..NotifyState::default() };
    let mut late = MessagePlan::new(look.now_ms, BTreeMap::from([(ops(), state)]), 1);
    late.keeps(taken[0].clone(), look.now_ms + 1000);
    late.tell(&ops(), NotifyKind::Failed, &event("more"), "2-0", 1000);
    assert_eq!(late.messages["ops-1-0"].message.total(), 2, "it would join");
    assert!(!world.store.notifications().plan(&look, &late, &[]).await.expect("answered"));
    assert!(!messages(&world)["ops-1-0"].contains("more"));
    let unchanged = world.store.notifications().look().await.expect("read");
    assert!(
        world
            .store
            .notifications()
            .plan(&unchanged, &plan(&look, &["2-0"]), &[])
            .await
            .expect("planned")
    );
}

#[tokio::test]
async fn message_is_taken_by_one_until_its_lease_is_over_and_in_bounded_numbers() {
    let world = World::new();
    planned(&world, &["1-0", "2-0", "3-0"]).await;
    let first = world.store.notifications().take(2, HOUR).await.expect("taken");
    for message in &first {
        let due = keys::keys().notify_due();
        let lease: u64 = world.redis.ask(&format!("ZSCORE {due} {}", message.id));
        // Only a message that gathers events is due at a whole millisecond.
        assert_eq!(lease % 1000, 1, "{}", message.id);
    }
    assert_eq!(first.len(), 2);
    let second = take(&world, Duration::from_millis(1)).await;
    assert_eq!(second.iter().map(|of| of.id.as_str()).collect::<Vec<_>>(), ["ops-3-0"]);
    let mut again = Vec::new();
    while again.is_empty() {
        again = take(&world, HOUR).await;
    }
    assert_eq!(again, second, "nobody recorded an end within the lease");
    assert!(take(&world, HOUR).await.is_empty());
}

#[tokio::test]
async fn end_of_a_message_is_recorded_once_and_a_stale_taker_brings_nothing_back() {
    let world = World::new();
    planned(&world, &["1-0"]).await;
    let mut stale = take(&world, Duration::from_millis(1)).await.remove(0);
    let mut taken = Vec::new();
    while taken.is_empty() {
        taken = take(&world, HOUR).await;
    }
    let winner = taken.remove(0);
    assert!(done(&world, &winner, "", None).await);
    assert!(!done(&world, &stale, "", None).await);
    let again = stale.failed(1).expect("it would try again");
    assert!(!done(&world, &stale, "no route", Some(again)).await);
    assert!(messages(&world).is_empty() && due(&world).is_empty());
    let (recent, failing) = world.store.notifications().deliveries(10).await.expect("listed");
    assert_eq!((recent.len(), recent[0].state.as_str(), failing.len()), (1, "delivered", 0));
    let counts = world.store.notifications().look().await.expect("read").counts;
    assert_eq!(counts, BTreeMap::from([("ops delivered".to_owned(), 1)]));
}

#[tokio::test]
async fn failed_delivery_is_retried_until_one_succeeds_or_it_is_given_up() {
    let world = World::new();
    planned(&world, &["1-0", "2-0"]).await;
    for mut message in take(&world, HOUR).await {
        message.failed(1);
        assert!(done(&world, &message, "no route", Some(0)).await);
    }
    let taken = take(&world, HOUR).await;
    assert_eq!(taken.iter().map(|of| of.attempts).collect::<Vec<_>>(), [1, 1]);
    let (recent, failing) = world.store.notifications().deliveries(10).await.expect("listed");
    assert_eq!((recent.len(), failing[0].state.as_str()), (0, "retrying"));
    assert!(done(&world, &taken[0], "no route", None).await, "it is given up");
    let (recent, failing) = world.store.notifications().deliveries(10).await.expect("listed");
    assert_eq!((recent[0].state.as_str(), failing[0].state.as_str()), ("failed", "failed"));
    assert!(done(&world, &taken[1], "", None).await);
    let (recent, failing) = world.store.notifications().deliveries(10).await.expect("listed");
    assert_eq!((recent.len(), recent[0].state.as_str(), failing.len()), (2, "delivered", 0));
}

#[tokio::test]
async fn ends_events_and_messages_stay_within_their_bounds() {
    let world = World::new();
    let look = world.store.notifications().look().await.expect("read");
    let mut storm = MessagePlan::new(look.now_ms, BTreeMap::new(), 0);
    for number in 0..2000 {
        let long = event(&"x".repeat(1000));
        storm.tell(&ops(), NotifyKind::Failed, &long, &format!("{number}-0"), 0);
    }
    assert!(world.store.notifications().plan(&look, &storm, &[]).await.expect("planned"));
    let kept = messages(&world);
    assert_eq!(kept.len(), 20);
    assert!(kept.values().all(|text| text.len() < 64 << 10));
    let taken = world.store.notifications().take(100, HOUR).await.expect("taken");
    assert_eq!(taken.iter().map(NotifyMessage::total).sum::<u64>(), 2000, "all are counted");
    for number in 0..510 {
        planned(&world, &[&format!("9-{number}")]).await;
        let message = take(&world, HOUR).await.remove(0);
        assert!(done(&world, &message, &"e".repeat(10_000), None).await);
    }
    let recent = world.redis.list(&keys::keys().notify_recent());
    assert_eq!(recent.len(), 500);
    assert!(recent.iter().all(|text| text.len() < 1000), "{}", recent[0].len());

    // The event of a job with long texts.
    world.store.notifications().events(&look, &["failed".to_owned()], 1).await.expect("wanted");
    let life = Life::of("osis-default-1");
    let id = world.started(&life, "a").await;
    for field in ["name", "caller_id", "tags", "hostname"] {
        world.redis.set_field(&keys::job("a"), field, "ä".repeat(50_000));
    }
    let error = "e".repeat(200_000);
    world.finish(&life, &id, Verdict::Error { error, exit_code: Some(1), dead: false }).await;
    let key = keys::keys().notify_events();
    let events: StreamRangeReply = world.redis.ask(&format!("XRANGE {key} - +"));
    let text = |value: &redis::Value| redis::from_redis_value_ref::<Vec<u8>>(value).expect("text");
    let size: usize = events.ids[0].map.iter().map(|(name, of)| name.len() + text(of).len()).sum();
    assert!(events.ids.len() == 1 && (2000..8000).contains(&size), "{size}");
    let read = world.store.notifications().events(&look, &[], 10).await.expect("read");
    assert!(read.events[0].1.error.len() <= 1003, "cut where a character begins");
}

#[tokio::test]
async fn key_of_another_type_stops_no_later_message() {
    let all = keys::keys();
    let messages_key = all.notify_messages();
    for spoilt in
        [all.notify_due(), messages_key.clone(), all.notify_recent(), all.notify_trouble()]
    {
        let world = World::new();
        planned(&world, &["1-0"]).await;
        let taken = take(&world, HOUR).await;
        world.redis.spoil(&spoilt);
        if spoilt == messages_key {
            let error =
                world.store.notifications().look().await.expect_err("nobody knows what is kept");
            assert!(error.to_string().contains("reading the state of notifications"), "{error}");
        } else {
            planned(&world, &["2-0"]).await;
        }
        assert!(take(&world, HOUR).await.len() <= 1, "{spoilt}");
        let mut failed = taken[0].clone();
        failed.failed(1);
        let is_known = done(&world, &failed, "no route", Some(0)).await;
        assert_eq!(is_known, spoilt != messages_key, "{spoilt}");
        done(&world, &failed, "", None).await;
        world.redis.delete(&spoilt);
        // What was in the key is lost; what comes later is told.
        planned(&world, &["3-0"]).await;
        let taken = take(&world, HOUR).await;
        assert!(taken.iter().any(|of| of.id == "ops-3-0"), "{spoilt}: {taken:?}");
        assert!(!taken.iter().any(|of| of.id == "ops-1-0"), "{spoilt}: it was delivered");
    }
}
