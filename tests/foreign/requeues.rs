//! Ended jobs whose ids a program pushes again with plain commands, as the older dispatcher had it.

use super::{bash, counting, dual, has_status, runs};
use crate::support::{Redis, until, wait_until};

const QUEUE: &str = "hero:q:work:type:bash";
const W1: &str = super::W1;

fn attempt(redis: &Redis, id: &str) -> Option<String> {
    redis.field(&format!("hero:job:{id}"), "attempt")
}

/// Writes a hash with a script that counts its runs.
fn write(redis: &Redis, id: &str, status: &str, more: &[&str]) {
    let script = counting(redis, id, "ran");
    let mut fields = vec!["status", status, "script_type", "bash", "script", &script];
    fields.extend(more);
    redis.ask_with::<i64, _>(&format!("HSET hero:job:{id}"), &fields);
}

#[track_caller]
fn has_run(redis: &Redis, id: &str, times: u64) {
    wait_until(&format!("{id} has run {times} times"), || runs(redis).get(id) == Some(&times));
}

/// Lets a job run that was pushed after all others: ids before it have been looked at.
#[track_caller]
fn pass(redis: &Redis, id: &str) {
    write(redis, id, "dispatched", &[]);
    redis.run(&format!("RPUSH {QUEUE} {id}"));
    until(redis, id, "finished");
}

#[test]
fn an_ended_job_runs_again_when_its_id_is_pushed() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let (supervisor, actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let socket = redis.folder().join("redis.sock");
    let script = format!("redis-cli -s {} INCR test:tries | grep -v 1", socket.display());
    let submitted = ["submit", "-t", "bash", "--id", "own", "--unique-key", "k", "-e", &script];
    hero.run(&submitted).code(0);
    until(&redis, "own", "error");
    redis.run(&format!("RPUSH {QUEUE} own"));
    until(&redis, "own", "finished");
    assert_eq!(attempt(&redis, "own").as_deref(), Some("2"));
    assert_eq!(redis.field("hero:job:own", "error"), None);
    let says_so = |log: &str| log.contains("a program has pushed its id");
    wait_until("the log says so", || says_so(&actor.err()) || says_so(&supervisor.err()));

    write(&redis, "raw", "dispatched", &[]);
    redis.run(&format!("LPUSH {QUEUE} raw"));
    for times in 1..4 {
        has_run(&redis, "raw", times);
        until(&redis, "raw", "finished");
        redis.run(&format!("LPUSH {QUEUE} raw"));
    }
    has_run(&redis, "raw", 4);
    until(&redis, "raw", "finished");
    assert_eq!(attempt(&redis, "raw").as_deref(), Some("4"));
    assert!(redis.ttl("hero:job:raw") > 0, "it expires as any ended job");
}

#[test]
fn a_job_from_the_time_of_the_older_dispatcher_runs_when_its_id_is_pushed() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let long_ago = "2020-01-01T00:00:00Z";
    write(&redis, "failed", "error", &["error", "killed", "finished_at", long_ago]);
    write(&redis, "old", "error", &["error", "killed"]);
    write(&redis, "stale", "started", &["started_at", long_ago, "timeout", "10"]);
    redis.run(&format!("RPUSH {QUEUE} failed"));
    redis.run(&format!("RPUSH {W1} old"));
    redis.run(&format!("RPUSH {QUEUE} stale"));
    for id in ["failed", "old", "stale"] {
        until(&redis, id, "finished");
        has_run(&redis, id, 1);
    }
}

#[test]
fn an_id_that_stood_in_a_queue_before_the_end_runs_no_ended_job_again() {
    let redis = Redis::start();
    let hero = bash(&redis);
    write(&redis, "twice", "dispatched", &[]);
    redis.run(&format!("RPUSH {QUEUE} twice twice"));
    let script = counting(&redis, "own", "ran");
    hero.run(&["submit", "-t", "bash", "--id", "own", "-e", &script]).code(0);
    // A person brings it to the front.
    redis.run(&format!("LPUSH {QUEUE} own"));
    // A job that an actor has popped while it was stopped.
    hero.run(&["submit", "-t", "bash", "--id", "stopped", "-e", &counting(&redis, "stopped", "")])
        .code(0);
    assert_eq!(redis.ask::<String>(&format!("RPOP {QUEUE}")), "stopped");
    hero.run(&["job", "stop", "stopped"]).code(0);
    redis.run(&format!("LPUSH {QUEUE} stopped"));

    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    until(&redis, "twice", "finished");
    until(&redis, "own", "finished");
    pass(&redis, "last");
    let runs = runs(&redis);
    assert_eq!(
        (runs.get("twice"), runs.get("own"), runs.get("stopped")),
        (Some(&1), Some(&1), None)
    );
    assert!(has_status(&redis, "stopped", "error"));
}

#[test]
fn a_job_that_was_put_back_for_a_slow_actor_runs_once() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    hero.run(&["submit", "-t", "bash", "--id", "slow", "-e", &counting(&redis, "slow", "")])
        .code(0);
    assert_eq!(redis.ask::<String>(&format!("LPOP {QUEUE}")), "slow");
    wait_until("it is put back", || redis.ask::<u64>(&format!("LLEN {QUEUE}")) == 1);
    let _actor = hero.actor("bash-default-1").start();
    until(&redis, "slow", "finished");
    // The slow actor puts back the job that it popped.
    redis.run(&format!("LPUSH {QUEUE} slow"));
    pass(&redis, "last");
    assert_eq!(runs(&redis).get("slow"), Some(&1));
}

#[test]
fn a_pushed_id_waits_for_its_prerequisite_its_unique_key_and_its_own_queue() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    write(&redis, "holder", "scheduled", &["unique_key", "k"]);
    redis.run("SET hero:meta:job:unique:k holder");
    write(&redis, "keyed", "error", &["unique_key", "k"]);
    write(&redis, "failed", "error", &[]);
    write(&redis, "after", "error", &["prerequisites", "failed"]);
    write(&redis, "elsewhere", "error", &["group", "io"]);
    redis.run(&format!("RPUSH {QUEUE} keyed after elsewhere"));
    pass(&redis, "last");
    for id in ["keyed", "after", "elsewhere"] {
        assert!(has_status(&redis, id, "error"), "{id}");
    }
}

#[test]
fn a_pushed_id_is_skipped_where_the_configuration_says_so() {
    let redis = Redis::start();
    let hero = bash(&redis).set("job.requeue_by_push", "false");
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    write(&redis, "failed", "error", &[]);
    redis.run(&format!("RPUSH {QUEUE} failed"));
    pass(&redis, "last");
    assert!(has_status(&redis, "failed", "error"));
}
