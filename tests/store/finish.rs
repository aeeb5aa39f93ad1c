//! Recording how attempts ended: the fence, what is written, replies, retries, dead letters.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::proto::job::{BootId, JobId, JobOutput, JobStatus, Retention};
use hero::proto::message::{Reply, ReplyOutcome as Ended};
use hero::store::{AttemptEnd, Recorded, Verdict};

use crate::support::{Life, RETENTION, World, ids, job, keys, line, wait_until};

fn finished(output: &str) -> Verdict {
    Verdict::Finished { output: output.into(), exit_code: None }
}

fn error(error: &str) -> Verdict {
    Verdict::Error { error: error.to_owned(), exit_code: None, dead: false }
}

fn dead(error: &str) -> Verdict {
    Verdict::Error { error: error.to_owned(), exit_code: Some(3), dead: true }
}

fn retry(delay: Duration) -> Verdict {
    Verdict::Retry { error: "no luck".to_owned(), exit_code: Some(4), delay }
}

#[tokio::test]
async fn a_finished_job_has_its_output_and_its_times_and_is_counted() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let verdict = Verdict::Finished { output: "42".into(), exit_code: Some(0) };
    assert_eq!(world.finish(&life, &id, verdict).await, Recorded::Recorded);
    let field = |name| world.field("a", name);
    assert_eq!(field("status").as_deref(), Some("finished"));
    assert_eq!(field("output").as_deref(), Some("42"));
    assert_eq!(field("exit_code").as_deref(), Some("0"));
    assert_eq!(field("error"), None);
    assert!(field("finished_at").is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok()));
    assert_eq!(world.indexes_of("a"), [keys::index("finished", "osis")]);
    assert_eq!((world.count("osis", "finished"), world.count("osis", "failed")), (1, 0));
    assert!(world.store.attempts().running(&life.boot, 9).await.expect("reading").is_empty());
}

#[tokio::test]
async fn an_ended_job_is_kept_for_its_retention_and_at_most_a_twentieth_longer() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "a", finished("1")).await;
    assert_kept(&world, &keys::job("a"), RETENTION);
}

#[track_caller]
fn assert_kept(world: &World, key: &str, asked: Duration) {
    let ttl_ms: i64 = world.redis.ask(&format!("PTTL {key}"));
    let least = i64::try_from(asked.as_millis()).expect("it fits");
    assert!((least - 60_000..=least + least / 20).contains(&ttl_ms), "{key}: {ttl_ms}");
}

#[tokio::test]
async fn jobs_that_end_together_do_not_expire_together_and_stay_in_the_order_of_their_ends() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let mut times = Vec::new();
    for number in 0..20 {
        let id = format!("j{number:02}");
        world.ended(&life, &id, finished("1")).await;
        assert_kept(&world, &keys::job(&id), RETENTION);
        times.push(world.redis.ask::<i64>(&format!("PTTL {}", keys::job(&id))));
    }
    let (first, last) = (times.iter().min().expect("times"), times.iter().max().expect("times"));
    let apart = Duration::from_millis((last - first).unsigned_abs());
    assert!(apart > RETENTION / 40, "they expire within {apart:?}");
    let index: Vec<String> =
        world.redis.ask(&format!("ZRANGE {} 0 -1", keys::index("finished", "osis")));
    assert!(index.is_sorted(), "{index:?}");
}

#[tokio::test]
async fn a_call_that_ends_sixteen_jobs_trims_the_indexes_of_their_ends() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let names: Vec<String> = (0..16).map(|number| format!("job-{number}")).collect();
    let mut endings = Vec::new();
    for name in &names {
        let id = world.started(&life, name).await;
        endings.push(world.ending(&life, id, finished("1")));
    }
    let index = keys::index("finished", "osis");
    world.redis.put(&index, 1, "past");
    world.redis.put(&index, 9_000_000_000_000_000, "kept");
    let recorded =
        world.store.attempts().finish(&life.boot, RETENTION, &endings).await.expect("recording");
    assert_eq!(recorded, vec![Recorded::Recorded; 16]);
    let left = world.redis.members(&index);
    assert_eq!(left.len(), 17, "{left:?}");
    assert!(!left.contains(&"past".to_owned()), "{left:?}");
}

#[tokio::test]
async fn a_job_is_kept_for_as_long_as_it_says_itself_within_the_bound() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let retention = Retention { max: 3 * RETENTION, ..RETENTION.into() };
    let kept = |id: &str, asked: Duration| {
        JobBuilder::new("osis", "1").id(id).retention(asked).build().expect("legal")
    };
    let half = Duration::from_mins(30);
    world.accepts(&[kept("short", half), kept("long", 2 * RETENTION), job("plain")]).await;
    world.accepts(&[kept("longest", 1000 * RETENTION), kept("stopped", half)]).await;
    world.accepts(&[job("odd")]).await;
    world.redis.set_job("odd", "retention soon");
    let long: JobId = "long".parse().expect("legal");
    world
        .store
        .logs()
        .append(&life.boot, [(&long, &line(1, "x"))], half)
        .await
        .expect("writing a log");
    let stopped = "stopped".parse().expect("legal");
    world.store.jobs().stop(&stopped, retention, None).await.expect("stopping");
    let claimed = world.claim(&life, 9).await;
    let endings: Vec<AttemptEnd> = claimed
        .attempts
        .iter()
        .map(|attempt| world.ending(&life, attempt.id.clone(), finished("1")))
        .collect();
    world.store.attempts().finish(&life.boot, retention, &endings).await.expect("finishing");
    world.check();
    for (key, asked) in [
        (keys::job("short"), half),
        (keys::job("stopped"), half),
        (keys::job("plain"), RETENTION),
        (keys::job("long"), 2 * RETENTION),
        (keys::log("long"), 2 * RETENTION),
        (keys::job("longest"), 3 * RETENTION),
        (keys::job("odd"), RETENTION),
    ] {
        assert_kept(&world, &key, asked);
    }
}

#[tokio::test]
async fn job_that_failed_is_kept_longer_unless_it_says_otherwise_and_a_stopped_one_is_counted() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let retention = Retention { failed: 7 * RETENTION, max: 9 * RETENTION, ..RETENTION.into() };
    let own = JobBuilder::new("osis", "1").id("own").retention(2 * RETENTION).build();
    world.accepts(&[job("failed"), own.expect("legal"), job("good"), job("stopped")]).await;
    let failed: JobId = "failed".parse().expect("legal");
    world
        .store
        .logs()
        .append(&life.boot, [(&failed, &line(1, "x"))], RETENTION)
        .await
        .expect("writing a log");
    let stopped = "stopped".parse().expect("legal");
    world.store.jobs().stop(&stopped, retention, None).await.expect("stopping");
    let claimed = world.claim(&life, 9).await;
    let ends = |id: &JobId| if id.as_str() == "good" { finished("1") } else { error("no") };
    let endings: Vec<AttemptEnd> = claimed
        .attempts
        .iter()
        .map(|attempt| world.ending(&life, attempt.id.clone(), ends(&attempt.id)))
        .collect();
    world.store.attempts().finish(&life.boot, retention, &endings).await.expect("finishing");
    world.check();
    for (key, kept) in [
        (keys::job("failed"), 7 * RETENTION),
        (keys::log("failed"), 7 * RETENTION),
        (keys::job("stopped"), 7 * RETENTION),
        (keys::job("own"), 2 * RETENTION),
        (keys::job("good"), RETENTION),
    ] {
        assert_kept(&world, &key, kept);
    }
    assert_eq!([world.count("osis", "failed"), world.count("osis", "cancelled")], [2, 1]);
}

#[tokio::test]
async fn the_reply_holds_the_output_or_the_error_and_lasts_a_minute() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let odd = "line 1\nline \"2\" \u{1f680} / \u{1}";
    let long = odd.repeat(4096);
    world.ended(&life, "a", finished(odd)).await;
    world.ended(&life, "b", error("broke")).await;
    world.ended(&life, "c", finished(&long)).await;
    for (id, ending) in [
        ("a", Ended::Finished(odd.into())),
        ("b", Ended::Error("broke".to_owned())),
        ("c", Ended::Finished(long.into())),
    ] {
        let key = keys::reply(id);
        let replies = world.redis.list(&key);
        assert_eq!(replies.len(), 1);
        let reply = Reply::parse(replies[0].as_bytes()).expect("a legible reply");
        assert_eq!((reply.job_id.as_str(), reply.ending), (id, ending));
        let ttl_s = world.redis.ttl(&key);
        assert!((50..=60).contains(&ttl_s), "{ttl_s}");
    }
}

#[tokio::test]
async fn output_that_is_not_utf8_is_kept_and_its_reply_is_base64() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.accepts(&[JobBuilder::new("osis", "1").id("b").after("a").build().expect("legal")]).await;
    let output = JobOutput::from(b"\xffa\0\n".to_vec());
    let verdict = Verdict::Finished { output: output.clone(), exit_code: None };
    world.finish(&life, &own, verdict).await;
    let outcome = world.store.jobs().outcome(&own).await.expect("reading").expect("a job");
    assert_eq!(outcome, (JobStatus::Finished, Some(b"\xffa\0\n".to_vec())));
    let job = world.store.jobs().job(&own).await.expect("reading").expect("a job").expect("legal");
    assert_eq!(job.output.as_ref(), Some(&output));
    let replies = world.redis.list(&keys::reply("a"));
    let reply: serde_json::Value = serde_json::from_str(&replies[0]).expect("JSON");
    assert_eq!(
        (&reply["output"], &reply["output_encoding"]),
        (&"/2EACg==".into(), &"base64".into())
    );
    let reply = Reply::parse(replies[0].as_bytes()).expect("a legible reply");
    assert_eq!(reply.ending, Ended::Finished(output));
    let (inputs, with_files, ..) =
        world.store.jobs().inputs(&[vec![own.clone()].into()], 100).await.expect("reading");
    assert!(with_files.is_empty());
    assert_eq!(inputs[0].as_ref().expect("small")[&own].as_deref(), Some("/2EACg=="));
}

#[tokio::test]
async fn job_submitted_without_reply_pushes_none() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let job = JobBuilder::new("osis", "1").id("a").reply(false).build().expect("legal");
    world.accepts(&[job]).await;
    let id = world.claim(&life, 1).await.attempts.remove(0).id;
    world.finish(&life, &id, finished("1")).await;
    assert_eq!(world.status("a"), JobStatus::Finished);
    assert!(world.redis.all("REPLY").is_empty());
}

#[tokio::test]
async fn a_reply_list_of_another_type_costs_the_reply_and_not_the_job() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.spoil(&keys::reply("a"));
    world.ended(&life, "a", finished("1")).await;
    assert_eq!(world.status("a"), JobStatus::Finished);
}

#[tokio::test]
async fn another_boot_cannot_finish_a_job_and_writes_nothing() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let other = Life { boot: BootId::random(), ..life.clone() };
    let before: Vec<String> = world.redis.ask(&format!("HGETALL {}", keys::job("a")));
    assert_eq!(world.finish(&other, &id, finished("stolen")).await, Recorded::Lost);
    assert_eq!(world.redis.ask::<Vec<String>>(&format!("HGETALL {}", keys::job("a"))), before);
    assert!(world.redis.all("REPLY").is_empty());
    assert_eq!(world.count("osis", "finished"), 0);
    assert_eq!(world.finish(&life, &id, finished("mine")).await, Recorded::Recorded);
    assert_eq!(world.field("a", "output").as_deref(), Some("mine"));
}

#[tokio::test]
async fn an_ending_that_is_recorded_twice_counts_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    for (id, verdict) in [("a", finished("1")), ("b", dead("x")), ("c", retry(RETENTION))] {
        let id = world.ended(&life, id, verdict.clone()).await;
        assert_eq!(world.finish(&life, &id, verdict).await, Recorded::Before, "{id}");
    }
    assert_eq!(world.redis.list(&keys::reply("a")).len(), 1);
    assert_eq!(world.redis.list(&keys::dead("osis")), ["b"]);
    let counted = ["finished", "failed", "dead", "retried"].map(|what| world.count("osis", what));
    assert_eq!(counted, [1; 4]);
}

#[tokio::test]
async fn an_ending_that_arrives_again_late_does_not_end_the_next_attempt_of_the_same_boot() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let first = world.claimed_at(&life, &id);
    let again = || retry(Duration::ZERO);
    assert_eq!(world.finish(&life, &id, again()).await, Recorded::Recorded);
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching");
    let second = world.claim(&life, 1).await.attempts.remove(0);
    assert!(second.claimed_at > first);
    assert_eq!(second.claimed_at, world.claimed_at(&life, &id));
    assert_eq!(world.finish_claimed(&life, &id, first, again()).await, Recorded::Before);
    assert_eq!(world.status("a"), JobStatus::Started);
    let end = finished("1");
    assert_eq!(world.finish_claimed(&life, &id, second.claimed_at, end).await, Recorded::Recorded);
    assert_eq!(world.field("a", "attempt").as_deref(), Some("2"));
    assert_eq!(world.count("osis", "retried"), 1);
}

#[tokio::test]
async fn postponed_job_is_scheduled_without_an_attempt_lost_and_finishes_without_the_error() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    for times in ["1", "2"] {
        let error = "busy".to_owned();
        let later = Verdict::Postpone { error, exit_code: Some(75), delay: Duration::ZERO };
        assert_eq!(world.finish(&life, &id, later).await, Recorded::Recorded);
        assert_eq!(world.status("a"), JobStatus::Scheduled);
        let fields = ["attempt", "postponed", "error", "exit_code"].map(|of| world.field("a", of));
        assert_eq!(fields.map(Option::unwrap_or_default), ["0", times, "busy", "75"]);
        world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching");
        assert_eq!(world.claim(&life, 1).await.attempts.len(), 1);
    }
    assert_eq!(world.finish(&life, &id, finished("1")).await, Recorded::Recorded);
    assert_eq!(world.field("a", "attempt").as_deref(), Some("1"));
    assert_eq!((world.field("a", "error"), world.field("a", "exit_code")), (None, None));
    let counted = ["postponed", "retried", "finished"].map(|what| world.count("osis", what));
    assert_eq!(counted, [2, 0, 1]);
    let attempts = world.field("a", "attempts").expect("two before the last");
    assert_eq!(attempts.matches("\"ended\":\"postponed\"").count(), 2, "{attempts}");
}

#[tokio::test]
async fn postponed_job_that_is_to_stop_ends() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    world.redis.set_job("a", "stop_requested 1");
    let later = Verdict::Postpone { error: "busy".into(), exit_code: None, delay: Duration::ZERO };
    assert_eq!(world.finish(&life, &id, later).await, Recorded::Recorded);
    assert_eq!(world.status("a"), JobStatus::Error);
    assert_eq!(world.field("a", "error").as_deref(), Some("stopped_by_request"));
}

#[tokio::test]
async fn a_job_whose_hash_was_removed_while_it_ran_is_lost_and_leaves_nothing_behind() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    world.redis.delete(&keys::job("a"));
    assert_eq!(world.finish(&life, &id, finished("1")).await, Recorded::Lost);
    for kind in ["JOB", "REPLY"] {
        assert_eq!(world.redis.all(kind), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn many_endings_are_recorded_in_one_call_each_by_itself() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs: Vec<_> = (0..100).map(|n| job(&format!("j{n:02}"))).collect();
    world.accepts(&jobs).await;
    let claimed = world.claim(&life, 99).await;
    let mut endings: Vec<AttemptEnd> = claimed
        .attempts
        .iter()
        .map(|attempt| world.ending(&life, attempt.id.clone(), finished(attempt.id.as_str())))
        .collect();
    // The last one was never claimed.
    endings.insert(50, AttemptEnd { id: jobs[99].id.clone(), ..endings[0].clone() });
    let recorded = world
        .store
        .attempts()
        .finish(&life.boot, RETENTION, &endings)
        .await
        .expect("recording endings");
    world.check();
    for (number, recorded) in recorded.iter().enumerate() {
        let expected = if number == 50 { Recorded::Lost } else { Recorded::Recorded };
        assert_eq!(*recorded, expected, "ending {number}");
    }
    assert_eq!(world.field("j07", "output").as_deref(), Some("j07"));
    assert_eq!(world.status("j99"), JobStatus::Dispatched);
}

#[tokio::test]
async fn a_failed_attempt_waits_in_the_schedule_and_comes_back_with_its_attempt_charged() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let delay = Duration::from_millis(50);
    assert_eq!(world.finish(&life, &id, retry(delay)).await, Recorded::Recorded);
    assert_eq!(world.status("a"), JobStatus::Scheduled);
    assert_eq!(world.field("a", "error").as_deref(), Some("no luck"));
    assert_eq!(world.field("a", "exit_code").as_deref(), Some("4"));
    assert_eq!(world.count("osis", "retried"), 1);
    assert!(world.redis.all("REPLY").is_empty(), "a retry is no end");
    let mut dispatched = 0;
    let due = world.redis.score(&keys::index("scheduled", "osis"), "a").expect("it is scheduled");
    wait_until("the retry is due", || {
        let (s, us): (f64, f64) = world.redis.ask("TIME");
        s * 1e6 + us > due
    });
    dispatched +=
        world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching").jobs;
    world.check();
    assert_eq!((dispatched, world.status("a")), (1, JobStatus::Dispatched));
    let again = world.claim(&life, 1).await;
    assert_eq!(again.attempts[0].job.as_ref().expect("a job").attempt, 2);
    world.finish(&life, &id, finished("at last")).await;
    assert_eq!(world.field("a", "error"), None, "a job that finished has no error");
    assert_eq!(world.field("a", "exit_code"), None, "the exit code belonged to another attempt");
}

#[tokio::test]
async fn a_retry_is_not_due_before_its_delay() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "a", retry(Duration::from_secs(1000))).await;
    let found = world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching");
    let (dispatched, next) = (found.jobs, found.next);
    assert_eq!(dispatched, 0);
    let next = next.expect("one is scheduled").as_secs();
    assert!((900..=1000).contains(&next), "{next}");
    assert_eq!(world.status("a"), JobStatus::Scheduled);
}

#[tokio::test]
async fn a_job_that_used_up_its_attempts_is_a_dead_letter() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "a", dead("boom")).await;
    world.ended(&life, "b", error("invalid")).await;
    assert_eq!(world.redis.list(&keys::dead("osis")), ["a"]);
    assert_eq!((world.count("osis", "dead"), world.count("osis", "failed")), (1, 2));
    assert_eq!(world.field("a", "error").as_deref(), Some("boom"));
    assert_eq!(world.field("a", "exit_code").as_deref(), Some("3"));
}

#[tokio::test]
async fn a_dead_letter_list_of_another_type_costs_no_job() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.spoil(&keys::dead("osis"));
    world.ended(&life, "a", dead("boom")).await;
    assert_eq!(world.status("a"), JobStatus::Error);
    world.store.stats().sample(Duration::ZERO).await.expect("sampling goes on");
}

#[tokio::test]
async fn jobs_given_back_are_at_the_front_in_order_with_no_attempt_charged() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs: Vec<_> = ["a", "b", "c", "d", "e"].map(job).into();
    world.accepts(&jobs).await;
    let claimed = world.claim(&life, 3).await;
    let back: Vec<_> =
        claimed.attempts.iter().map(|a| (a.id.clone(), Some(a.queue.clone()))).collect();
    assert_eq!(world.give_back(&life, &back).await, 3);
    world.check();
    assert_eq!(world.work("type:osis"), ["a", "b", "c", "d", "e"]);
    let ready = world.redis.members(&keys::ready("type:osis"));
    assert_eq!(ready, ["a", "b", "c", "d", "e"]);
    for name in ["started_at", "actor", "boot_id"] {
        assert_eq!(world.field("a", name), None, "{name}");
    }
    assert_eq!(world.field("a", "crashes"), None);
    let again = world.claim(&life, 5).await;
    assert_eq!(ids(&again.attempts), ["a", "b", "c", "d", "e"]);
    assert!(again.attempts.iter().all(|a| a.job.as_ref().is_ok_and(|job| job.attempt == 1)));
}

#[tokio::test]
async fn a_job_given_back_twice_or_by_another_boot_is_in_its_queue_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let back = [(id.clone(), None)];
    let other = BootId::random();
    assert_eq!(world.give_back(&Life { boot: other, ..life.clone() }, &back).await, 0);
    assert_eq!(world.status("a"), JobStatus::Started);
    assert_eq!(world.give_back(&life, &back).await, 1);
    assert_eq!(world.give_back(&life, &back).await, 0);
    world.check();
    assert_eq!(world.work("type:osis"), ["a"]);
    assert_eq!(world.finish(&life, &id, finished("late")).await, Recorded::Lost);
}

#[tokio::test]
async fn a_job_without_a_type_of_its_own_goes_back_to_the_queue_it_came_from() {
    let (world, life) = (World::new(), Life::of("osis-io-3"));
    world.redis.set_job("a", "id a script 1 status dispatched");
    world.redis.push(&keys::work("type:osis:group:io:prio:2"), &["a"]);
    let attempt = world.claim(&life, 1).await.attempts.remove(0);
    let back = [(attempt.id, Some(attempt.queue))];
    world.give_back(&life, &back).await;
    assert_eq!(world.work("type:osis:group:io:prio:2"), ["a"]);
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
}

#[tokio::test]
async fn an_ended_job_of_an_illegal_type_is_kept_under_the_type_of_its_actor_and_can_be_deleted() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.set_job("a", "id a script 1 status dispatched script_type Osis");
    world.redis.push(&keys::work("type:osis"), &["a"]);
    let attempt = world.claim(&life, 1).await.attempts.remove(0);
    let invalid = attempt.job.expect_err("an illegal type");
    let ending = world.ending(&life, attempt.id.clone(), error(&invalid.to_string()));
    world.store.attempts().finish(&life.boot, RETENTION, &[ending]).await.expect("finishing");
    assert_eq!(world.indexes_of("a"), [keys::index("error", "osis")]);
    world.store.jobs().delete(&attempt.id, RETENTION).await.expect("deleting");
    world.check();
}
