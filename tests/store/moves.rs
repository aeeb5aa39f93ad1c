//! Actions on jobs in every state: start, stop, delete, retry.

use hero::client::{Client, JobBuilder};
use hero::config::JobConfig;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::proto::message::Control;
use hero::store::{DeleteOutcome, RetryOutcome, StopOutcome, Submitted, Verdict};
use jiff::Timestamp;

use crate::support::{Life, RETENTION, World, ids, job, keys, line};

fn id(name: &str) -> JobId {
    name.parse().expect("a legal id")
}

fn later(name: &str) -> Job {
    let time = Timestamp::now() + RETENTION;
    JobBuilder::new("osis", "1").id(name).run_at(time).build().expect("a legal job")
}

/// A world with one job in each state, named by its state.
async fn one_of_each(life: &Life) -> World {
    let world = World::new();
    let done = || Verdict::Finished { output: "out".into(), exit_code: Some(0) };
    let dead = || Verdict::Error { error: "no".to_owned(), exit_code: Some(1), dead: true };
    world.ended(life, "finished", done()).await;
    world.ended(life, "error", dead()).await;
    world.started(life, "started").await;
    world.create(&[job("created")]).await;
    let waiting = JobBuilder::new("osis", "1").id("waiting_for_prerequisites").after("created");
    world.accepts(&[waiting.build().expect("legal"), later("scheduled"), job("dispatched")]).await;
    for status in JobStatus::ALL {
        assert_eq!(world.status(status.as_str()), status);
    }
    world
}

#[tokio::test]
async fn a_created_job_is_in_no_queue_until_it_is_started() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let created = Submitted::Accepted(JobStatus::Created);
    assert_eq!(world.create(&[job("a")]).await, [created]);
    assert!(world.claim(&life, 1).await.attempts.is_empty());
    let moved = world.store.jobs().start(&id("a"), RETENTION).await.expect("starting");
    world.check();
    assert_eq!(moved, RetryOutcome::Moved(JobStatus::Dispatched));
    assert_eq!(ids(&world.claim(&life, 1).await.attempts), ["a"]);
}

#[tokio::test]
async fn only_a_created_job_can_be_started() {
    let life = Life::of("osis-default-1");
    let world = one_of_each(&life).await;
    for status in JobStatus::ALL {
        let moved =
            world.store.jobs().start(&id(status.as_str()), RETENTION).await.expect("starting");
        world.check();
        let expected = match status {
            JobStatus::Created => RetryOutcome::Moved(JobStatus::Dispatched),
            other => RetryOutcome::Refused(other),
        };
        assert_eq!(moved, expected);
    }
    let missing = world.store.jobs().start(&id("nobody"), RETENTION).await.expect("starting");
    assert_eq!(missing, RetryOutcome::Missing);
}

#[tokio::test]
async fn a_created_job_that_is_started_goes_to_its_schedule_if_its_time_has_not_come() {
    let world = World::new();
    world.create(&[later("a")]).await;
    let moved = world.store.jobs().start(&id("a"), RETENTION).await.expect("starting");
    world.check();
    assert_eq!(moved, RetryOutcome::Moved(JobStatus::Scheduled));
}

#[tokio::test]
async fn foreign_created_hash_without_a_queue_cannot_be_started() {
    let world = World::new();
    world.redis.set_job("a", "id a script 1 status created");
    let moved = world.store.jobs().start(&id("a"), RETENTION).await.expect("starting");
    assert_eq!(moved, RetryOutcome::Illegal);
}

#[tokio::test]
async fn stop_ends_a_waiting_job_and_notifies_the_actor_of_a_running_one() {
    let life = Life::of("osis-default-1");
    let world = one_of_each(&life).await;
    for (name, expected, status) in [
        ("scheduled", StopOutcome::Stopped, JobStatus::Error),
        ("waiting_for_prerequisites", StopOutcome::Stopped, JobStatus::Error),
        ("created", StopOutcome::Stopped, JobStatus::Error),
        ("dispatched", StopOutcome::Stopped, JobStatus::Error),
        ("started", StopOutcome::Requested, JobStatus::Started),
        ("finished", StopOutcome::Ended, JobStatus::Finished),
        ("error", StopOutcome::Ended, JobStatus::Error),
    ] {
        let outcome = world.store.jobs().stop(&id(name), RETENTION, None).await.expect("stopping");
        world.check();
        assert_eq!((outcome, world.status(name)), (expected, status), "{name}");
        if expected == StopOutcome::Stopped {
            assert_eq!(world.field(name, "error").as_deref(), Some("stopped"));
            assert_eq!(world.redis.list(&keys::reply(name)).len(), 1);
        }
        let is_marked = world.field(name, "stop_requested").is_some();
        assert_eq!(is_marked, expected == StopOutcome::Requested, "{name}");
    }
    let missing = world.store.jobs().stop(&id("nobody"), RETENTION, None).await.expect("stopping");
    assert_eq!(missing, StopOutcome::Missing);
    assert!(world.work("type:osis").is_empty());
    let messages = world.redis.list(&keys::control("osis:default:1"));
    assert_eq!(messages.len(), 1);
    assert_eq!(Control::parse(messages[0].as_bytes()), Ok(Control::Stop { job_id: id("started") }));
}

#[tokio::test]
async fn a_boot_that_asks_about_its_own_job_learns_so_and_no_message_is_sent() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    let asking = Some(&life.boot);
    let outcome = world.store.jobs().stop(&own, RETENTION, asking).await.expect("stopping");
    assert_eq!(outcome, StopOutcome::Own);
    assert_eq!(world.field("a", "stop_requested").as_deref(), Some("1"));
    assert!(world.redis.all("CONTROL").is_empty());
}

#[tokio::test]
async fn a_running_job_of_an_unknown_actor_is_unowned() {
    let world = World::new();
    world.redis.set_job("a", "id a script 1 status started actor some:where");
    let outcome = world.store.jobs().stop(&id("a"), RETENTION, None).await.expect("stopping");
    assert_eq!(outcome, StopOutcome::Unowned);
    assert_eq!(world.field("a", "stop_requested"), None, "a refusal changes nothing");
}

#[tokio::test]
async fn a_stopped_job_in_a_long_queue_is_skipped_where_it_stands() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let jobs: Vec<Job> = (0..1000).map(|n| job(&format!("j{n:04}"))).collect();
    world.accepts(&jobs).await;
    world.accepts(&[job("a"), job("b")]).await;
    world.store.jobs().stop(&id("j0000"), RETENTION, None).await.expect("stopping");
    world.check();
    let claimed = world.claim(&life, 2).await;
    assert_eq!((ids(&claimed.attempts), claimed.skipped), (vec!["j0001", "j0002"], 1));
}

#[tokio::test]
async fn a_foreign_job_without_a_type_is_stopped_and_then_skipped() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.redis.push_job("osis", "a", "1");
    let outcome = world.store.jobs().stop(&id("a"), RETENTION, None).await.expect("stopping");
    assert_eq!((outcome, world.status("a")), (StopOutcome::Stopped, JobStatus::Error));
    assert_eq!(world.claim(&life, 1).await.skipped, 1);
    world.store.jobs().delete(&id("a"), RETENTION).await.expect("deleting");
    world.check();
}

#[tokio::test]
async fn every_job_that_does_not_run_can_be_deleted_and_leaves_nothing() {
    let life = Life::of("osis-default-1");
    let world = one_of_each(&life).await;
    for status in JobStatus::ALL {
        // Its dependents first: deleting what they wait for would end them.
        let deleted =
            world.store.jobs().delete(&id(status.as_str()), RETENTION).await.expect("deleting");
        world.check();
        let expected = match status {
            JobStatus::Started => DeleteOutcome::Running,
            _ => DeleteOutcome::Deleted,
        };
        assert_eq!(deleted, expected, "{status}");
    }
    let missing = world.store.jobs().delete(&id("nobody"), RETENTION).await.expect("deleting");
    assert_eq!(missing, DeleteOutcome::Missing);
    assert_eq!(world.redis.all("JOB"), [keys::job("started")]);
    let gone = "REPLY DEAD WORK INDEX LOG UNIQUE PENDING DEPENDENTS STAGED SETTLING";
    for kind in gone.split(' ') {
        assert_eq!(world.redis.all(kind), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn the_log_of_a_deleted_job_goes_with_it() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let own = world.started(&life, "a").await;
    world
        .store
        .logs()
        .append(&life.boot, [(&own, &line(1, "line"))], RETENTION)
        .await
        .expect("logging");
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    world.finish(&life, &own, done).await;
    assert_eq!(world.store.logs().read(&own, None, 9).await.expect("reading").len(), 1);
    world.store.jobs().delete(&own, RETENTION).await.expect("deleting");
    assert!(world.store.logs().read(&own, None, 9).await.expect("reading").is_empty());
}

#[tokio::test]
async fn only_an_ended_job_can_be_retried() {
    let life = Life::of("osis-default-1");
    let world = one_of_each(&life).await;
    for status in JobStatus::ALL {
        let moved = world.store.jobs().retry(&id(status.as_str())).await.expect("running again");
        world.check();
        let expected = match status {
            JobStatus::Finished | JobStatus::Error => RetryOutcome::Moved(JobStatus::Dispatched),
            other => RetryOutcome::Refused(other),
        };
        assert_eq!(moved, expected);
    }
    let missing = world.store.jobs().retry(&id("nobody")).await.expect("running again");
    assert_eq!(missing, RetryOutcome::Missing);
}

#[tokio::test]
async fn retried_job_is_reset_and_is_no_dead_letter() {
    let life = Life::of("osis-default-1");
    let world = one_of_each(&life).await;
    for name in ["error", "finished"] {
        world.store.jobs().retry(&id(name)).await.expect("running again");
        for field in ["error", "output", "exit_code", "attempt", "actor", "finished_at"] {
            assert_eq!(world.field(name, field), None, "{field} of {name}");
        }
        let ttl = world.redis.ttl(&keys::job(name));
        assert_eq!(ttl, -1, "a job on its way does not expire");
    }
    assert!(world.redis.list(&keys::dead("osis")).is_empty());
    assert_eq!(world.work("type:osis"), ["dispatched", "error", "finished"]);
    let claimed = world.claim(&life, 3).await;
    assert_eq!(claimed.attempts[1].job.as_ref().expect("a job").attempt, 1);
}

#[tokio::test]
async fn a_job_whose_unique_key_another_holds_cannot_run_again_until_that_one_is_gone() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let unique = |name| JobBuilder::new("osis", "1").id(name).unique_key("k").build();
    world.accepts(&[unique("a").expect("legal")]).await;
    let first = world.claim(&life, 1).await.attempts.remove(0).id;
    let failed = Verdict::Error { error: String::new(), exit_code: None, dead: false };
    world.finish(&life, &first, failed).await;
    world.accepts(&[unique("b").expect("legal")]).await;
    let moved = world.store.jobs().retry(&first).await.expect("running again");
    assert_eq!(moved, RetryOutcome::Duplicate(Some(id("b"))));
    // It was removed by hand, and its key stayed.
    for key in [keys::job("b"), keys::work("type:osis"), keys::ready("type:osis")] {
        world.redis.delete(&key);
    }
    let moved = world.store.jobs().retry(&first).await.expect("running again");
    assert_eq!(moved, RetryOutcome::Moved(JobStatus::Dispatched));
}

#[tokio::test]
async fn the_client_deletes_every_job_but_those_that_run() {
    let life = Life::of("osis-default-1");
    let world = one_of_each(&life).await;
    let presence = life.presence();
    world.store.actors().appear(&life.actor, &presence, RETENTION, None).await.expect("appearing");
    let client = Client::with(&world.redis.config("hero"), JobConfig::default()).expect("a client");
    assert_eq!(client.clear_all_jobs().await.expect("clearing"), 6);
    world.check();
    assert_eq!(world.redis.all("JOB"), [keys::job("started")]);
}
