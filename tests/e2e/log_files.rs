//! Log files on a disk that hangs.

use std::path::Path;

use nix::sys::signal::Signal;

use super::{field, until};
use crate::support::{Hero, Redis, keys, wait_until};

/// Queues an osis job that has a log file.
fn submit(redis: &Redis, id: &str, script: &str) {
    redis.set_job(id, "log_path below/job.log");
    redis.push_job("osis", id, script);
}

fn last_heartbeat(redis: &Redis) -> String {
    let text: String = redis.get(&keys::presence("osis:default:1"));
    let presence: serde_json::Value = serde_json::from_str(&text).expect("a presence");
    presence["last_heartbeat"].as_str().expect("a time").to_owned()
}

#[test]
fn log_file_that_hangs_stops_neither_its_job_nor_others_nor_the_heartbeat() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.heartbeat", "\"100ms\"");
    let actor = hero.actor("osis-default-1").tasks(2);
    let actor = actor.env("HERO_STALL", Path::new(hero::failpoint::LOG_FILE)).start();
    submit(&redis, "endless", "loop { print(\"line\"); sleep(0.01) }");
    wait_until("the endless job has logged", || {
        redis.ask::<i64>(&format!("XLEN {}", keys::log("endless"))) > 0
    });
    let before = last_heartbeat(&redis);
    wait_until("the heartbeat goes on", || last_heartbeat(&redis) != before);
    hero.run(&["exec", "-t", "osis", "-e", "6 * 7"]).code(0).stdout("42\n");

    submit(&redis, "short", "print(\"said\"); 1");
    until(&redis, "short", "finished");
    let log = hero.run(&["job", "logs", "short"]).code(0).stdout;
    assert!(log.contains("said\n"), "{log}");
    assert!(log.contains("the log file lacks lines: the disk does not answer\n"), "{log}");
    let warnings = actor.err();
    let warnings = warnings.lines().filter(|line| line.contains("cannot write the log file"));
    assert_eq!(warnings.count(), 1, "{}", actor.err());

    hero.run(&["job", "stop", "endless"]).code(0);
    until(&redis, "endless", "error");
    assert_eq!(field(&redis, "endless", "error").as_deref(), Some("stopped_by_request"));
    actor.signal(Signal::SIGTERM);
    actor.ends().code(0);
}
