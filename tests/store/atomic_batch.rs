//! Atomic batches: jobs submitted all or none.

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::store::{BatchOutcome, Submitted, Verdict};
use jiff::Timestamp;

use crate::support::{Life, RETENTION, World, ids, job, keys};

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
    let whole = world.store.submit_atomic_batch(jobs, RETENTION).await.expect("submitting");
    world.check();
    assert!(world.redis.all("STAGED").is_empty() || whole != BatchOutcome::Accepted);
    whole
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
        (key("c").expect("legal"), Submitted::Duplicate(holder)),
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

#[tokio::test]
async fn fan_out_and_fan_in_of_ten_thousand_jobs_are_one_batch() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let names: Vec<String> = (0..9998).map(|_| JobId::random().to_string()).collect();
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
        while world.store.settle(RETENTION).await.expect("settling") {}
    }
    world.check();
    assert_eq!(ended, 10_000);
    assert_eq!(world.status("end"), JobStatus::Finished);
    for left in ["PENDING", "DEPENDENTS", "STAGED", "SETTLING"] {
        assert!(world.redis.all(left).is_empty(), "{left} is left");
    }
}
