//! The attempts that a job keeps: those before its last.

use std::time::Duration;

use hero::proto::job::{AttemptOutcome, JobAttempt, JobId};
use hero::store::Verdict;

use crate::support::{Life, RETENTION, World, keys};

const LEASE: Duration = Duration::from_secs(15);

fn retry(error: &str) -> Verdict {
    Verdict::Retry { error: error.to_owned(), exit_code: None, delay: Duration::ZERO }
}

fn error(error: &str) -> Verdict {
    Verdict::Error { error: error.to_owned(), exit_code: None, dead: true }
}

fn finished() -> Verdict {
    Verdict::Finished { output: "1".into(), exit_code: None }
}

/// An actor that has appeared, so that its machine is known.
async fn life(world: &World) -> Life {
    let life = Life::of("osis-default-1");
    let (actor, presence) = (&life.actor, life.presence());
    world.store.actors().appear(actor, &presence, LEASE, None).await.expect("appearing");
    world.redis.delete(&keys::presence(&life.actor.to_string()));
    life
}

/// The attempts in the hash of job `a`.
fn attempts(world: &World) -> Vec<JobAttempt> {
    let text = world.field("a", "attempts").unwrap_or_else(|| "[]".to_owned());
    serde_json::from_str(&text).expect("attempts")
}

fn ends(world: &World) -> Vec<AttemptOutcome> {
    attempts(world).iter().map(|attempt| attempt.ended).collect()
}

/// Claims job `a`, also if it waits for its time.
async fn claimed(world: &World, life: &Life) -> JobId {
    // Two attempts that start within a millisecond would count as one.
    let before = world.field("a", "started_at");
    let now = || -> (u64, u64) { world.redis.ask("TIME") };
    let start = now();
    crate::support::wait_until("another millisecond", || {
        let later = now();
        later.0 > start.0 || later.1 / 1000 > start.1 / 1000 + 1
    });
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching");
    let id = world.claim(life, 1).await.attempts.remove(0).id;
    assert_ne!(world.field("a", "started_at"), before);
    id
}

#[tokio::test]
async fn job_that_ends_at_its_first_attempt_keeps_no_list_of_attempts() {
    let world = World::new();
    let life = life(&world).await;
    for (id, verdict) in [("f", finished()), ("e", error("x"))] {
        world.ended(&life, id, verdict).await;
        assert_eq!(world.field(id, "attempts"), None);
        assert_eq!(world.field(id, "hostname").as_deref(), Some("here"));
    }
}

#[tokio::test]
async fn each_attempt_that_is_not_the_last_is_kept_with_its_place_and_its_end() {
    let world = World::new();
    let first = life(&world).await;
    let id = world.started(&first, "a").await;
    world.finish(&first, &id, retry("no luck")).await;
    let id = claimed(&world, &first).await;
    world.give_back(&first, &[(id, None)]).await;
    claimed(&world, &first).await;
    world.set_lease(&first, 1);
    world.store.recovery().boots(None, Duration::ZERO, 3, RETENTION).await.expect("recovering");
    let second = life(&world).await;
    let id = claimed(&world, &second).await;
    world.finish(&second, &id, error("at last")).await;
    world.check();
    let kept = attempts(&world);
    let all = [AttemptOutcome::Error, AttemptOutcome::ReturnedAttempt, AttemptOutcome::Crashed];
    assert_eq!(ends(&world), all);
    assert_eq!(kept.iter().map(|of| of.attempt).collect::<Vec<_>>(), [Some(1), Some(2), Some(2)]);
    for attempt in &kept {
        assert_eq!(attempt.actor.as_deref(), Some("osis:default:1"));
        assert_eq!(attempt.hostname.as_deref(), Some("here"));
        assert!(attempt.ended_at.as_ref().is_some_and(|at| *at >= attempt.started_at));
    }
    assert_eq!(kept[0].error.as_deref(), Some("no luck"));
    assert_eq!(world.field("a", "hostname").as_deref(), Some("here"));
    assert_eq!(world.redis.ask::<u64>(&format!("HLEN {}", keys::keys().boot_hosts())), 1);

    world.store.jobs().retry(&id).await.expect("retrying");
    assert_eq!(attempts(&world)[3].error.as_deref(), Some("at last"));
    assert_eq!(world.field("a", "hostname"), None);
    let id = claimed(&world, &second).await;
    world.finish(&second, &id, finished()).await;
    world.store.jobs().retry(&id).await.expect("retrying");
    assert_eq!(ends(&world)[3..], [AttemptOutcome::Error, AttemptOutcome::Finished]);
}

#[tokio::test]
async fn attempts_are_bounded_in_number_and_bytes_and_always_text() {
    let world = World::new();
    let life = life(&world).await;
    let mut id = world.started(&life, "a").await;
    for number in 0..12 {
        world.finish(&life, &id, retry(&format!("{number}x{}", "é".repeat(1000)))).await;
        id = claimed(&world, &life).await;
    }
    let kept = attempts(&world);
    assert_eq!(kept.len(), 10);
    let error = kept[9].error.as_deref().expect("an error");
    assert!(error.starts_with("11x") && error.len() <= 300 && error.ends_with('é'), "{error}");
    // An actor of another program may write any bytes.
    world.redis.set_field(&keys::job("a"), "error", &b"\xc3\xa9 \xff"[..]);
    world.redis.set_job("a", "status error");
    world.store.jobs().retry(&id).await.expect("retrying");
    assert_eq!(attempts(&world)[9].error.as_deref(), Some("?? ?"));
    assert!(world.store.jobs().job(&id).await.expect("reading").expect("a job").is_ok());
}

#[tokio::test]
async fn field_of_the_same_name_that_another_program_wrote_stays() {
    let world = World::new();
    let life = life(&world).await;
    let id = world.started(&life, "a").await;
    for theirs in ["3", "{}", "[", "[1]"] {
        world.redis.set_field(&keys::job("a"), "attempts", theirs);
        world.finish(&life, &id, retry("x")).await;
        assert_eq!(world.field("a", "attempts").as_deref(), Some(theirs));
        claimed(&world, &life).await;
    }
}
