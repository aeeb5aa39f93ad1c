//! Jobs that wait while another program makes a field illegal, and values that are no text.

use std::collections::BTreeMap;

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::store::{AttemptEnd, ListQuery, Verdict};
use jiff::Timestamp;

use crate::support::{Life, RETENTION, World, keys};

/// Fields that name a queue, and a value that is not legal.
const ILLEGAL: [(&str, &str); 4] =
    [("priority", "high"), ("group", "a:b"), ("instance", "0"), ("script_type", "Osis")];

/// The error of a job as an actor tells it.
fn told_by_an_actor(field: &str, value: &str) -> String {
    let id: JobId = "a".parse().expect("legal");
    let fields: [(&[u8], &[u8]); 2] = [(b"script", b"1"), (field.as_bytes(), value.as_bytes())];
    Job::from_hash(id, fields).expect_err(field).to_string()
}

fn after(id: &str, prerequisite: &str) -> Job {
    JobBuilder::new("osis", "1").id(id).after(prerequisite).build().expect("a legal job")
}

/// Ends a job without a look at the world, which has illegal fields in it.
async fn finish(world: &World, life: &Life, id: JobId) {
    let verdict = Verdict::Finished { output: "".into(), exit_code: None };
    let claimed_at = world.claimed_at(life, &id);
    let ends = [AttemptEnd { claimed_at, ..world.ending(life, id, verdict) }];
    world.store.attempts().finish(&life.boot, RETENTION, &ends).await.expect("finishing");
}

/// Checks that the job ended with the error of an actor, and that its dependent and the log were told.
async fn assert_ended(world: &World, fields: &[(&str, &str)]) {
    let notes = world.store.schedule().take_notes(100).await.expect("taken");
    for &(field, value) in fields {
        let error = told_by_an_actor(field, value);
        assert_eq!(world.field(field, "error").as_ref(), Some(&error));
        assert_eq!(world.status(field), JobStatus::Error);
        assert!(world.redis.ask::<i64>(&format!("PTTL {}", keys::job(field))) > 0);
        let dependent = world.field(&format!("after-{field}"), "error");
        assert_eq!(dependent, Some(format!("prerequisite failed: {field}")));
        let is_told = |text: &str| text.ends_with(&error);
        assert!(notes.iter().any(|note| note.job_id == field && is_told(&note.text)), "{notes:?}");
    }
}

#[tokio::test]
async fn job_that_a_program_pushed_takes_no_unique_key_within_the_scope_of_others() {
    let world = World::new();
    let work = keys::work("type:osis");
    for (id, scope, is_own) in [
        ("a", "bob/", false),
        ("b", "ann/work", false),
        ("c", "an/", false),
        ("d", "ann/home", true),
        ("e", "ann/", true),
    ] {
        let fields = format!(
            "script 1 script_type osis status dispatched caller_id ann context_id home unique_key k \
             unique_scope {scope}"
        );
        world.redis.set_job(id, &fields);
        world.redis.ask::<i64>(&format!("RPUSH {work} {id}"));
        world.adopt(&work).await;
        let (status, error) = (world.status(id), world.field(id, "error"));
        let why = "invalid job: unique_scope: is not of its caller and context".to_owned();
        let wanted =
            if is_own { (JobStatus::Dispatched, None) } else { (JobStatus::Error, Some(why)) };
        assert_eq!((status, error), wanted, "{id} {scope}");
    }
    let mut job = JobBuilder::new("osis", "1").id("bobs").caller_id("bob").unique_key("k");
    job = job.on_duplicate("reject");
    let mut job = job.build().expect("legal");
    job.unique_scope = Some("bob/".to_owned());
    assert_eq!(world.accepts(&[job]).await, [JobStatus::Dispatched], "the key of bob is free");
}

#[tokio::test]
async fn scheduled_job_with_an_illegal_field_ends_when_it_is_due() {
    let world = World::new();
    // Its index tells the type of a job that names no legal one.
    let fields = &ILLEGAL[..3];
    for &(field, value) in fields {
        let later = JobBuilder::new("osis", "1").id(field).run_at(Timestamp::now() + RETENTION);
        let later = later.build().expect("a legal job");
        world.accepts(&[later, after(&format!("after-{field}"), field)]).await;
        world.redis.set_field(&keys::job(field), field, value);
        world.redis.put(&keys::index("scheduled", "osis"), 1, field);
    }
    assert_eq!(world.store.schedule().dispatch_due(10, RETENTION).await.expect("looked").jobs, 0);
    assert_ended(&world, fields).await;
    assert_eq!(world.count("osis", "failed"), 6);
    world.check();
}

#[tokio::test]
async fn job_with_an_illegal_field_ends_when_its_prerequisite_does() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let first = world.started(&life, "first").await;
    for (field, _) in ILLEGAL {
        world.accepts(&[after(field, "first"), after(&format!("after-{field}"), field)]).await;
    }
    for (field, value) in ILLEGAL {
        world.redis.set_field(&keys::job(field), field, value);
    }
    finish(&world, &life, first).await;
    assert_ended(&world, &ILLEGAL).await;
    assert!(world.redis.all("PENDING").is_empty());
}

#[tokio::test]
async fn number_that_is_not_given_in_the_words_of_another_program_keeps_no_job_waiting() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let first = world.started(&life, "first").await;
    world.accepts(&[after("a", "first")]).await;
    world.redis.set_field(&keys::job("a"), "priority", "None");
    world.redis.set_field(&keys::job("a"), "instance", "null");
    finish(&world, &life, first).await;
    assert_eq!(world.work("type:osis"), ["a"]);
}

#[tokio::test]
async fn note_that_is_no_text_takes_no_other_with_it() {
    let world = World::new();
    let notes: [&[u8]; 3] =
        [b"\xff", b"[\"a\",\"osis\",\"ended: \xff\"]", b"[\"b\",\"osis\",\"ended\"]"];
    world.redis.push(&keys::prefix("NOTES"), &notes);
    let notes = world.store.schedule().take_notes(10).await.expect("taken");
    let ids: Vec<&str> = notes.iter().map(|note| note.job_id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[tokio::test]
async fn member_that_is_no_text_hides_no_other() {
    let world = World::new();
    let later = JobBuilder::new("osis", "1").id("a").run_at(Timestamp::now() + RETENTION);
    world.accepts(&[later.build().expect("a legal job")]).await;
    let bytes: &[u8] = b"\xff\xfe";
    let scored = ["GRAPHS", "ACTORS", "SUPERVISORS", "BOOTS", "LIMITS"].map(keys::prefix);
    for key in scored.iter().chain(&[keys::index("scheduled", "osis")]) {
        world.redis.ask_with::<i64, _>(&format!("ZADD {key} 99"), &[bytes]);
    }
    for key in ["PAUSED", "QUEUES", "TYPES"].map(keys::prefix) {
        world.redis.ask_with::<i64, _>(&format!("SADD {key}"), &[bytes]);
    }
    world.redis.ask_with::<i64, _>(&format!("HSET {} x", keys::tokens()), &[bytes]);
    let audit = keys::prefix("AUDIT");
    world.redis.ask_with::<String, _>(&format!("XADD {audit} *"), &[bytes, bytes]);
    let store = &world.store;
    let query = ListQuery { limit: 9, ..ListQuery::default() };
    assert_eq!(store.jobs().list(&query).await.expect("listed").items.len(), 1);
    assert!(store.graphs().list(9, None).await.expect("listed").items.is_empty());
    assert!(store.actors().list(None).await.expect("listed").is_empty());
    assert!(store.supervisors().list().await.expect("listed").is_empty());
    assert!(store.tokens().list().await.expect("listed").is_empty());
    assert_eq!(store.audit().list(0, None, 9, |_| true).await.expect("read").len(), 1);
    assert!(store.queues().pauses().await.expect("listed").names().is_empty());
    assert_eq!(store.queues().known_targets().await.expect("listed").len(), 1);
    assert!(store.limits().states(&BTreeMap::new()).await.is_ok());
}
