//! Waits of jobs and the events that end them: what the Lua scripts check before they write.

use std::time::Duration;

use hero::proto::job::JobId;
use hero::store::{AttemptEnd, Recorded, TellOutcome, Verdict};
use serde_json::{Value, json};

use crate::support::{Life, RETENTION, Redis, World, ids, job, keys};

fn waits(wait: &str, delay: Duration) -> Verdict {
    Verdict::Wait { wait: wait.to_owned(), exit_code: Some(0), delay }
}

const HOUR: Duration = Duration::from_hours(1);
const APPROVED: &str = "{\"event\":\"approved\"}";

async fn tell(world: &World, id: &JobId, event: &str, names: &[&str]) -> TellOutcome {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let json = json!({ "event": event, "data": null }).to_string();
    world.store.jobs().tell(id, (event, &json), &names).await.expect("told")
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
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"), "it goes on at once");
    assert_eq!(
        (world.field("a", "wait"), event(&world, "a")["event"].clone()),
        (None, json!("approved"))
    );
    assert_eq!(ids(&world.claim(&life, 2).await.attempts), ["a"]);
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatched");
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
    // All have ended: it goes on at once.
    world.claim(&life, 1).await;
    world.finish(&life, &id, waits("{\"jobs\":[\"one\",\"two\"]}", HOUR)).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    assert_eq!(event(&world, "a")["jobs"], json!({ "one": "error", "two": "finished" }));
}

#[tokio::test]
async fn wait_for_children_counts_their_states_and_names_those_that_failed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let (one, two) = (world.started(&life, "one").await, world.started(&life, "two").await);
    let children = "[\"one\",\"two\",\"three\"]";
    world.redis.set_field(&keys::job("a"), "children", children);
    world.finish(&life, &id, waits("{\"children\":true}", HOUR)).await;
    world.finish(&life, &one, Verdict::Finished { output: "1".into(), exit_code: None }).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"));
    let failed = Verdict::Error { error: "no".into(), exit_code: None, dead: false };
    world.finish(&life, &two, failed).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    let came = event(&world, "a");
    assert_eq!(came["children"], json!({ "finished": 1, "error": 1, "missing": 1 }));
    assert_eq!(came["failed"], json!(["two", "three"]));
    world.redis.run(&format!("HDEL {} children", keys::job("a")));
    world.claim(&life, 1).await;
    world.finish(&life, &id, waits("{\"children\":true}", HOUR)).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"), "it has none");
}

#[tokio::test]
async fn many_children_end_a_wait_after_the_last_of_them() {
    const CHILDREN: usize = 1200;
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let jobs: Vec<_> = (0..CHILDREN).map(|number| job(&format!("c{number}"))).collect();
    for some in jobs.chunks(100) {
        world.store.jobs().submit(some, true, HOUR).await.expect("submitted");
    }
    let names: Vec<String> = (0..CHILDREN).map(|number| format!("c{number}")).collect();
    world.redis.set_field(&keys::job("a"), "children", json!(names).to_string());
    world.finish(&life, &id, waits("{\"children\":true}", HOUR)).await;
    // The first of them end before the job is registered at the last.
    let end = async |count: usize| {
        let claimed = world.store_claim(&life, count).await;
        assert_eq!(claimed.len(), count);
        world.store_finish(&life, claimed).await;
    };
    for _ in 0..5 {
        end(100).await;
    }
    while world.store.schedule().settle(HOUR).await.expect("settled") {}
    for _ in 0..6 {
        end(100).await;
    }
    end(99).await;
    while world.store.schedule().settle(HOUR).await.expect("settled") {}
    assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"));
    end(1).await;
    while world.store.schedule().settle(HOUR).await.expect("settled") {}
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    let counts = json!({ "finished": CHILDREN, "error": 0, "missing": 0 });
    assert_eq!(event(&world, "a")["children"], counts);
    world.check();
}

#[tokio::test]
async fn state_of_a_job_of_another_caller_is_not_revealed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    for (other, field, value) in
        [("theirs", "caller_id", "eve"), ("child", "parent", "a"), ("graph", "graph_id", "g")]
    {
        world.started(&life, other).await;
        world.redis.set_field(&keys::job(other), "caller_id", "eve");
        world.redis.set_field(&keys::job(other), field, value);
    }
    world.redis.set_field(&keys::job("a"), "graph_id", "g");
    let graph = keys::keys().graph_jobs(&"g".parse().expect("legal"));
    world.redis.ask::<i64>(&format!("ZADD {graph} 0 a 1 graph"));
    world.redis.set_field(&keys::job("a"), "caller_id", "ann");
    world.finish(&life, &id, waits("{\"jobs\":[\"theirs\"]}", HOUR)).await;
    assert_eq!(event(&world, "a")["jobs"], json!({ "theirs": "missing" }));
    for seen in ["child", "graph"] {
        world.claim(&life, 1).await;
        world.finish(&life, &id, waits(&format!("{{\"jobs\":[\"{seen}\"]}}"), HOUR)).await;
        assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"), "{seen}");
        let seen: JobId = seen.parse().expect("legal");
        world.finish(&life, &seen, Verdict::Finished { output: "1".into(), exit_code: None }).await;
        assert_eq!(event(&world, "a")["jobs"], json!({ seen.as_str(): "finished" }));
    }
}

#[tokio::test]
async fn state_of_a_job_beyond_the_bounds_or_left_by_a_deleted_graph_is_not_revealed() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let bounds = r#"{"contexts":["work"]}"#;
    for (job, field, value) in [
        ("a", "caller_id", "ann"),
        ("a", "graph_id", "g"),
        ("a", "bounds", bounds),
        ("beyond", "caller_id", "ann"),
        // Its graph was deleted, and the one of `a` has the id now.
        ("left", "graph_id", "g"),
        ("left", "caller_id", "eve"),
        ("within", "caller_id", "ann"),
        ("within", "context_id", "work"),
    ] {
        if world.field(job, "status").is_none() {
            world.started(&life, job).await;
        }
        world.redis.set_field(&keys::job(job), field, value);
    }
    let graph = keys::keys().graph_jobs(&"g".parse().expect("legal"));
    world.redis.ask::<i64>(&format!("ZADD {graph} 0 a"));
    for other in ["beyond", "left"] {
        world.finish(&life, &id, waits(&format!("{{\"jobs\":[\"{other}\"]}}"), HOUR)).await;
        assert_eq!(event(&world, "a")["jobs"], json!({ other: "missing" }));
        world.claim(&life, 1).await;
    }
    world.finish(&life, &id, waits("{\"jobs\":[\"within\"]}", HOUR)).await;
    assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"));
}

/// Lets the next look at a job that waits be due.
fn make_due(redis: &Redis, id: &str) {
    redis.put(&keys::index("scheduled", "osis"), 1, id);
}

#[tokio::test]
async fn wait_that_an_older_version_did_not_end_is_found_by_a_later_sweep() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let (one, two) = (world.started(&life, "one").await, world.started(&life, "two").await);
    world.finish(&life, &id, waits("{\"jobs\":[\"one\",\"two\"]}", 2 * HOUR)).await;
    make_due(&world.redis, "a");
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("looked");
    assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"));
    assert!(world.field("a", "wait").is_some() && event(&world, "a").is_null());
    let soonest = world.store.schedule().dispatch_due(10, RETENTION).await.expect("looked").next;
    let soonest = soonest.expect("a next look");
    assert!(soonest <= HOUR && soonest > HOUR / 2, "{soonest:?}");
    for (id, key) in [(&one, "one"), (&two, "two")] {
        // An older version tells no job that waits so.
        world.redis.run(&format!("HDEL {} dependents", keys::job(key)));
        world.finish(&life, id, Verdict::Finished { output: "1".into(), exit_code: None }).await;
    }
    assert_eq!(world.field("a", "status").as_deref(), Some("scheduled"));
    make_due(&world.redis, "a");
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("looked");
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    assert_eq!(event(&world, "a")["jobs"], json!({ "one": "finished", "two": "finished" }));
    world.check();
}

#[tokio::test]
async fn keys_of_a_wrong_type_lose_no_wait() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let (a, b) = (world.started(&life, "a").await, world.started(&life, "b").await);
    let one = world.started(&life, "one").await;
    let index = keys::index("scheduled", "osis");
    let life_of = |id: &JobId| {
        let claimed_at = world.claimed_at(&life, id);
        AttemptEnd { claimed_at, ..world.ending(&life, id.clone(), waits(APPROVED, HOUR)) }
    };
    // Nobody would find it in the index: it runs again at once.
    let ends = [life_of(&a)];
    world.redis.spoil(&index);
    world.store.attempts().finish(&life.boot, HOUR, &ends).await.expect("recorded");
    assert_eq!(world.field("a", "status").as_deref(), Some("dispatched"));
    assert_eq!(event(&world, "a")["timeout"], true);
    world.redis.delete(&index);
    world.finish(&life, &b, waits("{\"jobs\":[\"one\"]}", HOUR)).await;
    world.redis.delete(&keys::pending("b"));
    world.redis.spoil(&keys::pending("b"));
    world.finish(&life, &one, Verdict::Finished { output: "1".into(), exit_code: None }).await;
    make_due(&world.redis, "b");
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("looked");
    assert_eq!(world.field("b", "status").as_deref(), Some("dispatched"));
    assert_eq!(event(&world, "b")["jobs"], json!({ "one": "finished" }));
    world.check();
}

#[tokio::test]
async fn job_that_names_no_queue_when_its_wait_is_over_ends() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let (id, one) = (world.started(&life, "a").await, world.started(&life, "one").await);
    world.finish(&life, &id, waits("{\"jobs\":[\"one\"]}", HOUR)).await;
    world.redis.set_field(&keys::job("a"), "priority", "high");
    world.finish(&life, &one, Verdict::Finished { output: "1".into(), exit_code: None }).await;
    let error = world.field("a", "error").unwrap_or_default();
    assert!(error.starts_with("invalid job: priority `high` is not legal: "), "{error}");
    assert_eq!(world.field("a", "wait"), None);
    world.check();
}

#[tokio::test]
async fn retry_forgets_the_events_and_waits_of_the_run_before() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    world.finish(&life, &id, waits(APPROVED, HOUR)).await;
    assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Told);
    assert_eq!(tell(&world, &id, "later", &["ann"]).await, TellOutcome::Kept);
    world.claim(&life, 1).await;
    let failed = Verdict::Error { error: "no".into(), exit_code: None, dead: false };
    world.finish(&life, &id, failed).await;
    assert_eq!(event(&world, "a")["event"], "approved", "it tells who approved what failed");
    world.store.jobs().retry(&id).await.expect("retried");
    for field in ["event", "wait", "waits", "told_events", "wait_ended_at"] {
        assert_eq!(world.field("a", field), None, "{field}");
    }
}

#[tokio::test]
async fn time_that_passes_ends_a_wait_with_a_timeout() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    world.finish(&life, &id, waits(APPROVED, Duration::ZERO)).await;
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatched");
    assert_eq!(
        (event(&world, "a")["timeout"].clone(), world.field("a", "wait")),
        (json!(true), None)
    );
    assert_eq!(event(&world, "a")["missed"], "approved");
    assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Missed);
    assert_eq!(world.claim(&life, 1).await.attempts.len(), 1);
    assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Missed, "it runs on");
    world.finish(&life, &id, waits(APPROVED, HOUR)).await;
    assert_eq!(tell(&world, &id, "approved", &["ann"]).await, TellOutcome::Told, "a next wait");
}

#[tokio::test]
async fn events_that_a_job_has_not_read_at_its_end_are_noted() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    for name in ["approved", "paid"] {
        assert_eq!(tell(&world, &id, name, &["ann"]).await, TellOutcome::Kept);
    }
    world.finish(&life, &id, Verdict::Finished { output: "1".into(), exit_code: None }).await;
    let notes: Vec<String> = world.redis.ask(&format!("LRANGE {} 0 -1", keys::keys().notes()));
    let text = "ended without having waited for what it was told: approved, paid";
    assert_eq!(notes, [json!(["a", "osis", text]).to_string()]);
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
