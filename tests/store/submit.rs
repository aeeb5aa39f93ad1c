//! Submitting: the index of a new job, refusals, and that a refused job writes nothing.

use std::time::Duration;

use hero::client::{Client, ClientError, JobBuilder};
use hero::config::JobConfig;
use hero::error::Exit;
use hero::proto::job::{Job, JobStatus};
use hero::store::{Submitted, Verdict};

use crate::support::{Life, RETENTION, Redis, World, ids, job, keys, queue};

fn unique(id: &str, key: &str) -> Job {
    JobBuilder::new("osis", "1").id(id).unique_key(key).build().expect("a legal job")
}

fn finished() -> Verdict {
    Verdict::Finished { output: "".into(), exit_code: None }
}

#[tokio::test]
async fn a_submitted_job_is_in_its_queue_and_writes_no_field_at_its_default() {
    let world = World::new();
    assert_eq!(world.accepts(&[job("a")]).await, [JobStatus::Dispatched]);
    assert_eq!(world.work("type:osis"), ["a"]);
    let mut names: Vec<String> = world.redis.ask(&format!("HKEYS {}", keys::job("a")));
    names.sort();
    assert_eq!(names, ["created_at", "script", "script_type", "status"]);
    let queues: Vec<String> = world.redis.ask(&format!("SMEMBERS {}", keys().queues()));
    assert_eq!(queues, ["type:osis"]);
}

#[tokio::test]
async fn a_job_reads_back_as_it_was_submitted() {
    let world = World::new();
    let job = JobBuilder::new("python", "print('\u{e9}\0')")
        .group("io")
        .instance(3)
        .priority(2)
        .timeout(Duration::from_millis(1500))
        .retries(4)
        .concurrent(false)
        .env("A", "b=\"c\"")
        .caller_id("me")
        .context_id("here")
        .log_path("a/b.log")
        .reply(false)
        .build()
        .expect("a legal job");
    world.accepts(std::slice::from_ref(&job)).await;
    let read =
        world.store.jobs().job(&job.id).await.expect("reading").expect("there").expect("legal");
    let (status, created_at) = (JobStatus::Dispatched, read.created_at);
    let expected = Job { status, created_at, has_fixed_id: true, ..job.clone() };
    assert!(read.created_at.is_some());
    assert_eq!(read, expected);
    assert_eq!(world.work("type:python:group:io:inst:3:prio:2"), [job.id.as_str()]);
}

#[tokio::test]
async fn replaced_job_names_the_new_one_to_those_alone_who_may_see_both() {
    let world = World::new();
    let replacing = |id: &str| {
        let builder = JobBuilder::new("osis", "1").id(id).unique_key("k").caller_id("ann");
        builder.on_duplicate("replace")
    };
    let submit = async |new: JobBuilder| {
        let new = new.build().expect("a legal job");
        world.store.jobs().submit(&[new], true, RETENTION).await.expect("redis answers");
    };
    let mut before = "a";
    submit(replacing("a")).await;
    for (id, new, is_named) in [
        ("b", replacing("b"), true),
        ("c", replacing("c").caller_id("bob"), false),
        ("d", replacing("d"), false),
        ("e", replacing("e").group("io"), false),
        ("f", replacing("f"), false),
        ("g", replacing("g").context_id("home"), false),
        ("h", replacing("h").context_id("home"), true),
    ] {
        submit(new).await;
        let named = format!("replaced by job {id}");
        let wanted = if is_named { named.as_str() } else { "replaced by another job" };
        assert_eq!(world.field(before, "error").as_deref(), Some(wanted), "{before}");
        before = id;
    }
    assert_eq!(world.count("osis", "failed"), 0, "none of them failed");
}

#[tokio::test]
async fn replacing_job_takes_the_place_of_one_that_waits_and_of_no_other() {
    let world = World::new();
    let replacing = |id: &str| {
        let builder = JobBuilder::new("osis", "1").id(id).unique_key("k");
        builder.on_duplicate("replace").build().expect("a legal job")
    };
    let submit = async |id: &str| {
        let answers =
            world.store.jobs().submit(&[job("other"), replacing(id)], true, RETENTION).await;
        answers.expect("redis answers").pop().expect("two answers")
    };
    let dispatched = Submitted::Accepted(JobStatus::Dispatched);
    assert_eq!(submit("a").await, dispatched);
    assert_eq!(submit("b").await, dispatched);
    let field = |id: &str, name: &str| world.field(id, name);
    assert_eq!(field("a", "error").as_deref(), Some("replaced by job b"));
    assert_eq!(world.work("type:osis"), ["other", "b"]);
    assert_eq!(submit("a").await, Submitted::Exists);
    assert_eq!(field("b", "status").as_deref(), Some("dispatched"));
    let life = Life::of("osis-default-1");
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["other", "b"]);
    assert_eq!(submit("c").await, Submitted::Duplicate("b".parse().ok()));
    assert_eq!(field("c", "status"), None);
}

#[tokio::test]
async fn an_id_that_is_taken_is_refused_and_the_job_that_has_it_stays_as_it_is() {
    let world = World::new();
    world.accepts(&[job("a")]).await;
    let other = JobBuilder::new("sal", "2").id("a").build().expect("legal");
    assert_eq!(world.submit(&[other]).await, [Submitted::Exists]);
    assert_eq!(world.field("a", "script").as_deref(), Some("1"));
    assert_eq!(world.work("type:osis"), ["a"]);
    assert_eq!((world.count("osis", "submitted"), world.count("sal", "submitted")), (1, 0));
}

#[tokio::test]
async fn jobs_of_one_call_are_accepted_or_refused_each_by_itself_and_keep_their_order() {
    let world = World::new();
    let orphan = JobBuilder::new("osis", "1").id("o").after("nobody").build().expect("legal");
    let submitted = world.submit(&[job("a"), orphan, job("a"), job("b")]).await;
    let dispatched = Submitted::Accepted(JobStatus::Dispatched);
    assert_eq!(
        submitted,
        [
            dispatched.clone(),
            Submitted::UnknownPrerequisite("nobody".to_owned()),
            Submitted::Exists,
            dispatched
        ]
    );
    assert_eq!(world.work("type:osis"), ["a", "b"]);
    assert_eq!(world.redis.all("JOB"), [keys::job("a"), keys::job("b")]);
}

#[tokio::test]
async fn a_large_batch_is_submitted_and_claimed_in_bounded_steps_in_order() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs: Vec<Job> = (0..1000).map(|n| job(&format!("j{n:04}"))).collect();
    world.accepts(&jobs).await;
    let mut claimed = Vec::new();
    while claimed.len() < 1000 {
        let some = world.claim(&life, 1000 - claimed.len()).await;
        assert!(some.more || claimed.len() + some.attempts.len() == 1000);
        assert!((1..=128).contains(&some.attempts.len()));
        claimed.extend(some.attempts);
    }
    assert!(claimed.iter().zip(&jobs).all(|(attempt, job)| attempt.id == job.id));
}

#[tokio::test]
async fn while_a_job_holds_a_unique_key_another_creates_nothing() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[unique("a", "daily report")]).await;
    let holder = Submitted::Duplicate("a".parse().ok());
    assert_eq!(world.submit(&[unique("b", "daily report")]).await, std::slice::from_ref(&holder));
    world.accepts(&[unique("c", "weekly report")]).await;
    let id = world.claim(&life, 1).await.attempts.remove(0).id;
    assert_eq!(world.submit(&[unique("b", "daily report")]).await, [holder]);
    world.finish(&life, &id, finished()).await;
    world.accepts(&[unique("b", "daily report")]).await;
    assert_eq!(world.redis.all("JOB"), [keys::job("a"), keys::job("b"), keys::job("c")]);
}

#[tokio::test]
async fn a_unique_key_is_free_again_after_a_stop_a_delete_and_a_removed_hash() {
    let world = World::new();
    let submit = async |id: &str| world.accepts(&[unique(id, "k")]).await;
    submit("a").await;
    world.store.jobs().stop(&"a".parse().expect("legal"), RETENTION, None).await.expect("stopping");
    submit("b").await;
    world.store.jobs().delete(&"b".parse().expect("legal"), RETENTION).await.expect("deleting");
    submit("c").await;
    world.redis.delete(&keys::job("c"));
    world.redis.remove(&keys::ready("type:osis"), "c");
    submit("d").await;
}

#[tokio::test]
async fn a_unique_key_is_kept_by_a_job_that_waits_for_its_retry() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[unique("a", "k")]).await;
    let id = world.claim(&life, 1).await.attempts.remove(0).id;
    let retry = Verdict::Retry { error: String::new(), exit_code: None, delay: RETENTION };
    world.finish(&life, &id, retry).await;
    assert_eq!(world.submit(&[unique("b", "k")]).await, [Submitted::Duplicate(Some(id))]);
}

#[tokio::test]
async fn a_work_list_of_another_type_refuses_its_jobs_by_name_and_no_others() {
    let world = World::new();
    world.redis.spoil(&keys::work("type:sal"));
    let sal = JobBuilder::new("sal", "1").id("s").build().expect("legal");
    let jobs = [sal.clone(), job("a")];
    let submitted = world.submit(&jobs).await;
    assert_eq!(
        submitted,
        [
            Submitted::BrokenQueue(keys::work("type:sal")),
            Submitted::Accepted(JobStatus::Dispatched)
        ]
    );
    assert_eq!(world.redis.all("JOB"), [keys::job("a")]);
    let client = Client::with(&world.redis.config("hero"), JobConfig::default()).expect("a client");
    let error = client.submit(sal).await.expect_err("its queue is broken");
    assert!(error.to_string().contains(&keys::work("type:sal")), "{error}");
    assert_eq!(error.exit(), Exit::Unavailable);
}

#[tokio::test]
async fn a_prerequisite_whose_key_is_no_hash_is_unknown() {
    let world = World::new();
    world.redis.spoil(&keys::job("odd"));
    let after = JobBuilder::new("osis", "1").id("b").after("odd").build().expect("legal");
    let submitted = world.submit(&[job("a"), after]).await;
    assert_eq!(submitted[1], Submitted::UnknownPrerequisite("odd".to_owned()));
    assert_eq!(world.work("type:osis"), ["a"]);
}

#[tokio::test]
async fn namespaces_of_one_redis_share_nothing() {
    let world = World::new();
    let life = Life::of("osis-default-1");
    let redis = Redis::start();
    drop(world);
    let (hero, qa) = (World::on(redis, "hero"), "qa_hero");
    let other = hero::store::Store::open(&hero.redis.config(qa)).expect("settings");
    hero.accepts(&[job("a")]).await;
    other.jobs().submit(&[job("a"), job("b")], true, RETENTION).await.expect("submitting");
    assert_eq!(ids(&hero.claim(&life, 9).await.attempts), ["a"]);
    assert_eq!(hero.redis.list(&other.keys().work(&queue("type:osis"))), ["a", "b"]);
    assert_eq!(hero.redis.all("JOB"), [keys::job("a")]);
    let all = hero.redis.keys("");
    assert!(
        all.iter().all(|key| keys().is_own(key.as_bytes()) || other.keys().is_own(key.as_bytes()))
    );
}

#[tokio::test]
async fn a_namespace_in_braces_works_as_any_other() {
    let (world, life) = (World::on(Redis::start(), "{hero}"), Life::of("osis-default-1"));
    let id = world.ended(&life, "a", finished()).await;
    assert_eq!(world.status(id.as_str()), JobStatus::Finished);
    assert!(world.redis.keys("").iter().all(|key| key.starts_with("{hero}:")));
}

#[tokio::test]
async fn client_refuses_jobs_that_no_actor_would_run_before_storing_them() {
    let world = World::new();
    let bounds = JobConfig { script_size_max: 10, ..JobConfig::default() };
    let client = Client::with(&world.redis.config("hero"), bounds).expect("a client");
    let long = JobBuilder::new("osis", "12345678901").build().expect("legal");
    let mut untyped = job("a");
    untyped.spec.script_type = None;
    for (job, field) in [(long, "script"), (untyped, "script_type")] {
        let error = client.submit(job).await.expect_err("refused");
        assert!(matches!(&error, ClientError::Invalid(invalid) if invalid.field == field));
        assert_eq!(error.exit(), Exit::Data);
    }
    assert!(world.redis.keys("").is_empty());
}
