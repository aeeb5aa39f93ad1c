//! A flood of garbage: a hundred thousand ids that are no jobs, before good ones.

use hero::proto::job::JobStatus;

use super::units::{Settings, Unit};
use crate::support::{RETENTION, Redis, World, job, keys, wait_until};

const GARBAGE: usize = 100_000;
const GOOD: usize = 20;

#[tokio::test]
async fn a_flood_of_garbage_delays_good_jobs_by_no_more_than_skipping_it_and_fills_no_log() {
    let world = World::on(Redis::start(), "hero");
    let mut pipeline = redis::pipe();
    for batch in 0..100 {
        let ids = (0..GARBAGE / 100).map(|number| format!("nobody-{batch}-{number}"));
        pipeline.cmd("RPUSH").arg(keys::work("type:osis")).arg(ids.collect::<Vec<_>>());
    }
    pipeline.query::<redis::Value>(&mut world.redis.link()).expect("redis answers");
    let good: Vec<_> = (0..GOOD).map(|number| job(&format!("good-{number}"))).collect();
    world.store.jobs().submit(&good, true, RETENTION).await.expect("submitting");

    let folder = world.redis.folder().to_owned();
    let redis = folder.join("redis.sock");
    let mut actor = Unit::new("osis-default-1", &Settings::SHORT, &folder, &redis);
    let began = std::time::Instant::now();
    actor.start();
    wait_until("the good jobs have ended", || {
        good.iter().all(|job| world.status(job.id.as_str()) == JobStatus::Finished)
    });
    let seconds = usize::try_from(began.elapsed().as_secs()).expect("a short time") + 1;
    assert_eq!(world.count("osis", "skipped"), GARBAGE as u64);
    let log = actor.log();
    let lines = log.lines().filter(|line| line.contains("skipped ids")).count();
    assert!((1..=seconds).contains(&lines), "{lines} lines in {seconds} s");
    assert!(log.lines().count() < 3 * GOOD + 20, "the log grew with the garbage:\n{log}");
}
