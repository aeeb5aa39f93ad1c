//! Outputs above the bound of the hash: under a key of their own, found by every reader, gone with the job.

use std::time::Duration;

use hero::client::JobBuilder;
use hero::config::JobConfig;
use hero::proto::job::{BootId, Job, JobId, JobOutput, JobStatus};
use hero::proto::legacy::LegacyQueue;
use hero::proto::message::{Reply, ReplyOutcome};
use hero::store::{DeleteOutcome, NoInputs, Recorded, RetryOutcome, Store, Verdict};

use crate::foreign::acl::{PASSWORD, rules};
use crate::support::{Life, RETENTION, World, ids, job, keys, wait_until};

/// The bound, as `[job]` has it by default.
const INLINE_MAX: usize = 64 << 10;

fn large() -> String {
    "line \"1\"\n".repeat(INLINE_MAX / 9 + 1)
}

fn finished(output: impl Into<JobOutput>) -> Verdict {
    Verdict::Finished { output: output.into(), exit_code: None }
}

fn own_key(id: &str) -> String {
    format!("{}{id}", keys::prefix("OUTPUT"))
}

/// Submits a job and ends it with an output.
async fn ended(world: &World, life: &Life, job: Job, output: impl Into<JobOutput>) -> JobId {
    world.accepts(&[job]).await;
    let id = world.claim(life, 1).await.attempts.remove(0).id;
    assert_eq!(world.finish(life, &id, finished(output)).await, Recorded::Recorded);
    id
}

async fn output_of(world: &World, id: &JobId) -> Option<JobOutput> {
    world.store.jobs().job(id).await.expect("reading").expect("a job").expect("legal").output
}

/// The rules of a user that lacks the keys of one kind, as an access list of an older version does.
pub(super) fn rules_without(kind: &str) -> Vec<String> {
    let mut known = keys::kinds(&keys::keys());
    known.retain(|(of, _)| ![kind, "HERO"].contains(&of.as_str()));
    let mut rules = vec!["on".to_owned(), format!(">{PASSWORD}"), "+@all".to_owned()];
    rules.extend(known.iter().map(|(_, prefix)| format!("~{prefix}*")));
    rules
}

/// A store on the same Redis as a user with these rules, with the password of the rules.
pub(super) fn store_of(world: &World, user: &str, rules: &[String]) -> Store {
    world.redis.ask_with::<String, _>(&format!("ACL SETUSER {user}"), rules);
    let file = world.redis.folder().join("password");
    std::fs::write(&file, PASSWORD).expect("writing the password");
    let mut config = world.redis.config("hero");
    (config.username, config.password_file) = (Some(user.to_owned()), Some(file));
    Store::open(&config).expect("settings")
}

#[tokio::test]
async fn large_output_has_a_key_of_its_own_which_expires_with_the_job() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = ended(&world, &life, job("a"), large()).await;
    assert_eq!(
        (world.field("a", "output"), world.field("a", "output_key")),
        (None, Some(own_key("a")))
    );
    assert_eq!(world.redis.get::<String>(&own_key("a")), large());
    assert_eq!(world.redis.all("OUTPUT"), [own_key("a")]);
    let ttl = |key: &str| world.redis.ask::<u64>(&format!("PTTL {key}"));
    assert!(ttl(&own_key("a")).abs_diff(ttl(&keys::job("a"))) < 1000);
    let outcome = world.store.jobs().outcome(&id).await.expect("reading").expect("a job");
    assert_eq!(outcome, (JobStatus::Finished, Some(large().into_bytes())));
    let read = world.store.jobs().job(&id).await.expect("reading").expect("a job").expect("legal");
    assert_eq!(read.output, Some(large().into()));
    assert!(!read.extra.contains_key("output_key"));
}

#[tokio::test]
async fn output_at_the_bound_stays_in_the_hash() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let output = "x".repeat(INLINE_MAX);
    ended(&world, &life, job("a"), output.as_str()).await;
    assert_eq!(world.field("a", "output"), Some(output));
    assert_eq!(world.field("a", "output_key"), None);
    assert!(world.redis.all("OUTPUT").is_empty());
}

#[tokio::test]
async fn bound_may_be_raised_for_programs_that_read_the_hash_alone() {
    let (mut world, life) = (World::new(), Life::of("osis-default-1"));
    let settings = JobConfig { output_inline_max: 1 << 20, ..JobConfig::default() };
    world.store = world.store.clone().of_jobs(&settings);
    ended(&world, &life, job("a"), large()).await;
    assert_eq!(world.field("a", "output"), Some(large()));
    assert!(world.redis.all("OUTPUT").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn reply_has_the_whole_output_in_its_format_and_wakes_who_waits() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let mut link = world.store.blocking();
    let waits = tokio::spawn(async move {
        link.pop(&[keys::reply("a")], Duration::from_mins(1)).await.expect("a reply")
    });
    wait_until("the reply is awaited", || {
        world.redis.ask::<String>("INFO clients").contains("blocked_clients:1\r")
    });
    let id = ended(&world, &life, job("a"), large()).await;
    let reply = waits.await.expect("no panic").expect("before the time is over").entry;
    let reply = Reply::parse(&reply).expect("a legible reply");
    assert_eq!((reply.job_id, reply.ending), (id, ReplyOutcome::Finished(large().into())));

    let bytes = vec![0xff; INLINE_MAX + 1];
    ended(&world, &life, job("b"), bytes.clone()).await;
    let reply = Reply::parse(world.redis.list(&keys::reply("b"))[0].as_bytes()).expect("legible");
    assert_eq!(reply.ending, ReplyOutcome::Finished(bytes.into()));
    assert!((50..=60).contains(&world.redis.ttl(&keys::reply("b"))));

    let plain = JobBuilder::new("osis", "1").id("c").reply_format("plain");
    ended(&world, &life, plain.build().expect("legal"), large()).await;
    assert_eq!(world.redis.list(&keys::reply("c")), [large()]);

    let silent = JobBuilder::new("osis", "1").id("d").reply(false).build().expect("legal");
    ended(&world, &life, silent, large()).await;
    assert_eq!(world.redis.all("REPLY").len(), 2);
    assert_eq!(world.redis.all("OUTPUT").len(), 4);
}

#[tokio::test]
async fn dependents_get_large_outputs_up_to_the_bound_of_their_inputs() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let a = ended(&world, &life, job("a"), large()).await;
    let b = ended(&world, &life, job("b"), "small").await;
    let asked = [vec![a.clone(), b.clone()].into(), vec![b.clone()].into()];
    let (inputs, ..) = world.store.jobs().inputs(&asked, 1 << 20).await.expect("reading");
    let of = inputs[0].as_ref().expect("they fit");
    assert_eq!((of[&a].clone(), of[&b].as_deref()), (Some(large()), Some("small")));
    let (inputs, ..) = world.store.jobs().inputs(&asked, INLINE_MAX as u64).await.expect("reading");
    assert_eq!((&inputs[0], inputs[1].is_ok()), (&Err(NoInputs::TooLarge), true));
    let alone =
        world.store.jobs().inputs(&[vec![a].into()], INLINE_MAX as u64).await.expect("reading").0;
    assert_eq!(alone, [Err(NoInputs::TooLarge)]);
}

#[tokio::test]
async fn one_output_in_the_hash_above_the_bound_of_inputs_is_too_large() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let a = ended(&world, &life, job("a"), "x".repeat(101)).await;
    let bound = async |bytes| {
        world.store.jobs().inputs(&[vec![a.clone()].into()], bytes).await.expect("reading")
    };
    assert_eq!(bound(100).await.0, [Err(NoInputs::TooLarge)]);
    assert!(bound(101).await.0[0].is_ok());
}

#[tokio::test]
async fn output_that_is_gone_keeps_one_job_from_its_inputs_and_no_other() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let a = ended(&world, &life, job("a"), large()).await;
    let b = ended(&world, &life, job("b"), large()).await;
    world.redis.delete(&own_key("a"));
    let asked = [vec![b.clone(), a.clone()].into(), vec![b.clone()].into()];
    let (inputs, ..) = world.store.jobs().inputs(&asked, 1 << 20).await.expect("reading");
    let Err(NoInputs::Unreadable(id, error)) = &inputs[0] else { panic!("{:?}", inputs[0]) };
    assert_eq!(id, &a);
    assert!(error.to_string().contains("is gone"), "{error}");
    assert_eq!(inputs[1].as_ref().expect("its own is there")[&b], Some(large()));
}

#[tokio::test]
async fn message_whose_answer_is_gone_is_answered_with_an_error() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = ended(&world, &life, job("a"), large()).await;
    world.redis.set_job("a", "message {}");
    world.redis.delete(&own_key("a"));
    let end = world.store.brokers().message_end(&id).await.expect("reading").expect("an end");
    assert!(!end.is_finished && end.text.contains("cannot be read"), "{end:?}");
    assert!(end.text.contains(&own_key("a")), "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn state_and_text_of_an_end_are_read_at_once_though_the_job_runs_again() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = ended(&world, &life, job("a"), large()).await;
    world.redis.set_job("a", "message {}");
    let (store, of) = (world.store.clone(), id.clone());
    let reading = tokio::spawn(async move {
        for _ in 0..300 {
            let end = match store.brokers().message_end(&of).await {
                Ok(end) => end.expect("an end"),
                Err(error) if error.is_transient() => continue,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(end.text == "no", !end.is_finished, "{} bytes", end.text.len());
        }
    });
    let script = "local at = redis.call('TIME') redis.call('HSET', KEYS[1], 'updated_at', at[1] .. at[2]) \
        if ARGV[1] == 'error' then redis.call('HDEL', KEYS[1], 'output_key') \
        redis.call('HSET', KEYS[1], 'status', 'error', 'error', 'no') \
        else redis.call('HDEL', KEYS[1], 'error') \
        redis.call('HSET', KEYS[1], 'status', 'finished', 'output_key', 'x') end return 1";
    while !reading.is_finished() {
        for status in ["error", "finished"] {
            world.redis.ask_with::<i64, _>("EVAL", &[script, "1", &keys::job("a"), status]);
        }
    }
    reading.await.expect("state and text belong together");
}

#[tokio::test]
async fn broker_gets_a_large_answer_and_another_actor_still_writes_into_the_hash() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = ended(&world, &life, job("a"), large()).await;
    world.redis.set_job("a", "message {}");
    let end = world.store.brokers().message_end(&id).await.expect("reading").expect("an end");
    assert_eq!((end.is_finished, end.text), (true, large()));
    world.redis.set_job("foreign", "script 1 status finished output 42");
    let foreign: JobId = "foreign".parse().expect("legal");
    assert_eq!(output_of(&world, &foreign).await, Some("42".into()));
}

#[tokio::test]
async fn job_that_is_deleted_or_runs_again_takes_its_output_along() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let deleted = ended(&world, &life, job("a"), large()).await;
    world.store.jobs().delete(&deleted, RETENTION).await.expect("deleting");
    assert!(world.redis.all("OUTPUT").is_empty());

    let again = ended(&world, &life, job("b"), large()).await;
    let moved = world.store.jobs().retry(&again).await.expect("retrying");
    assert_eq!(moved, RetryOutcome::Moved(JobStatus::Dispatched));
    assert_eq!(world.field("b", "output_key"), None);
    assert!(world.redis.all("OUTPUT").is_empty());
    world.claim(&life, 1).await;
    world.finish(&life, &again, finished("small")).await;
    assert_eq!(output_of(&world, &again).await, Some("small".into()));

    let pushed = ended(&world, &life, job("c"), large()).await;
    world.redis.push(&keys::work("type:osis"), &["c"]);
    assert_eq!(world.adopt(&keys::work("type:osis")).await.again, ["c"]);
    let claimed = world.claim(&life, 1).await;
    assert!(claimed.attempts[0].job.as_ref().is_ok_and(|job| job.extra.is_empty()));
    assert!(world.redis.all("OUTPUT").is_empty());
    world.finish(&life, &pushed, finished(large())).await;
    assert_eq!(output_of(&world, &pushed).await, Some(large().into()));
}

#[tokio::test]
async fn output_is_gone_when_its_job_has_expired() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let short = JobBuilder::new("osis", "1").id("a").retention(Duration::from_millis(50));
    ended(&world, &life, short.reply(false).build().expect("legal"), large()).await;
    wait_until("the job has expired", || world.redis.all("JOB").is_empty());
    wait_until("its output has expired", || world.redis.all("OUTPUT").is_empty());
}

#[tokio::test]
async fn actor_without_the_job_stores_nothing() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let claimed_at = world.claimed_at(&life, &id);
    let other = Life { boot: BootId::random(), ..life.clone() };
    assert_eq!(
        world.finish_claimed(&other, &id, claimed_at, finished(large())).await,
        Recorded::Lost
    );
    // The same boot has claimed it once more.
    assert_eq!(
        world.finish_claimed(&life, &id, claimed_at - 2, finished(large())).await,
        Recorded::Before
    );
    assert!(world.redis.all("OUTPUT").is_empty() && world.redis.all("REPLY").is_empty());
    assert_eq!(world.status("a"), JobStatus::Started);
}

#[tokio::test]
async fn staged_output_without_an_end_expires_within_a_minute() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let claimed_at = world.claimed_at(&life, &id);
    world.redis.delete(&keys::job("a"));
    let ending = [world.ending(&life, id.clone(), finished(large()))];
    let recorded =
        world.store.attempts().finish(&life.boot, RETENTION, &ending).await.expect("recording");
    assert_eq!(recorded, [Recorded::Lost]);
    let staged = world.store.keys().staged_output(&id, &life.boot, claimed_at);
    let mut left = world.redis.all("OUTPUT");
    left.sort();
    assert_eq!(
        left,
        [staged.clone(), world.store.keys().staged_reply(&id, &life.boot, claimed_at)]
    );
    assert!(left.iter().all(|key| (1..=60).contains(&world.redis.ttl(key))), "{left:?}");
}

#[tokio::test]
async fn many_ends_in_one_call_keep_their_order_whatever_their_outputs() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs: Vec<Job> = (0..6).map(|number| job(&format!("j{number}"))).collect();
    world.accepts(&jobs).await;
    let claimed = world.claim(&life, 6).await.attempts;
    let verdicts = claimed.iter().enumerate().map(|(number, attempt)| {
        let error = Verdict::Error { error: large(), exit_code: None, dead: false };
        let verdict = match number % 3 {
            0 => finished(format!("{number}{}", large())),
            1 => finished(number.to_string()),
            _ => error,
        };
        world.ending(&life, attempt.id.clone(), verdict)
    });
    let mut endings: Vec<_> = verdicts.collect();
    endings[3].claimed_at -= 2;
    let recorded =
        world.store.attempts().finish(&life.boot, RETENTION, &endings).await.expect("recording");
    let mut expected = vec![Recorded::Recorded; 6];
    expected[3] = Recorded::Before;
    assert_eq!(recorded, expected);
    let first = output_of(&world, &claimed[0].id).await;
    assert_eq!(first, Some(format!("0{}", large()).into()));
    assert_eq!(output_of(&world, &claimed[4].id).await, Some("4".into()));
    assert_eq!(world.redis.all("OUTPUT"), [own_key("j0")]);
    let again = world
        .store
        .attempts()
        .finish(&life.boot, RETENTION, &endings[..1])
        .await
        .expect("recording");
    assert_eq!(again, [Recorded::Before]);
}

#[tokio::test]
async fn jobs_of_older_programs_keep_their_outputs_in_the_hash() {
    let (mut world, life) = (World::new(), Life::of("osis-default-1"));
    ended(&world, &life, job("rhai-x"), large()).await;
    assert_eq!(world.field("rhai-x", "output"), Some(large()));
    let queue = LegacyQueue {
        legacy: format!("{}w1", keys::prefix("LEGACY_WORK")),
        script_type: "osis".parse().expect("legal"),
        group: "default".parse().expect("legal"),
        instance: None,
    };
    world.store = world.store.clone().with_legacy_queues(&[queue]).expect("legal");
    ended(&world, &life, job("a"), large()).await;
    assert_eq!(world.field("a", "output"), Some(large()));
    assert!(world.redis.all("OUTPUT").is_empty());
}

#[tokio::test]
async fn output_whose_key_another_program_deleted_is_an_error_and_the_job_is_read() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = ended(&world, &life, job("a"), large()).await;
    world.redis.delete(&own_key("a"));
    let error = world.store.jobs().outcome(&id).await.expect_err("it is gone").to_string();
    assert!(error.contains(&format!("key {} is gone", own_key("a"))), "{error}");
    assert_eq!(output_of(&world, &id).await, None);
    // A field of this name that a submitter wrote means nothing.
    world.redis.set_job("b", "script 1 status dispatched output_key KEY");
    let own = world.store.jobs().job(&"b".parse().expect("legal")).await.expect("reading");
    assert_eq!(own.expect("a job").expect("legal").extra["output_key"], "KEY");
}

#[tokio::test]
async fn user_of_redis_without_the_new_keys_writes_into_the_hash() {
    let (mut world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let claimed_at = world.claimed_at(&life, &id);
    world.store = store_of(&world, "older", &rules_without("OUTPUT"));
    assert_eq!(
        world.finish_claimed(&life, &id, claimed_at, finished(large())).await,
        Recorded::Recorded
    );
    assert_eq!(world.field("a", "output"), Some(large()));
    assert_eq!(world.redis.list(&keys::reply("a")).len(), 1);
    // Also where an actor of this version has stored it.
    for named in [false, true] {
        if named {
            world.redis.set_job("a", "output_key KEY");
        }
        let moved = world.store.jobs().retry(&id).await.expect("retrying");
        assert_eq!(moved, RetryOutcome::Moved(JobStatus::Dispatched));
        assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
        assert_eq!(world.finish(&life, &id, finished("1")).await, Recorded::Recorded);
        if named {
            world.redis.set_job("a", "output_key KEY");
        }
        world.redis.push(&keys::work("type:osis"), &["a"]);
        assert_eq!(world.adopt(&keys::work("type:osis")).await.again, ["a"]);
        assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
        assert_eq!(world.finish(&life, &id, finished("2")).await, Recorded::Recorded);
    }
    let deleted = world.store.jobs().delete(&id, RETENTION).await.expect("deleting");
    assert_eq!(deleted, DeleteOutcome::Deleted);
    world.check();
}

#[tokio::test]
async fn output_and_reply_are_staged_with_their_expiry_or_not_at_all() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let ending = [world.ending(&life, id, finished(large()))];
    let rules = ["on", &format!(">{PASSWORD}"), "+@all", "~*", "-expire"].map(str::to_owned);
    let store = store_of(&world, "without-expire", &rules);
    // The script needs the command for other keys.
    let recorded = store.attempts().finish(&life.boot, RETENTION, &ending).await;
    let staged: Vec<String> = world.redis.all("OUTPUT");
    assert!(staged.iter().all(|key| world.redis.ttl(key) > 0), "{recorded:?}: {staged:?}");
}

#[tokio::test]
async fn users_of_the_shipped_example_may_store_read_and_delete_large_outputs() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id = world.started(&life, "a").await;
    let ending = [world.ending(&life, id.clone(), finished(large()))];
    let [actor, client, supervisor] = ["hero-actor", "hero-client", "hero-supervisor"]
        .map(|user| store_of(&world, user, &rules(user)));
    world.redis.run("ACL LOG RESET");
    let recorded =
        actor.attempts().finish(&life.boot, RETENTION, &ending).await.expect("recording");
    assert_eq!(recorded, [Recorded::Recorded]);
    assert_eq!(world.redis.all("OUTPUT"), [own_key("a")]);
    assert_eq!(world.redis.list(&keys::reply("a")).len(), 1);
    let whole = (JobStatus::Finished, Some(large().into_bytes()));
    for store in [&client, &supervisor] {
        assert_eq!(store.jobs().outcome(&id).await.expect("reading"), Some(whole.clone()));
    }
    let (inputs, ..) =
        actor.jobs().inputs(&[vec![id.clone()].into()], 1 << 20).await.expect("reading");
    assert_eq!(inputs[0].as_ref().expect("it fits")[&id], Some(large()));
    assert_eq!(
        client.jobs().delete(&id, RETENTION).await.expect("deleting"),
        DeleteOutcome::Deleted
    );
    assert!(world.redis.all("OUTPUT").is_empty());
    let denied: Vec<Vec<redis::Value>> = world.redis.ask("ACL LOG");
    assert!(denied.is_empty(), "{denied:#?}");
}
