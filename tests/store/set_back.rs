//! A step back of Redis's clock, as its marks tell it: what was counted from a time that is in the future now waits for no
//! longer than its own time.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobStatus};
use hero::proto::notification::{MessagePlan, NotifyEvent, NotifyKind};
use hero::store::{JobEdit, Verdict};
use jiff::{SignedDuration, Timestamp};

use crate::support::{Life, RETENTION, World, ids, job, keys};

const HOUR: Duration = Duration::from_hours(1);
/// The length of the step.
const STEP: SignedDuration = SignedDuration::from_hours(10);

fn text(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Has the clock be set back, as the mark of the last look tells it.
async fn step_back(world: &World) {
    let last = Timestamp::now() + STEP;
    world.redis.set_field(&keys::prefix("MARKS"), "leases", last.as_microsecond());
    let look = async || {
        let found = world.store.recovery().boots(None, Duration::from_secs(9), 3, RETENTION).await;
        found.expect("recovering").was_set_back
    };
    assert!(look().await, "the step is noticed");
    world.store.recovery().shorten_waits().await.expect("shortening");
    assert!(!look().await, "once");
    world.check();
}

/// Moves the times of a scheduled job into the future, as if it had been written before the step. Returns when it is due.
fn write_before(world: &World, id: &str, fields: &[&str]) -> Timestamp {
    let key = keys::job(id);
    for name in fields {
        let time: Timestamp = world.field(id, name).expect("written").parse().expect("a time");
        world.redis.set_field(&key, name, text(time + STEP));
    }
    let due: Timestamp = world.field(id, "run_at").expect("written").parse().expect("a time");
    let score = u64::try_from(due.as_microsecond()).expect("positive");
    world.redis.put(&keys::index("scheduled", "osis"), score, id);
    due
}

fn due_of(world: &World, id: &str) -> Timestamp {
    world.field(id, "run_at").expect("written").parse().expect("a time")
}

#[tokio::test]
async fn delays_are_counted_from_a_step_back_and_named_times_stay() {
    let (world, index) = (World::new(), keys::index("scheduled", "osis"));
    let before = Timestamp::now() + STEP;
    let named = before + HOUR;
    let delayed = |n| JobBuilder::new("osis", "1").id(&format!("d{n}")).delay(HOUR);
    let at = |n| JobBuilder::new("osis", "1").id(&format!("n{n}")).run_at(named);
    let builders = (0..300).flat_map(|n| [delayed(n), at(n)]);
    let jobs: Vec<Job> = builders.map(|job| job.build().expect("legal")).collect();
    world.accepts(&jobs).await;
    // All are due at the same time, as those of a batch are.
    for job in &jobs {
        for (name, time) in [("created_at", before), ("run_at", named)] {
            world.redis.set_field(&keys::job(job.id.as_str()), name, text(time));
        }
        let score = u64::try_from(named.as_microsecond()).expect("positive");
        world.redis.put(&index, score, job.id.as_str());
    }
    let named: Vec<Timestamp> = (0..300).map(|n| due_of(&world, &format!("n{n}"))).collect();
    step_back(&world).await;
    let latest = Timestamp::now() + HOUR;
    for n in 0..300 {
        let id = format!("d{n}");
        assert!(due_of(&world, &id) <= latest, "{id}");
        let score: i64 = world.redis.ask(&format!("ZSCORE {index} {id}"));
        assert!(score <= latest.as_microsecond(), "{id}");
    }
    let after: Vec<Timestamp> = (0..300).map(|n| due_of(&world, &format!("n{n}"))).collect();
    assert_eq!(after, named);
}

#[tokio::test]
async fn retry_is_counted_from_a_step_back_unless_a_person_named_its_time_since() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&["a", "b"].map(job)).await;
    for id in ids(&world.claim(&life, 2).await.attempts) {
        let retry = Verdict::Retry { error: "busy".to_owned(), exit_code: None, delay: HOUR };
        world.finish(&life, &id.parse().expect("legal"), retry).await;
    }
    let edit = JobEdit { run_at: Some(Timestamp::now() + HOUR), ..JobEdit::default() };
    world.store.jobs().edit(&"b".parse().expect("legal"), &edit).await.expect("edited");
    let fields = ["run_at", "updated_at"];
    let [_, named] = ["a", "b"].map(|id| write_before(&world, id, &fields));
    step_back(&world).await;
    assert!(due_of(&world, "a") <= Timestamp::now() + HOUR);
    assert_eq!(due_of(&world, "b"), named);
    assert_eq!(world.status("a"), JobStatus::Scheduled);
}

#[tokio::test]
async fn message_that_gathers_events_is_delivered_after_a_step_back() {
    let world = World::new();
    let look = world.store.notifications().look().await.expect("read");
    let every_ms = u64::try_from(HOUR.as_millis()).expect("small");
    let mut plan = MessagePlan::new(look.now_ms + 10 * every_ms, look.states.clone(), 0);
    let event = NotifyEvent { kind: Some(NotifyKind::Failed), ..NotifyEvent::default() };
    for place in ["1-0", "2-0"] {
        let to = "ops".parse().expect("legal");
        plan.tell(&to, NotifyKind::Failed, &event, place, every_ms);
    }
    assert!(world.store.notifications().plan(&look, &plan, &[]).await.expect("planned"));
    assert!(world.store.notifications().take(9, HOUR).await.expect("asked").is_empty());
    step_back(&world).await;
    assert_eq!(world.store.notifications().take(9, HOUR).await.expect("taken").len(), 2);
    // Both are on their way now: another step gives them to nobody else.
    let due = keys::keys().notify_due();
    step_back(&world).await;
    assert!(world.store.notifications().take(9, HOUR).await.expect("asked").is_empty());
    let now = Timestamp::now().as_microsecond();
    let again: i64 = world.redis.ask(&format!("ZSCORE {due} ops-1-0"));
    assert!((now..=now + 601_000_000).contains(&again), "{again}");
}

#[tokio::test]
async fn unique_key_is_held_for_its_own_time_after_a_step_back() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let unique = |id: &str| {
        let job = JobBuilder::new("osis", "1").id(id).unique_key("k").unique_for(HOUR);
        job.build().expect("legal")
    };
    world.submit(&[unique("a")]).await;
    world.claim(&life, 1).await;
    world.redis.set_field(&keys::job("a"), "created_at", text(Timestamp::now() + STEP));
    let end = Verdict::Finished { output: "".into(), exit_code: None };
    world.finish(&life, &"a".parse().expect("legal"), end).await;
    let key = format!("{}k", keys::prefix("UNIQUE"));
    let ttl_s = i64::try_from(HOUR.as_secs()).expect("small");
    assert!((1..=ttl_s).contains(&world.redis.ttl(&key)), "it ended after the step");
    // It ended before the step.
    world.redis.run(&format!("PEXPIRE {key} {}", STEP.as_millis()));
    world.submit(&[unique("b")]).await;
    assert_eq!(world.field("b", "status"), None);
    assert!((1..=ttl_s).contains(&world.redis.ttl(&key)), "{}", world.redis.ttl(&key));
}

#[tokio::test]
async fn answer_of_a_message_is_taken_again_by_its_lease_after_a_step_back() {
    let world = World::new();
    let ended = keys::prefix("AMQP_ENDED") + "main";
    let far = Timestamp::now() + STEP;
    world.redis.put(&ended, u64::try_from(far.as_microsecond()).expect("positive"), "amqp-1");
    let lease = Duration::from_secs(15);
    let take = async || world.store.brokers().take_ends("main", 9, lease).await.expect("taken").ids;
    assert_eq!(take().await.len(), 1);
    assert!(take().await.is_empty());
}
