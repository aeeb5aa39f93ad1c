//! Commands while Redis stands still or is away.

use crate::support::{Frozen, Hero, Redis, keys, wait_until};

fn until_one_waits(redis: &Redis) {
    wait_until("it waits", || {
        let clients = redis.ask_with::<String, _>("CLIENT", &["LIST"]);
        // Without the flag it has waited before.
        clients.lines().any(|client| client.contains(" flags=b") && client.contains("cmd=blpop"))
    });
}

#[test]
fn wait_lasts_through_an_outage_as_long_as_it_was_asked_to() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "40 + 2"]).code(0);
    let line = "{\"script_type\":\"osis\",\"script\":\"1\"}\n";
    hero.run_with_input(&["submit", "--batch", "-", "--id", "b"], line).code(0);
    let mut graph = hero.begin(&["graph", "wait", "--wait", "10m", "b"]);
    until_one_waits(&redis);
    redis.kill();
    let mut long = hero.begin(&["job", "wait", "--wait", "10m", "a"]);
    let unknown = "whether it goes on is not known: redis at ";
    hero.run(&["job", "wait", "--wait", "1s", "a"]).code(75).says(unknown);
    assert!(!long.has_ended() && !graph.has_ended(), "{} {}", long.err(), graph.err());
    redis.start_again();
    let _actor = hero.actor("osis-default-1").start();
    long.ends().code(0).stdout("42\n");
    graph.ends().code(0);
}

#[test]
fn wait_for_a_job_of_a_frozen_redis_does_not_say_that_it_goes_on() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    let waiting = hero.begin(&["job", "wait", "--wait", "6s", "a"]);
    until_one_waits(&redis);
    let frozen = Frozen::new(redis.pid());
    waiting.ends().code(75).says("whether it goes on is not known: redis");
    hero.run(&["job", "wait", "--wait", "1s", "a"])
        .code(75)
        .says("whether it goes on is not known: redis has not answered yet");
    drop(frozen);
    hero.run(&["job", "wait", "--wait", "1s", "a"]).code(75).says("; it goes on: hero job wait a");
}

#[test]
fn check_of_a_frozen_redis_asks_it_once() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let frozen = Frozen::new(redis.pid());
    let done = hero.run(&["status", "--check"]).code(2);
    assert!(done.stdout.contains("cannot be reached: it does not answer"), "{}", done.stdout);
    drop(frozen);
}

/// Freezes Redis while a job writes lines, once `lines` of them are written, until its actor has given up a call.
fn each_line_stands_once_after_a_freeze_behind(lines: u64) {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let actor = hero.actor("bash-default-1").start();
    let script = "for n in $(seq 90); do echo line $n >&2; sleep 0.1; done";
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", script]).code(0);
    wait_until("it runs", || redis.field(&keys::job("a"), "status").as_deref() == Some("started"));
    let following = hero.begin(&["job", "logs", "-f", "a"]);
    wait_until("the log is followed", || {
        redis.ask_with::<String, _>("CLIENT", &["LIST"]).contains("cmd=xread")
    });
    let written = || redis.ask_with::<u64, _>("XLEN", &[keys::log("a")]);
    wait_until("the lines before are written", || written() >= lines);
    let frozen = Frozen::new(redis.pid());
    wait_until("the actor has given up a call", || actor.err().contains("cannot be reached"));
    drop(frozen);
    hero.run(&["job", "wait", "a"]).code(0);
    let expected: Vec<String> = (1..=90).map(|n| format!("line {n}")).collect();
    for shown in [hero.run(&["job", "logs", "a"]).code(0).stdout, following.ends().code(0).stdout] {
        let found: Vec<&str> = shown.lines().collect();
        assert_eq!(found.len(), expected.len(), "{shown}");
        let mut pairs = found.iter().zip(&expected);
        assert!(pairs.all(|(line, of)| line.ends_with(of.as_str())), "{shown}");
    }
}

#[test]
fn lines_of_a_log_stand_once_after_redis_stood_still() {
    each_line_stands_once_after_a_freeze_behind(10);
}

#[test]
fn first_lines_of_a_log_stand_once_after_redis_stood_still() {
    each_line_stands_once_after_a_freeze_behind(0);
}

#[test]
fn wait_of_no_time_says_how_the_job_stands() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1 + 1"]).code(0);
    hero.run(&["job", "wait", "--wait", "0s", "a"]).code(75).says("; it goes on: hero job wait a");
    let _actor = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "a"]).code(0);
    hero.run(&["job", "wait", "--wait", "0s", "a"]).code(0).stdout("2\n");
    hero.run(&["job", "wait", "--wait", "0s", "none"]).code(66);
}
