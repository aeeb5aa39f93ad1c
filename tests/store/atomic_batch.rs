//! Atomic batches: jobs submitted all or none.

use hero::client::{Client, JobBuilder};
use hero::config::JobConfig;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::store::{BatchOutcome, Submitted, Verdict};
use jiff::Timestamp;

use crate::support::{Life, RETENTION, World, ids, job, keys, size};

fn after(id: &str, prerequisites: &[&str]) -> Job {
    let job = JobBuilder::new("osis", "1").id(id);
    prerequisites.iter().fold(job, |job, other| job.after(other)).build().expect("a legal job")
}

fn failed() -> Verdict {
    Verdict::Error { error: "no".to_owned(), exit_code: None, dead: false }
}

fn done() -> Verdict {
    Verdict::Finished { output: "".into(), exit_code: None }
}

async fn submit(world: &World, jobs: &[Job]) -> BatchOutcome {
    let whole = world.store.batches().submit(jobs, None, RETENTION).await.expect("submitting");
    world.check();
    assert!(world.redis.all("STAGED").is_empty() || whole != BatchOutcome::Accepted);
    whole
}

/// Goes on with commits that their clients left, while the jobs that are there run.
async fn commit_and_run_all(world: &World, life: &Life) {
    loop {
        let is_left = world.store.batches().commit_left(RETENTION).await.expect("going on");
        let claimed = world.store_claim(life, 100).await;
        if !is_left && claimed.is_empty() {
            return;
        }
        world.store_finish(life, claimed).await;
        while world.store.schedule().settle(RETENTION).await.expect("settling") {}
    }
}

#[tokio::test]
async fn jobs_of_a_batch_are_dispatched_in_any_order() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let later = JobBuilder::new("osis", "1").id("later").run_at(Timestamp::now() + RETENTION);
    let jobs = [
        after("last", &["mid", "first"]),
        after("mid", &["first"]),
        job("first"),
        job("other"),
        later.build().expect("legal"),
    ];
    assert_eq!(submit(&world, &jobs).await, BatchOutcome::Accepted);
    for (id, status) in [
        ("last", JobStatus::WaitingForPrerequisites),
        ("mid", JobStatus::WaitingForPrerequisites),
        ("first", JobStatus::Dispatched),
        ("other", JobStatus::Dispatched),
        ("later", JobStatus::Scheduled),
    ] {
        assert_eq!(world.status(id), status, "{id}");
        let ttl = world.redis.ttl(&keys::job(id));
        assert_eq!(ttl, -1, "{id} does not expire before it has ended");
    }
    assert_eq!(world.field("first", "dependents").as_deref(), Some(r#"["last","mid"]"#));
    assert!(world.field("last", "created_at").is_some_and(|at| at.parse::<Timestamp>().is_ok()));
    assert_eq!(world.count("osis", "submitted"), 5);
    let pending = world.redis.ttl(&keys::pending("last"));
    assert_eq!(pending, -1);
    let claimed = world.claim(&life, 9).await;
    assert_eq!(ids(&claimed.attempts), ["first", "other"]);
    world.finish(&life, &claimed.attempts[0].id, done()).await;
    assert_eq!(world.work("type:osis"), ["mid"]);
}

#[tokio::test]
async fn one_refused_job_refuses_the_batch_and_writes_nothing() {
    let world = World::new();
    let key = |id: &str| JobBuilder::new("osis", "1").id(id).unique_key("k").build();
    world.accepts(&[job("taken"), key("holder").expect("legal")]).await;
    let before = (world.redis.all("JOB"), world.work("type:osis"));
    world.redis.spoil(&keys::work("type:broken"));
    let broken = JobBuilder::new("broken", "1").id("x").build().expect("legal");
    let holder: JobId = "holder".parse().expect("legal");
    for (wrong, why) in [
        (job("taken"), Submitted::Exists),
        (after("b", &["nobody"]), Submitted::UnknownPrerequisite("nobody".to_owned())),
        (key("c").expect("legal"), Submitted::Duplicate(Some(holder))),
        (broken, Submitted::BrokenQueue(keys::work("type:broken"))),
    ] {
        let jobs = [job("a"), wrong, after("d", &["a"])];
        assert_eq!(submit(&world, &jobs).await, BatchOutcome::Refused { place: 1, why });
        let now = (world.redis.all("JOB"), world.work("type:osis"));
        assert_eq!(now, before);
    }
    for key in world.redis.all("STAGED") {
        assert!(world.redis.ttl(&key) > 0, "{key} would stay for ever");
    }
    assert_eq!(world.count("osis", "submitted"), 2);
}

#[tokio::test]
async fn jobs_of_a_batch_may_wait_for_jobs_outside_of_it() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "good", done()).await;
    world.ended(&life, "bad", failed()).await;
    let runs = world.started(&life, "runs").await;
    let mut any = after("any", &["good"]);
    any.spec.after_any.push("bad".parse().expect("legal"));
    let jobs = [
        after("a", &["good"]),
        after("b", &["bad", "a"]),
        after("c", &["b"]),
        after("d", &["runs", "a"]),
        any,
    ];
    assert_eq!(submit(&world, &jobs).await, BatchOutcome::Accepted);
    for (id, status) in [
        ("a", JobStatus::Dispatched),
        ("b", JobStatus::Error),
        ("c", JobStatus::Error),
        ("d", JobStatus::WaitingForPrerequisites),
        ("any", JobStatus::Dispatched),
    ] {
        assert_eq!(world.status(id), status, "{id}");
    }
    assert_eq!(world.field("b", "error").as_deref(), Some("prerequisite failed: bad"));
    assert_eq!(world.field("runs", "dependents").as_deref(), Some(r#"["d"]"#));
    world.finish(&life, &runs, done()).await;
    let claimed = world.claim(&life, 9).await;
    assert_eq!(ids(&claimed.attempts), ["a", "any"]);
    world.finish(&life, &claimed.attempts[0].id, done()).await;
    assert_eq!(world.work("type:osis"), ["d"]);
}

/// Submits a batch, and goes away once a kind of key has appeared.
async fn submit_until(world: &World, jobs: &[Job], kind: &str) {
    let mut submit = Box::pin(world.store.batches().submit(jobs, None, RETENTION));
    while world.redis.all(kind).is_empty() {
        tokio::select! {
            biased;
            done = &mut submit => panic!("it was submitted whole: {done:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
}

#[tokio::test]
async fn a_commit_whose_client_has_gone_is_continued_and_jobs_may_end_meanwhile() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let mut jobs: Vec<Job> = (0..600).map(|n| job(&format!("a{n}"))).collect();
    jobs.extend((0..600).map(|n| after(&format!("b{n}"), &[&format!("a{n}")])));
    jobs.extend((0..600).map(|n| after(&format!("c{n}"), &[&format!("b{n}"), "b0"])));
    submit_until(&world, &jobs, "COMMITTING").await;
    assert!(world.redis.all("JOB").len() < jobs.len(), "some are left");
    let stopped = "c0".parse().expect("legal");
    while world.field("c0", "status").is_none() {
        world.store.batches().commit_left(RETENTION).await.expect("going on");
    }
    world.store.jobs().stop(&stopped, RETENTION, None).await.expect("stopping");
    commit_and_run_all(&world, &life).await;
    world.check();
    assert_eq!(world.count("osis", "submitted"), 1800);
    assert_eq!((world.count("osis", "finished"), world.count("osis", "cancelled")), (1799, 1));
    for left in ["PENDING", "STAGED", "RESERVED", "COMMITTING", "READY"] {
        assert!(world.redis.all(left).is_empty(), "{left} is left");
    }
}

#[tokio::test]
async fn what_is_staged_lasts_once_the_batch_is_decided() {
    let world = World::new();
    let mut jobs: Vec<Job> = (0..600).map(|n| job(&format!("a{n}"))).collect();
    jobs.extend((0..600).map(|n| after(&format!("b{n}"), &[&format!("a{n}")])));
    submit_until(&world, &jobs, "COMMITTING").await;
    // The decision keeps the first thousand, the next step the others.
    world.store.batches().commit_left(RETENTION).await.expect("going on");
    let staged: Vec<String> =
        ["STAGED", "RESERVED"].iter().flat_map(|kind| world.redis.all(kind)).collect();
    assert!(staged.len() > 1200, "{}", staged.len());
    let expires = |key: &&String| world.redis.ask::<i64>(&format!("TTL {key}")) >= 0;
    assert_eq!(staged.iter().find(expires), None);
    while world.store.batches().commit_left(RETENTION).await.expect("going on") {}
    assert_eq!(world.count("osis", "submitted"), 1200);
    for left in ["STAGED", "RESERVED", "COMMITTING"] {
        assert!(world.redis.all(left).is_empty(), "{left} is left");
    }
}

#[tokio::test]
async fn job_of_a_batch_that_is_decided_is_stopped_before_it_is_submitted() {
    let world = World::new();
    let jobs: Vec<Job> = (0..600).map(|n| job(&format!("a{n}"))).collect();
    submit_until(&world, &jobs, "COMMITTING").await;
    let client = Client::with(&world.redis.config("hero"), JobConfig::default()).expect("a client");
    let last: JobId = "a599".parse().expect("legal");
    assert_eq!(world.field("a599", "status"), None, "it is not submitted yet");
    assert!(client.stop_job(&last).await.expect("stopped"), "it has ended");
    assert_eq!(world.field("a599", "error").as_deref(), Some("stopped"));
    assert_eq!(world.count("osis", "submitted"), 600);
}

#[tokio::test]
async fn very_many_prerequisites_are_looked_at_in_steps_and_may_end_meanwhile() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let names: Vec<String> = (0..3000).map(|n| format!("j{n}")).collect();
    world.accepts(&names.iter().map(|name| job(name)).collect::<Vec<_>>()).await;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    submit_until(&world, &[after("last", &names)], "COMMITTING").await;
    commit_and_run_all(&world, &life).await;
    world.check();
    assert_eq!(world.status("last"), JobStatus::Finished);
    assert!(world.redis.all("PENDING").is_empty());
    let unknown: Vec<&str> = names.iter().copied().chain(["nobody"]).collect();
    let refused = world.submit(&[after("x", &unknown)]).await;
    assert_eq!(refused, [Submitted::UnknownPrerequisite("nobody".to_owned())]);
    assert_eq!(world.field("x", "status"), None);
}

#[tokio::test]
async fn ids_and_unique_keys_of_a_batch_are_taken_while_it_is_stored_and_free_once_it_is_given_up()
{
    let world = World::new();
    let key = |id: &str| JobBuilder::new("osis", "1").id(id).unique_key("k").build();
    let mut jobs: Vec<Job> = (0..1000).map(|n| job(&format!("j{n}"))).collect();
    jobs[0] = key("j0").expect("legal");
    submit_until(&world, &jobs, "RESERVED").await;
    assert!(world.redis.all("JOB").is_empty());
    assert_eq!(world.submit(&[job("j1")]).await, [Submitted::Exists]);
    let other = [key("other").expect("legal")];
    let holder = Submitted::Duplicate("j0".parse().ok());
    assert_eq!(world.submit(&other).await, [holder]);
    // Its time is over.
    for key in world.redis.all("STAGED") {
        assert!(world.redis.ttl(&key) > 0, "{key} would stay for ever");
        let is_of_the_batch = !key.trim_start_matches(&keys::prefix("STAGED")).contains(':');
        if is_of_the_batch {
            assert!(world.redis.ttl(&key) <= 30);
            world.redis.delete(&key);
        }
    }
    world.accepts(&other).await;
    world.accepts(&[job("j1")]).await;
}

#[tokio::test]
async fn fan_out_and_fan_in_of_many_jobs_are_one_batch() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let number = size(10_000);
    let names: Vec<String> = (0..number - 2).map(|_| JobId::random().to_string()).collect();
    let mut jobs = vec![job("root")];
    jobs.extend(names.iter().map(|name| after(name, &["root"])));
    jobs.push(after("end", &names.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!(submit(&world, &jobs).await, BatchOutcome::Accepted);
    assert_eq!(world.field("end", "status").as_deref(), Some("waiting_for_prerequisites"));
    assert!(world.field("root", "dependents").is_some_and(|field| field.len() < 33 * 1024));
    let mut ended = 0;
    loop {
        let claimed = world.store_claim(&life, 1000).await;
        if claimed.is_empty() {
            break;
        }
        ended += claimed.len();
        world.store_finish(&life, claimed).await;
        while world.store.schedule().settle(RETENTION).await.expect("settling") {}
    }
    world.check();
    assert_eq!(ended, number);
    assert_eq!(world.status("end"), JobStatus::Finished);
    for left in ["PENDING", "DEPENDENTS", "STAGED", "SETTLING"] {
        assert!(world.redis.all(left).is_empty(), "{left} is left");
    }
}
