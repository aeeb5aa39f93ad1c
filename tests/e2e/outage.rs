//! Redis is not running yet, goes away, and comes back.

use nix::sys::signal::Signal;

use crate::support::{Hero, Redis, keys, wait_until};

use super::{field, until};

#[test]
fn actor_waits_for_redis_at_its_start_and_logs_it_once() {
    let mut redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").begin();
    wait_until("it says so", || osis.err().contains("cannot be reached"));
    redis.start_again();
    wait_until("it is ready", || osis.err().contains("ready: "));
    assert_eq!(osis.err().matches("cannot be reached").count(), 1, "{}", osis.err());
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
}

#[test]
fn actor_exits_with_69_after_its_longest_wait_for_redis() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    hero.actor("osis-default-1").args(&["--wait", "100ms"]).begin().ends().code(69);
    hero.supervisor().args(&["--wait", "100ms"]).begin().ends().code(69);
}

#[test]
fn actor_that_waits_for_redis_ends_at_a_signal() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").begin();
    wait_until("it waits", || osis.err().contains("cannot be reached"));
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
}

#[test]
fn idle_actor_ends_though_redis_is_away() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis).set("actor.drain_timeout", "\"1d\"").set("log.level", "\"debug\"");
    let osis = hero.actor("osis-default-1").start();
    redis.kill();
    // A failed claim may have succeeded in Redis, so the actor asks which jobs it owns. If the
    // claim was the first call that failed, only this question is logged by name.
    wait_until("a claim has failed", || {
        ["claiming jobs: ", "reading the jobs of this boot: "]
            .iter()
            .any(|doing| osis.err().contains(doing))
    });
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
}

#[test]
fn job_that_ends_while_redis_is_away_is_recorded_when_it_is_back() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").start();
    let gate = redis.folder().join("gate");
    // It ends only after Redis has gone.
    let _sal = hero.actor("sal-default-1").start();
    let script = format!("while !exist({gate:?}) {{ sleep(0.01); }} \"through\"");
    hero.run(&["submit", "-t", "sal", "--id", "a", "-e", &script]).code(0);
    until(&redis, "a", "started");
    redis.kill();
    wait_until("the actor says so", || osis.err().contains("cannot be reached"));
    std::fs::write(&gate, "").expect("opening the gate");
    redis.start_again();
    until(&redis, "a", "finished");
    assert_eq!(field(&redis, "a", "output").as_deref(), Some("through"));
    assert_eq!(field(&redis, "a", "attempt").as_deref(), Some("1"));
    wait_until("it says that redis is back", || osis.err().contains("redis is back"));
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
    hero.run(&["exec", "-t", "sal", "-e", "2"]).code(0).stdout("2\n");
}

#[test]
fn exec_survives_a_restart_of_redis_or_says_how_to_go_on() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    let exec = hero.begin(&["exec", "-t", "osis", "--id", "a", "-e", "1"]);
    until(&redis, "a", "dispatched");
    redis.kill();
    redis.start_again();
    let _osis = hero.actor("osis-default-1").start();
    let done = exec.ends();
    match done.code {
        0 => drop(done.stdout("1\n")),
        // Or the answer to the submission was lost.
        _ if done.stderr.contains("submitting") => drop(done.code(69).says("hero job show a")),
        _ => drop(done.code(69).says("hero job wait a")),
    }
    hero.run(&["job", "wait", "a"]).code(0).stdout("1\n");
}

#[test]
fn submission_without_an_answer_says_how_to_find_the_job() {
    let mut redis = Redis::start();
    let hero = Hero::on(&redis);
    redis.run("CLIENT PAUSE 600000 WRITE");
    let submit = hero.begin(&["submit", "-t", "osis", "--id", "a", "-e", "1"]);
    wait_until("it was sent", || redis.ask::<String>("CLIENT LIST").contains("cmd=evalsha"));
    redis.kill();
    submit.ends().code(69).says("it may have been accepted: check with hero job show a");
    // Without a request there is no doubt.
    let unsent = hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(69);
    assert!(!unsent.stderr.contains("may have been accepted"), "{}", unsent.stderr);
}

#[test]
fn actor_without_its_lease_stops_its_jobs_and_restarts_with_a_new_boot_id() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").tasks(2).start();
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", super::ENDLESS]).code(0);
    until(&redis, "a", "started");
    let boot = || field(&redis, "a", "boot_id");
    let first = boot().expect("it has an owner");
    // A score of 0: its lease was declared over, and it still has jobs.
    redis.put(&keys().boots(), 0, &first);
    wait_until("it notices", || osis.err().contains("lost the lease"));
    wait_until("the job runs again", || boot().is_some_and(|boot| boot != first));
    assert_eq!(field(&redis, "a", "crashes").as_deref(), Some("1"));
    assert_eq!(redis.all("RUNNING").len(), 1, "the first boot still owns jobs");
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
}

#[test]
fn wait_goes_on_when_redis_is_back() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    let wait = hero.begin(&["job", "wait", "a"]);
    wait_until("it waits", || redis.ask::<String>("CLIENT LIST").contains("cmd=blpop"));
    redis.kill();
    redis.start_again();
    let _osis = hero.actor("osis-default-1").start();
    wait.ends().code(0).stdout("1\n");
}
