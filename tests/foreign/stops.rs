//! Stop queues with older names, both ways, and logs of jobs that an old client reads.

use super::{Program, W1, dual};
use crate::support::{Redis, wait_until};

#[track_caller]
fn ends_with(redis: &Redis, id: &str, error: &str) {
    wait_until(&format!("job {id} ends with {error}"), || {
        redis.field(&format!("hero:job:{id}"), "error").as_deref() == Some(error)
    });
}

#[test]
fn an_old_client_stops_a_job_that_a_hero_actor_runs() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let id = Program::run(&redis, "old_client", &["submit", "w1", "sleep 600"]).trim().to_owned();
    wait_until("it runs", || {
        redis.field(&format!("hero:job:{id}"), "status").as_deref() == Some("started")
    });
    Program::run(&redis, "old_client", &["stop", "w1", &id]);
    ends_with(&redis, &id, "stopped_by_request");
    let (_, reply): (String, String) = redis.ask(&format!("BLPOP hero:reply:{id} 20"));
    assert_eq!(reply, "stopped_by_request");
    wait_until("the stop queue is empty", || redis.list("hero:stop_queue:w1").is_empty());
}

#[test]
fn an_old_client_stops_jobs_that_nobody_has_started() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let own = Program::run(&redis, "old_client", &["submit", "w1", "echo 1"]).trim().to_owned();
    hero.run(&["submit", "-t", "bash", "--id", "n", "-e", "echo 1"]).code(0);
    for id in [own.as_str(), "n", "nobody", "a:b"] {
        Program::run(&redis, "old_client", &["stop", "w1", id]);
    }
    let _supervisor = hero.supervisor().start();
    ends_with(&redis, &own, "stopped");
    ends_with(&redis, "n", "stopped");
    wait_until("the stop queue is empty", || redis.list("hero:stop_queue:w1").is_empty());
    assert_eq!(redis.list(W1), [] as [&str; 0], "an old worker could still run them");
    assert_eq!(redis.list("hero:q:work:type:bash"), [] as [&str; 0]);
}

#[test]
fn a_hero_client_stops_a_job_that_an_old_worker_runs() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let _supervisor = hero.supervisor().start();
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    hero.run(&["submit", "-t", "bash", "--id", "n", "-e", "exec sleep 600"]).code(0);
    wait_until("it runs", || redis.field("hero:job:n", "status").as_deref() == Some("started"));
    hero.run(&["job", "stop", "n"]).code(0);
    ends_with(&redis, "n", "stopped_by_request");
    hero.run(&["job", "wait", "n"]).code(1).says("job n was stopped");
}

#[test]
fn a_stop_for_a_job_of_an_old_worker_is_left_to_it() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let _supervisor = hero.supervisor().start();
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    let words = ["submit", "w1", "exec sleep 600"];
    let id = Program::run(&redis, "old_client", &words).trim().to_owned();
    wait_until("it runs", || {
        redis.field(&format!("hero:job:{id}"), "status").as_deref() == Some("started")
    });
    Program::run(&redis, "old_client", &["stop", "w1", &id]);
    ends_with(&redis, &id, "stopped_by_request");
}

#[test]
fn an_old_client_reads_the_log_that_a_hero_actor_writes() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let log = redis.folder().join("logs/old.log");
    std::fs::create_dir_all(redis.folder().join("logs")).expect("a folder");
    let path = format!("log_path={}", log.display());
    let words = ["submit", "w1", "echo said >&2; echo out", path.as_str()];
    let id = Program::run(&redis, "old_client", &words).trim().to_owned();
    wait_until("it has finished", || {
        redis.field(&format!("hero:job:{id}"), "status").as_deref() == Some("finished")
    });
    assert!(Program::run(&redis, "old_client", &["logs", &id]).contains("said"));
}
