//! Jobs that wait for others: fan-in, fan-out, failures that spread, and very many dependents.

use hero::client::JobBuilder;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::store::{DeleteOutcome, RetryOutcome, Submitted, Verdict};
use jiff::Timestamp;

use crate::support::{Life, RETENTION, World, ids, job, keys};

fn after(id: &str, prerequisites: &[&str]) -> Job {
    let job = JobBuilder::new("osis", "1").id(id);
    prerequisites.iter().fold(job, |job, other| job.after(other)).build().expect("a legal job")
}

fn done() -> Verdict {
    Verdict::Finished { output: "".into(), exit_code: None }
}

fn failed() -> Verdict {
    Verdict::Error { error: "no".to_owned(), exit_code: None, dead: true }
}

/// Settles until no dependent is left. Returns the number of steps.
async fn settle(world: &World) -> usize {
    let mut steps = 0;
    while world.store.schedule().settle(RETENTION).await.expect("settling") {
        steps += 1;
        assert!(steps < 100, "settling does not come to an end");
    }
    world.check();
    steps
}

#[tokio::test]
async fn a_job_waits_for_all_of_its_prerequisites() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b")]).await;
    let waits = world.accepts(&[after("c", &["a", "b"])]).await;
    assert_eq!(waits, [JobStatus::WaitingForPrerequisites]);
    assert_eq!(world.field("a", "dependents").as_deref(), Some(r#"["c"]"#));
    let claimed = world.claim(&life, 9).await;
    assert_eq!(ids(&claimed.attempts), ["a", "b"]);
    world.finish(&life, &claimed.attempts[0].id, done()).await;
    assert_eq!(world.status("c"), JobStatus::WaitingForPrerequisites);
    world.finish(&life, &claimed.attempts[1].id, done()).await;
    assert_eq!(world.status("c"), JobStatus::Dispatched);
    assert!(world.redis.all("PENDING").is_empty());
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["c"]);
}

#[tokio::test]
async fn ended_prerequisite_dispatches_all_its_dependents_in_order() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    for name in ["z", "m", "b", "y"] {
        world.accepts(&[after(name, &["a"])]).await;
    }
    world.finish(&life, &own, done()).await;
    assert_eq!(world.work("type:osis"), ["z", "m", "b", "y"]);
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["z", "m", "b", "y"]);
}

#[tokio::test]
async fn a_prerequisite_named_twice_counts_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.accepts(&[after("b", &["a", "a"])]).await;
    world.finish(&life, &own, done()).await;
    assert_eq!(world.work("type:osis"), ["b"]);
}

#[tokio::test]
async fn a_failure_spreads_through_every_level_and_names_the_one_before() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.accepts(&[job("free")]).await;
    world.accepts(&[after("b", &["a"]), after("c", &["b", "free"]), after("d", &["c"])]).await;
    world.finish(&life, &own, failed()).await;
    for (name, before) in [("b", "a"), ("c", "b"), ("d", "c")] {
        assert_eq!(world.status(name), JobStatus::Error);
        let error = world.field(name, "error");
        assert_eq!(error, Some(format!("prerequisite failed: {before}")));
        assert_eq!(world.redis.list(&keys::reply(name)).len(), 1);
    }
    assert_eq!(world.status("free"), JobStatus::Dispatched);
    assert!(world.redis.all("PENDING").is_empty());
    assert_eq!(world.count("osis", "failed"), 4);
}

fn after_any(id: &str, prerequisites: &[&str]) -> Job {
    let job = JobBuilder::new("osis", "1").id(id);
    let job = prerequisites.iter().fold(job, |job, other| job.after_any(other));
    job.build().expect("a legal job")
}

#[tokio::test]
async fn job_after_any_runs_once_the_others_have_ended() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("good"), job("bad"), job("stopped")]).await;
    let waits = world.accepts(&[after_any("x", &["good", "bad", "stopped"])]).await;
    assert_eq!(waits, [JobStatus::WaitingForPrerequisites]);
    for name in ["good", "bad", "stopped"] {
        assert_eq!(world.field(name, "dependents").as_deref(), Some(r#"["x"]"#));
    }
    let claimed = world.claim(&life, 2).await;
    world.finish(&life, &claimed.attempts[0].id, done()).await;
    world.finish(&life, &claimed.attempts[1].id, failed()).await;
    assert_eq!(world.status("x"), JobStatus::WaitingForPrerequisites);
    let stopped = "stopped".parse().expect("legal");
    world.store.jobs().stop(&stopped, RETENTION, None).await.expect("stopping");
    world.check();
    assert_eq!(world.status("x"), JobStatus::Dispatched);
    assert!(world.redis.all("PENDING").is_empty());
}

#[tokio::test]
async fn after_and_after_any_mix_and_after_is_the_stricter() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("b"), job("c")]).await;
    let mix = |id: &str, strict: &str, any: &str| {
        let job = JobBuilder::new("osis", "1").id(id).after(strict).after_any(any);
        job.build().expect("legal")
    };
    world.accepts(&[mix("good", "a", "b"), mix("bad", "b", "a"), mix("both", "b", "b")]).await;
    world.accepts(&[mix("same", "c", "c")]).await;
    let claimed = world.claim(&life, 3).await;
    world.finish(&life, &claimed.attempts[0].id, done()).await;
    world.finish(&life, &claimed.attempts[1].id, failed()).await;
    world.finish(&life, &claimed.attempts[2].id, done()).await;
    for (name, status) in [
        ("good", JobStatus::Dispatched),
        ("bad", JobStatus::Error),
        ("both", JobStatus::Error),
        ("same", JobStatus::Dispatched),
    ] {
        assert_eq!(world.status(name), status, "{name}");
    }
    assert_eq!(world.field("both", "error").as_deref(), Some("prerequisite failed: b"));
    assert!(world.redis.all("PENDING").is_empty());
}

#[tokio::test]
async fn ended_prerequisites_count_at_once_for_a_job_after_any_and_unknown_ones_are_refused() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "good", done()).await;
    world.ended(&life, "bad", failed()).await;
    let jobs = [after_any("a", &["good", "bad"]), after_any("b", &["nobody"])];
    assert_eq!(
        world.submit(&jobs).await,
        [
            Submitted::Accepted(JobStatus::Dispatched),
            Submitted::UnknownPrerequisite("nobody".to_owned())
        ]
    );
}

#[tokio::test]
async fn a_deleted_prerequisite_has_ended_for_a_job_after_any() {
    let world = World::new();
    world.create(&[job("a")]).await;
    world.accepts(&[after("strict", &["a"]), after_any("any", &["a"])]).await;
    world.create(&[after("strict-later", &["a"]), after_any("any-later", &["a"])]).await;
    world.store.jobs().delete(&"a".parse().expect("legal"), RETENTION).await.expect("deleting");
    world.check();
    for later in ["strict-later", "any-later"] {
        let later: JobId = later.parse().expect("legal");
        world.store.jobs().start(&later, RETENTION).await.expect("starting");
        world.check();
    }
    for (name, status) in [
        ("strict", JobStatus::Error),
        ("any", JobStatus::Dispatched),
        ("strict-later", JobStatus::Error),
        ("any-later", JobStatus::Dispatched),
    ] {
        assert_eq!(world.status(name), status, "{name}");
    }
}

#[tokio::test]
async fn a_prerequisite_that_has_ended_counts_at_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "good", done()).await;
    world.ended(&life, "bad", failed()).await;
    let jobs = [after("a", &["good"]), after("b", &["good", "bad"]), after("c", &["b"])];
    assert_eq!(
        world.accepts(&jobs).await,
        [JobStatus::Dispatched, JobStatus::Error, JobStatus::Error]
    );
    assert_eq!(world.field("b", "error").as_deref(), Some("prerequisite failed: bad"));
    assert_eq!(world.field("c", "error").as_deref(), Some("prerequisite failed: b"));
    assert_eq!(world.redis.list(&keys::reply("b")).len(), 1);
    assert!(world.redis.ttl(&keys::job("b")) > 0);
}

#[tokio::test]
async fn a_prerequisite_that_does_not_exist_is_refused_and_nothing_is_written() {
    let world = World::new();
    world.accepts(&[job("a")]).await;
    let before = world.redis.keys("");
    for names in [["a", "nobody"], ["nobody", "a"]] {
        let refused = world.submit(&[after("b", &names)]).await;
        assert_eq!(refused, [Submitted::UnknownPrerequisite("nobody".to_owned())]);
    }
    let itself = world.submit(&[after("b", &["b"])]).await;
    assert_eq!(itself, [Submitted::UnknownPrerequisite("b".to_owned())]);
    assert_eq!(world.redis.keys(""), before);
    assert_eq!(world.field("a", "dependents"), None);
    assert_eq!(world.count("osis", "submitted"), 1);
}

#[tokio::test]
async fn jobs_of_one_call_may_wait_for_those_before_them() {
    let world = World::new();
    let submitted = world.submit(&[after("b", &["a"]), job("a"), after("c", &["a"])]).await;
    assert_eq!(submitted[0], Submitted::UnknownPrerequisite("a".to_owned()));
    assert_eq!(submitted[2], Submitted::Accepted(JobStatus::WaitingForPrerequisites));
}

#[tokio::test]
async fn a_dependent_whose_time_has_not_come_goes_to_the_schedule() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    let dependent = JobBuilder::new("osis", "1").id("b").after("a");
    let dependent = dependent.run_at(Timestamp::now() + RETENTION).build().expect("legal");
    world.accepts(&[dependent]).await;
    world.finish(&life, &own, done()).await;
    assert_eq!(world.status("b"), JobStatus::Scheduled);
}

#[tokio::test]
async fn a_retried_prerequisite_keeps_its_dependents_waiting() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.accepts(&[after("b", &["a"])]).await;
    let retry = Verdict::Retry { error: String::new(), exit_code: None, delay: RETENTION };
    world.finish(&life, &own, retry).await;
    assert_eq!(world.status("b"), JobStatus::WaitingForPrerequisites);
}

#[tokio::test]
async fn a_created_dependent_checks_its_prerequisites_when_it_is_started() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.ended(&life, "bad", failed()).await;
    world.create(&[after("b", &["a"]), after("c", &["bad"]), after("d", &["a"])]).await;
    let start = async |name: &str| {
        let name: JobId = name.parse().expect("legal");
        let moved = world.store.jobs().start(&name, RETENTION).await.expect("starting");
        world.check();
        moved
    };
    assert_eq!(start("b").await, RetryOutcome::Moved(JobStatus::WaitingForPrerequisites));
    assert_eq!(start("c").await, RetryOutcome::Moved(JobStatus::Error));
    world.finish(&life, &own, done()).await;
    assert_eq!(world.status("b"), JobStatus::Dispatched);
    assert_eq!(start("d").await, RetryOutcome::Moved(JobStatus::Dispatched));
}

#[tokio::test]
async fn deleting_a_prerequisite_fails_those_that_wait_for_it() {
    let world = World::new();
    world.create(&[job("a")]).await;
    world.accepts(&[after("b", &["a"]), after("c", &["b"])]).await;
    let deleted = world.store.jobs().delete(&"a".parse().expect("legal"), RETENTION).await;
    world.check();
    assert_eq!(deleted.expect("deleting"), DeleteOutcome::Deleted);
    assert_eq!(world.field("b", "error").as_deref(), Some("prerequisite failed: a"));
    assert_eq!(world.status("c"), JobStatus::Error);
}

#[tokio::test]
async fn deleted_dependent_delays_no_other() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.accepts(&[after("b", &["a"]), after("c", &["a"])]).await;
    world.store.jobs().delete(&"b".parse().expect("legal"), RETENTION).await.expect("deleting");
    world.check();
    world.finish(&life, &own, done()).await;
    assert_eq!(world.work("type:osis"), ["c"]);
    assert!(world.redis.all("PENDING").is_empty());
}

/// A world where `a` runs and this many jobs, named `j0000` and on, wait for it.
async fn with_dependents(life: &Life, number: usize) -> (World, JobId) {
    let world = World::new();
    let own = world.started(life, "a").await;
    let jobs: Vec<Job> = (0..number).map(|n| after(&format!("j{n:04}"), &["a"])).collect();
    for batch in jobs.chunks(1000) {
        world.store.jobs().submit(batch, true, RETENTION).await.expect("submitting");
    }
    world.check();
    (world, own)
}

#[tokio::test]
async fn more_dependents_than_one_step_takes_are_settled_later_each_once() {
    let life = Life::of("osis-default-1");
    let (world, own) = with_dependents(&life, 3000).await;
    world.finish(&life, &own, done()).await;
    assert_eq!(world.work("type:osis").len(), 2250, "the actor's steps");
    assert_eq!(settle(&world).await, 3);
    let expected: Vec<String> = (0..3000).map(|n| format!("j{n:04}")).collect();
    assert_eq!(world.work("type:osis"), expected);
    assert!(world.redis.all("PENDING").is_empty());
}

#[tokio::test]
async fn a_failure_reaches_more_dependents_than_one_step_takes() {
    let life = Life::of("osis-default-1");
    let (world, own) = with_dependents(&life, 2500).await;
    world.accepts(&[after("last", &["j2499"])]).await;
    world.finish(&life, &own, failed()).await;
    settle(&world).await;
    assert_eq!(world.count("osis", "failed"), 2502);
    assert_eq!(world.field("last", "error").as_deref(), Some("prerequisite failed: j2499"));
}

#[tokio::test]
async fn settling_does_not_depend_on_the_later_state_of_the_prerequisite() {
    let life = Life::of("osis-default-1");
    for deleted in [true, false] {
        let (world, own) = with_dependents(&life, 2500).await;
        world.finish(&life, &own, done()).await;
        if deleted {
            world.store.jobs().delete(&own, RETENTION).await.expect("deleting");
        } else {
            world.store.jobs().retry(&own).await.expect("running again");
            while !world.store_claim(&life, 100).await.contains(&own) {}
        }
        settle(&world).await;
        assert_eq!(world.status("j2499"), JobStatus::Dispatched, "deleted: {deleted}");
        assert_eq!(world.count("osis", "failed"), 0);
    }
}

#[tokio::test]
async fn deleting_a_job_with_very_many_dependents_fails_all_of_them() {
    let world = World::new();
    world.create(&[job("a")]).await;
    let jobs: Vec<Job> = (0..2500).map(|n| after(&format!("j{n:04}"), &["a"])).collect();
    for batch in jobs.chunks(1000) {
        world.store.jobs().submit(batch, true, RETENTION).await.expect("submitting");
    }
    world.store.jobs().delete(&"a".parse().expect("legal"), RETENTION).await.expect("deleting");
    settle(&world).await;
    assert_eq!(world.count("osis", "failed"), 2500);
    assert!(world.redis.all("PENDING").is_empty());
}

#[tokio::test]
async fn a_job_may_wait_for_very_many_others() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let names: Vec<String> = (0..9000).map(|n| format!("j{n}")).collect();
    let jobs: Vec<Job> = names.iter().map(|name| job(name)).collect();
    for batch in jobs.chunks(1000) {
        world.store.jobs().submit(batch, true, RETENTION).await.expect("submitting");
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let waits = world.accepts(&[after("last", &names), job("other")]).await;
    assert_eq!(waits, [JobStatus::WaitingForPrerequisites, JobStatus::Dispatched]);
    let pending: usize = world.redis.ask(&format!("SCARD {}", keys::pending("last")));
    assert_eq!(pending, 9000);
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["j0"]);
}

/// A world where `last` was started just now, with so many jobs before it that one call registers it at
/// some of them only: not at the first, `j0000`.
async fn with_prerequisites(number: usize) -> World {
    let world = World::new();
    let names: Vec<String> = (0..number).map(|n| format!("j{n:04}")).collect();
    let jobs: Vec<Job> = names.iter().map(|name| job(name)).collect();
    for batch in jobs.chunks(1000) {
        world.store.jobs().submit(batch, true, RETENTION).await.expect("submitting");
    }
    let names: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    world.create(&[after("last", &names)]).await;
    let last: JobId = "last".parse().expect("legal");
    let started = world.store.jobs().start(&last, RETENTION).await.expect("starting");
    assert_eq!(started, RetryOutcome::Moved(JobStatus::WaitingForPrerequisites));
    assert_eq!(world.field("j0000", "dependents"), None);
    world
}

#[tokio::test]
async fn prerequisite_that_ends_before_a_later_step_registers_the_job_is_noticed_by_it() {
    let life = Life::of("osis-default-1");
    let world = with_prerequisites(1200).await;
    let first = world.claim(&life, 1).await.attempts.remove(0).id;
    world.finish(&life, &first, done()).await;
    settle(&world).await;
    let pending: usize = world.redis.ask(&format!("SCARD {}", keys::pending("last")));
    assert_eq!(pending, 1199);
    assert_eq!(world.status("last"), JobStatus::WaitingForPrerequisites);
    for _ in 0..12 {
        let next = world.store_claim(&life, 100).await;
        world.store_finish(&life, next).await;
    }
    world.check();
    assert_eq!(world.status("last"), JobStatus::Dispatched);
    assert!(world.redis.all("PENDING").is_empty());
}

#[tokio::test]
async fn failure_or_deletion_before_a_later_step_registers_the_job_fails_it() {
    let life = Life::of("osis-default-1");
    for deleted in [true, false] {
        let world = with_prerequisites(600).await;
        if deleted {
            let first = "j0000".parse().expect("legal");
            world.store.jobs().delete(&first, RETENTION).await.expect("deleting");
        } else {
            let first = world.claim(&life, 1).await.attempts.remove(0).id;
            world.finish(&life, &first, failed()).await;
        }
        settle(&world).await;
        assert_eq!(
            world.field("last", "error").as_deref(),
            Some("prerequisite failed: j0000"),
            "deleted: {deleted}"
        );
    }
}

#[tokio::test]
async fn stopped_job_is_not_registered_by_a_later_step() {
    let world = with_prerequisites(600).await;
    let last = "last".parse().expect("legal");
    world.store.jobs().stop(&last, RETENTION, None).await.expect("stopping");
    settle(&world).await;
    assert_eq!(world.field("j0000", "dependents"), None);
    assert_eq!(world.status("last"), JobStatus::Error);
}

/// The time Redis has spent on scripts, in microseconds.
fn spent_us(world: &World) -> u64 {
    let stats: String = world.redis.ask("INFO commandstats");
    let of_scripts = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
    let usec = of_scripts.and_then(|line| line.split("usec=").nth(1)).unwrap_or("0");
    usec.split(',').next().and_then(|usec| usec.parse().ok()).expect("a number")
}

/// Ten thousand jobs that wait for `a`, submitted one by one, under ids as Hero makes them.
async fn very_many_dependents(world: &World) -> Vec<JobId> {
    let jobs: Vec<Job> = (0..10_000).map(|_| after(JobId::random().as_str(), &["a"])).collect();
    for job in &jobs {
        let one = std::slice::from_ref(job);
        let submitted = world.store.jobs().submit(one, true, RETENTION).await.expect("submitting");
        assert_eq!(submitted, [Submitted::Accepted(JobStatus::WaitingForPrerequisites)]);
    }
    jobs.into_iter().map(|job| job.id).collect()
}

#[tokio::test]
async fn field_of_very_many_dependents_is_bounded_and_all_are_released() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    let before = spent_us(&world);
    let names = very_many_dependents(&world).await;
    eprintln!("10 000 dependents took redis {} us", spent_us(&world) - before);
    let field = world.field("a", "dependents").expect("it has dependents");
    assert!(field.len() < 33 * 1024, "the field has {} bytes", field.len());
    let first: Vec<JobId> = serde_json::from_str(&field).expect("a JSON array of ids");
    assert_eq!(first, names[..first.len()]);
    let more = world.field("a", "dependents_more").expect("there are more");
    assert_eq!(first.len() + more.parse::<usize>().expect("a number"), names.len());
    world.finish(&life, &own, done()).await;
    assert!((30..=33).contains(&settle(&world).await));
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    assert_eq!(world.work("type:osis"), names);
    assert!(world.redis.all("DEPENDENTS").is_empty());
    assert!(world.redis.all("PENDING").is_empty());
}

#[tokio::test]
async fn very_many_dependents_are_settled_though_their_prerequisite_is_deleted_or_run_again() {
    for deleted in [true, false] {
        let (world, life) = (World::new(), Life::of("osis-default-1"));
        let own = world.started(&life, "a").await;
        let names = very_many_dependents(&world).await;
        world.finish(&life, &own, failed()).await;
        if deleted {
            world.store.jobs().delete(&own, RETENTION).await.expect("deleting");
        } else {
            world.store.jobs().retry(&own).await.expect("running again");
            world.accepts(&[after("late", &["a"])]).await;
        }
        settle(&world).await;
        assert_eq!(world.count("osis", "failed"), 1 + names.len() as u64, "deleted: {deleted}");
        assert!(world.redis.all("PENDING").iter().all(|key| key.ends_with("late")));
        if !deleted {
            let claimed = world.claim(&life, 1).await;
            assert_eq!(ids(&claimed.attempts), ["a"]);
            world.finish(&life, &own, done()).await;
            settle(&world).await;
            assert_eq!(world.status("late"), JobStatus::Dispatched);
        }
        assert!(world.redis.all("DEPENDENTS").is_empty());
    }
}

async fn retry(world: &World, name: &str) -> RetryOutcome {
    let outcome = world.store.jobs().retry(&name.parse().expect("legal")).await.expect("retrying");
    world.check();
    outcome
}

#[tokio::test]
async fn retried_job_waits_again_for_its_prerequisites() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.accepts(&[after("b", &["a"]), after("c", &["b"]), after_any("x", &["c"])]).await;
    world.finish(&life, &own, failed()).await;
    for name in ["b", "c"] {
        assert_eq!(retry(&world, name).await, RetryOutcome::FailedPrerequisite(own.clone()));
        assert_eq!(world.status(name), JobStatus::Error);
    }
    assert_eq!(retry(&world, "a").await, RetryOutcome::Moved(JobStatus::Dispatched));
    for name in ["b", "c"] {
        let waits = RetryOutcome::Moved(JobStatus::WaitingForPrerequisites);
        assert_eq!(retry(&world, name).await, waits);
        assert_eq!(world.field(name, "error"), None);
    }
    assert_eq!(world.field("a", "dependents").as_deref(), Some(r#"["b"]"#));
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["x", "a"]);
    world.finish(&life, &own, done()).await;
    assert_eq!(world.status("b"), JobStatus::Dispatched);
    assert_eq!(world.status("c"), JobStatus::WaitingForPrerequisites);
    let ran = world.claim(&life, 1).await.attempts.remove(0).id;
    world.finish(&life, &ran, failed()).await;
    assert_eq!(world.field("c", "error").as_deref(), Some("prerequisite failed: b"));
}

#[tokio::test]
async fn very_many_ended_prerequisites_of_a_retried_job_are_kept_in_several_steps() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let names: Vec<String> = (0..1200).map(|n| format!("j{n}")).collect();
    let jobs: Vec<Job> = names.iter().map(|name| job(name)).collect();
    for batch in jobs.chunks(1000) {
        world.store.jobs().submit(batch, true, RETENTION).await.expect("submitting");
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world.accepts(&[after("last", &names)]).await;
    settle(&world).await;
    for _ in 0..12 {
        let next = world.store_claim(&life, 100).await;
        world.store_finish(&life, next).await;
    }
    let last = world.claim(&life, 1).await.attempts.remove(0).id;
    world.finish(&life, &last, failed()).await;
    assert_eq!(retry(&world, "last").await, RetryOutcome::Moved(JobStatus::Dispatched));
    let kept = || world.redis.all("AWAITING").len();
    assert_eq!(kept(), 500, "one call keeps a part");
    assert_eq!((settle(&world).await, kept()), (2, 1200));
}

#[tokio::test]
async fn job_whose_prerequisite_is_gone_is_not_retried() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world.accepts(&[after("b", &["a"]), after_any("c", &["a"])]).await;
    world.finish(&life, &own, done()).await;
    for attempt in world.claim(&life, 2).await.attempts {
        world.finish(&life, &attempt.id, failed()).await;
    }
    world.store.jobs().delete(&own, RETENTION).await.expect("deleting");
    assert_eq!(retry(&world, "b").await, RetryOutcome::LostPrerequisite(own));
    assert_eq!(retry(&world, "c").await, RetryOutcome::Moved(JobStatus::Dispatched));
}

/// Retries a job with its dependents. Returns its outcome, the retried dependents, those that stay.
async fn resume(world: &World, name: &str) -> (RetryOutcome, Vec<String>, Vec<String>) {
    let id = name.parse().expect("legal");
    let graph = world.store.jobs().retry_with_dependents(&id, &Vec::new()).await.expect("retrying");
    world.check();
    let retried = graph.retried.iter().map(|(id, _)| id.to_string()).collect();
    (graph.outcome, retried, graph.stay.iter().map(|(id, _)| id.to_string()).collect())
}

#[tokio::test]
async fn failed_part_of_a_graph_is_resumed_and_the_rest_stays() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a"), job("other"), job("good")]).await;
    world
        .accepts(&[
            after("b", &["a", "good"]),
            after("c", &["a"]),
            after("join", &["b", "c"]),
            after("both", &["a", "other"]),
            after("stopped", &["a"]),
            after_any("always", &["a"]),
        ])
        .await;
    world
        .store
        .jobs()
        .stop(&"stopped".parse().expect("legal"), RETENTION, None)
        .await
        .expect("stopping");
    for (attempt, end) in
        world.claim(&life, 3).await.attempts.iter().zip([failed(), failed(), done()])
    {
        world.finish(&life, &attempt.id, end).await;
    }
    let dispatched = RetryOutcome::Moved(JobStatus::Dispatched);
    let (outcome, retried, stay) = resume(&world, "a").await;
    assert_eq!((outcome, stay), (dispatched.clone(), vec!["both".to_owned()]));
    assert_eq!(retried, ["b", "c", "join"]);
    for name in retried {
        assert_eq!(world.status(&name), JobStatus::WaitingForPrerequisites);
    }
    assert_eq!(world.status("good"), JobStatus::Finished);
    // It was retried before, so only its dependents are left to do.
    assert_eq!(resume(&world, "a").await.0, dispatched);
    assert_eq!(resume(&world, "other").await, (dispatched, vec!["both".to_owned()], vec![]));
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["always", "a", "other"]);
    for name in ["a", "other"] {
        world.finish(&life, &name.parse().expect("legal"), done()).await;
    }
    let claimed = world.claim(&life, 9).await.attempts;
    assert_eq!(ids(&claimed), ["b", "c", "both"]);
    for attempt in claimed {
        world.finish(&life, &attempt.id, done()).await;
    }
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["join"]);
    let missing = resume(&world, "nobody").await;
    assert_eq!(missing, (RetryOutcome::Missing, vec![], vec![]));
}

#[tokio::test]
async fn jobs_submitted_after_the_failure_of_their_prerequisite_are_resumed_with_it() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.accepts(&[job("a")]).await;
    let a = world.claim(&life, 1).await.attempts.remove(0).id;
    world.finish(&life, &a, failed()).await;
    assert_eq!(world.accepts(&[after("b", &["a"])]).await, [JobStatus::Error]);
    world.store.jobs().submit(&[after("c", &["a"])], false, RETENTION).await.expect("creating");
    let started = world.store.jobs().start(&"c".parse().expect("legal"), RETENTION).await;
    assert_eq!(started.expect("starting"), RetryOutcome::Moved(JobStatus::Error));
    let batch = [after("d", &["a"]), after("e", &["d"])];
    world.store.batches().submit(&batch, None, RETENTION).await.expect("submitting");
    let (outcome, retried, stay) = resume(&world, "a").await;
    assert_eq!((outcome, stay), (RetryOutcome::Moved(JobStatus::Dispatched), vec![]));
    assert_eq!(retried, ["b", "c", "d", "e"]);
    // A prerequisite that does not exist stays away.
    world.store.jobs().submit(&[after("f", &["a"])], false, RETENTION).await.expect("creating");
    world.redis.delete(&keys::job("a"));
    world.store.jobs().start(&"f".parse().expect("legal"), RETENTION).await.expect("starting");
    assert_eq!(world.status("f"), JobStatus::Error);
    assert_eq!(world.redis.ask::<i64>(&format!("EXISTS {}", keys::job("a"))), 0);
}

#[tokio::test]
async fn more_dependents_than_one_step_takes_are_resumed() {
    let life = Life::of("osis-default-1");
    let (world, own) = with_dependents(&life, 3000).await;
    world.accepts(&[after("last", &["j2999"])]).await;
    world.finish(&life, &own, failed()).await;
    settle(&world).await;
    let (outcome, retried, stay) = resume(&world, "a").await;
    assert_eq!(outcome, RetryOutcome::Moved(JobStatus::Dispatched));
    assert_eq!((retried.len(), stay.len()), (3001, 0));
}
