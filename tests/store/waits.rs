//! Waits of jobs and the events that end them: what the Lua scripts check before they write.

use std::time::Duration;

use hero::proto::job::JobId;
use hero::store::{Recorded, TellOutcome, Verdict};
use serde_json::{Value, json};

use crate::support::{Life, World, keys};

fn waits(wait: &str, delay: Duration) -> Verdict {
    Verdict::Wait { wait: wait.to_owned(), exit_code: Some(0), delay }
}

const HOUR: Duration = Duration::from_hours(1);
const APPROVED: &str = "{\"event\":\"approved\"}";

async fn tell(world: &World, id: &JobId, event: &str, names: &[&str]) -> TellOutcome {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let json = json!({ "event": event, "data": null }).to_string();
    world.store.tell(id, (event, &json), &names).await.expect("told")
}

fn event(world: &World, id: &str) -> Value {
    serde_json::from_str(&world.field(id, "event").unwrap_or_default()).unwrap_or_default()
}

#[tokio::test]
async fn waiting_job_is_scheduled_and_its_event_sends_it_to_its_queue_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    world.finish(&life, &id, waits(APPROVED, HOUR)).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"));
    assert_eq!(world.field("a", "wait").as_deref(), Some(APPROVED));
    assert_eq!(world.field("a", "attempt").as_deref(), Some("0"), "no attempt is lost");
    assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Told);
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    assert_eq!(world.field("a", "wait"), None);
    assert_eq!(event(&world, "a")["event"], "approved");
    assert!(event(&world, "a")["when"].is_string());
    assert_eq!(tell(&world, &id, "approved", &["bob"]).await, TellOutcome::Twice);
    let claimed = world.claim(&life, 2).await;
    assert_eq!(claimed.attempts.len(), 1, "it stands in its queue once");
}

#[tokio::test]
async fn wait_is_written_by_the_attempt_that_runs_and_by_no_other() {
    let (world, life, other) =
        (World::new(), Life::of("osis-default-1"), Life::of("osis-default-2"));
    let id = world.started(&life, "a").await;
    let claimed_at = world.claimed_at(&life, &id);
    let end = world.finish_claimed(&other, &id, claimed_at, waits(APPROVED, HOUR)).await;
    assert_eq!(end, Recorded::Lost);
    assert_eq!((world.field("a", "wait"), world.field("a", "waits")), (None, None));
    world.finish(&life, &id, waits(APPROVED, HOUR)).await;
    assert_eq!(world.field("a", "waits").as_deref(), Some("1"));
}

#[tokio::test]
async fn event_that_comes_first_is_kept_in_bounds_and_found_by_the_wait() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Kept);
    assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Twice);
    for number in 1..16 {
        let name = format!("more-{number}");
        assert_eq!(tell(&world, &id, &name, &["ann"]).await, TellOutcome::Kept);
    }
    assert_eq!(tell(&world, &id, "one-more", &["ann"]).await, TellOutcome::Full);
    world.finish(&life, &id, waits(APPROVED, HOUR)).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"), "it is due now");
    assert_eq!(
        (world.field("a", "wait"), event(&world, "a")["event"].clone()),
        (None, json!("approved"))
    );
    world.store.dispatch_due(10).await.expect("dispatched");
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    assert_eq!(event(&world, "a")["event"], "approved", "no timeout replaces it");
}

#[tokio::test]
async fn event_of_somebody_who_may_not_tell_it_ends_no_wait() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    assert_eq!(tell(&world, &id, "approved", &["eve"]).await, TellOutcome::Kept);
    let wait = "{\"event\":\"approved\",\"who\":[\"ann\",\"@ops\"]}";
    world.finish(&life, &id, waits(wait, HOUR)).await;
    assert_eq!(world.field("a", "wait").as_deref(), Some(wait));
    assert_eq!(world.field("a", "told_events"), None, "what eve told is gone");
    for names in [&["eve"][..], &["@op"], &["ops"], &[]] {
        assert_eq!(tell(&world, &id, "approved", names).await, TellOutcome::Forbidden, "{names:?}");
    }
    assert_eq!(tell(&world, &id, "approved", &["bob", "@ops"]).await, TellOutcome::Told);
}

#[tokio::test]
async fn wait_for_jobs_ends_with_the_last_of_them_however_they_end() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let (one, two) = (world.started(&life, "one").await, world.started(&life, "two").await);
    world.finish(&life, &id, waits("{\"jobs\":[\"one\",\"two\",\"none\"]}", HOUR)).await;
    let failed = Verdict::Error { error: "no".into(), exit_code: None, dead: false };
    world.finish(&life, &one, failed).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"));
    world.finish(&life, &two, Verdict::Finished { output: "1".into(), exit_code: None }).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    let states = json!({ "one": "error", "two": "finished", "none": "missing" });
    assert_eq!(event(&world, "a")["jobs"], states);
    assert!(!world.redis.ask::<bool>(&format!("EXISTS {}", keys::pending("a"))));
}

#[tokio::test]
async fn time_that_passes_ends_a_wait_with_a_timeout() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    world.finish(&life, &id, waits(APPROVED, Duration::ZERO)).await;
    world.store.dispatch_due(10).await.expect("dispatched");
    assert_eq!(
        (event(&world, "a")["timeout"].clone(), world.field("a", "wait")),
        (json!(true), None)
    );
    assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Kept, "for a next wait");
}

#[tokio::test]
async fn job_that_ended_or_does_not_exist_and_fields_of_other_programs_are_refused() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let none: JobId = "none".parse().expect("legal");
    assert_eq!(tell(&world, &none, "approved", &["ann"]).await, TellOutcome::Missing);
    for hostile in ["[", "7", "null", "[7,{\"event\":{}}]"] {
        world.redis.set_field(&keys::job("a"), "told_events", hostile);
        world.redis.set_field(&keys::job("a"), "event", hostile);
        world.redis.set_field(&keys::job("a"), "wait", hostile);
        assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Kept, "{hostile}");
    }
    world.finish(&life, &id, Verdict::Finished { output: "1".into(), exit_code: None }).await;
    assert!(matches!(tell(&world, &id, "x", &["ann"]).await, TellOutcome::Refused(_)));
}
