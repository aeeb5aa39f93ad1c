//! Scheduled jobs.

use std::time::Duration;

use hero::client::{Client, FilesByPlace, Graph, JobBuilder, NewBatch};
use hero::config::JobConfig;
use hero::proto::job::{Job, JobStatus};
use jiff::{SignedDuration, Timestamp};

use crate::support::{Life, RETENTION, World, ids, job, keys, wait_until};

fn at(id: &str, time: Timestamp) -> Job {
    JobBuilder::new("osis", "1").id(id).run_at(time).build().expect("a legal job")
}

#[tokio::test]
async fn a_job_for_later_waits_and_one_for_the_past_does_not() {
    let (world, now) = (World::new(), Timestamp::now());
    let jobs = [at("later", now + RETENTION), at("past", now - SignedDuration::from_secs(5))];
    assert_eq!(world.accepts(&jobs).await, [JobStatus::Scheduled, JobStatus::Dispatched]);
    let found = world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching");
    let (dispatched, next) = (found.jobs, found.next);
    assert_eq!(dispatched, 0);
    assert!(next.is_some_and(|next| next <= RETENTION && next > RETENTION / 2), "{next:?}");
}

#[tokio::test]
async fn due_jobs_go_to_their_queues_earliest_first() {
    let (world, life, now) = (World::new(), Life::of("osis-default-1"), Timestamp::now());
    let soon = now + Duration::from_millis(300);
    let later = now + Duration::from_millis(400);
    world.accepts(&[at("b", later), at("a", soon), at("z", now + RETENTION)]).await;
    wait_until("both are due", || Timestamp::now() > later + Duration::from_millis(5));
    let found = world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching");
    let (dispatched, next) = (found.jobs, found.next);
    world.check();
    assert_eq!(dispatched, 2);
    assert!(next.is_some());
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["a", "b"]);
}

/// Hundreds of jobs due at one instant, as of schedules on the hour.
#[tokio::test]
async fn due_jobs_go_in_bounded_steps_and_keep_the_order_of_their_list() {
    let (world, now) = (World::new(), Timestamp::now());
    let due = now + Duration::from_millis(200);
    let jobs: Vec<Job> = (0..250).map(|n| at(&format!("j{}", n * 7919 % 1000), due)).collect();
    assert!(world.accepts(&jobs).await.iter().all(|status| *status == JobStatus::Scheduled));
    wait_until("they are due", || Timestamp::now() > due + Duration::from_millis(5));
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.push(
            world.store.schedule().dispatch_due(100, RETENTION).await.expect("dispatching").jobs,
        );
        world.check();
    }
    assert_eq!(steps, [100, 100, 50]);
    let found = world.store.schedule().dispatch_due(100, RETENTION).await.expect("dispatching");
    assert_eq!((found.jobs, found.next), (0, None));
}

#[tokio::test]
async fn queue_of_another_type_delays_no_other_scheduled_job() {
    let (world, life, now) = (World::new(), Life::of("osis-default-1"), Timestamp::now());
    let due = now + Duration::from_millis(200);
    let sal = JobBuilder::new("osis", "1").id("a").group("io").run_at(due).build().expect("legal");
    world.accepts(&[sal, at("b", due)]).await;
    world.redis.spoil(&keys::work("type:osis:group:io"));
    wait_until("both are due", || Timestamp::now() > due + Duration::from_millis(5));
    world.store.schedule().dispatch_due(10, RETENTION).await.expect("dispatching goes on");
    assert_eq!(ids(&world.claim(&life, 9).await.attempts), ["b"]);
    // The other one is not lost: it stands where recovery looks for it.
    assert_eq!(world.indexes_of("a"), [keys::ready("type:osis:group:io")]);
}

/// A delayed job of a submitter whose clock is many years slow.
fn delayed(id: &str, delay: Duration) -> Job {
    let mut job = JobBuilder::new("osis", "1").id(id).delay(delay).build().expect("legal");
    job.spec.run_at = Some("2001-01-01T00:00:00Z".parse().expect("a time"));
    job
}

#[tokio::test]
async fn delay_is_counted_on_the_clock_of_redis_by_every_way_of_submitting() {
    const HOUR: Duration = Duration::from_hours(1);
    let world = World::new();
    let settings = world.redis.config("hero");
    let client = Client::with(&settings, JobConfig::default()).expect("settings");
    let now = || -> Timestamp {
        let (s, us): (i64, i32) = world.redis.ask("TIME");
        Timestamp::new(s, us * 1000).expect("a time")
    };
    let before = now();
    client.submit(delayed("one", HOUR)).await.expect("submitting");
    client.create_job(delayed("created", HOUR)).await.expect("creating");
    let created = "created".parse().expect("legal");
    client.start_job(&created).await.expect("starting");
    let batch = [delayed("a", HOUR), job("b")];
    for submitted in client.submit_all(&batch).await.expect("submitting") {
        submitted.expect("accepted");
    }
    let (mut batch, files) = (NewBatch::default(), FilesByPlace::new());
    let atomic = [delayed("c", HOUR)];
    client.submit_all_or_none_of(&mut batch, &atomic, &files).await.expect("submitting");
    let mut graph = Graph::new();
    graph.add("d", delayed("d", HOUR));
    client.graphs().submit(&mut graph).await.expect("submitting");
    let after = now();
    world.check();
    for id in ["one", "created", "a", "c", "d"] {
        assert_eq!(world.status(id), JobStatus::Scheduled, "{id}");
        let run_at = world.field(id, "run_at").expect("written");
        let run_at: Timestamp = run_at.parse().expect("a time");
        // The hash has milliseconds.
        let millis = |time: Timestamp| time.as_millisecond() + 3_600_000;
        let window = millis(before)..=millis(after);
        assert!(window.contains(&run_at.as_millisecond()), "{id} is due at {run_at}");
    }
    assert_eq!(world.status("b"), JobStatus::Dispatched);
}
