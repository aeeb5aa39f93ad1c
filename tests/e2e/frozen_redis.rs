//! Commands while Redis stands still or is away.

use crate::support::{Frozen, Hero, Redis, wait_until};

fn until_one_waits(redis: &Redis) {
    wait_until("it waits", || {
        redis.ask_with::<String, _>("CLIENT", &["LIST"]).contains("cmd=blpop")
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
