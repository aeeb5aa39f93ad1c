//! Fairness to background jobs, and actors on an overloaded machine.

use crate::support::{Hero, Redis, keys, wait_until};

use super::{field, ping, until};

/// Returns how many of many urgent jobs started before one background job.
fn urgent_before_background(fair_every: &str) -> usize {
    const URGENT: usize = 48;
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.fair_every", fair_every);
    hero.run(&["submit", "-t", "osis", "--priority", "2", "--id", "last", "-e", "1"]).code(0);
    for number in 0..URGENT {
        let (id, script) = (format!("j{number}"), "let n = 0; for i in 0..20000 { n += i; } n");
        hero.run(&["submit", "-t", "osis", "--priority", "0", "--id", &id, "-e", script]).code(0);
    }
    let _osis = hero.actor("osis-default-1").tasks(1).start();
    until(&redis, "last", "finished");
    let started = |id: &str| field(&redis, id, "started_at").filter(|at| !at.is_empty());
    let own = started("last").expect("it ran");
    (0..URGENT).filter(|number| started(&format!("j{number}")).is_some_and(|at| at < own)).count()
}

#[test]
fn urgent_jobs_do_not_starve_a_background_job() {
    let before = urgent_before_background("4");
    assert!(before < 4, "{before} urgent jobs went first");
}

#[test]
fn jobs_of_a_group_do_not_starve_a_job_of_their_type() {
    const OF_GROUP: usize = 48;
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.fair_every", "4");
    hero.run(&["submit", "-t", "osis", "--id", "any", "-e", "1"]).code(0);
    let script = "let n = 0; for i in 0..20000 { n += i; } n";
    let line = |n| {
        format!(
            "{{\"id\": \"j{n}\", \"script_type\": \"osis\", \"group\": \"io\", \"script\": \"{script}\"}}\n"
        )
    };
    let lines: String = (0..OF_GROUP).map(line).collect();
    hero.run_with_input(&["submit", "--batch", "-"], &lines).code(0);
    let _osis = hero.actor("osis-io-1").tasks(1).start();
    until(&redis, "any", "finished");
    let own = field(&redis, "any", "started_at").expect("it ran");
    let started = |id: &str| field(&redis, id, "started_at").filter(|at| !at.is_empty());
    let before = (0..OF_GROUP).filter(|n| started(&format!("j{n}")).is_some_and(|at| at < own));
    let before = before.count();
    assert!(before < 4, "{before} jobs of the group went first");
}

#[test]
fn urgent_jobs_all_go_first_without_fair_every() {
    assert!(urgent_before_background("0") > 20);
}

#[test]
fn actor_claims_nothing_while_its_machine_is_overloaded_and_logs_why() {
    let redis = Redis::start();
    let strained = Hero::on(&redis).set("actor.memory_min", "\"1000000GiB\"");
    let held = strained.actor("osis-default-1").start();
    wait_until("its presence says so", || {
        strained.run(&["actor", "list"]).code(0).stdout.contains("ready, holding: memory ")
    });
    strained.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    // Its heartbeat goes on, and it answers pings; it only claims no jobs.
    redis.push(&keys::control("osis:default:1"), &[ping(&keys::reply("me"))]);
    redis.awaited(&keys::reply("me"));
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    assert_eq!(held.err().matches("claims no jobs while").count(), 1, "{}", held.err());
    let free = Hero::on(&redis).set("actor.load_max", "100000").set("actor.memory_min", "\"1B\"");
    let _other = free.actor("osis-default-2").start();
    until(&redis, "a", "finished");
    assert_eq!(field(&redis, "a", "actor").as_deref(), Some("osis:default:2"));
}

/// A line of a batch.
fn job_line(id: &str, script: &str) -> String {
    format!("{{\"id\": \"{id}\", \"script_type\": \"osis\", \"script\": \"{script}\"}}\n")
}

#[test]
fn jobs_claimed_ahead_of_a_slow_one_run_on_an_idle_actor() {
    const QUICK: usize = 24;
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    // It learns that its jobs take microseconds, and claims the next ones ahead.
    let busy = hero.actor("osis-default-1").tasks(1).start();
    let batch = |first: usize, before: String| {
        let quick = (first..first + QUICK).map(|n| job_line(&format!("j{n}"), "1"));
        let lines: String = [before].into_iter().chain(quick).collect();
        hero.run_with_input(&["submit", "--batch", "-"], &lines).code(0);
    };
    batch(0, job_line("first", "1"));
    until(&redis, &format!("j{}", QUICK - 1), "finished");
    batch(QUICK, job_line("slow", "loop {}"));
    until(&redis, "slow", "started");
    let idle = hero.actor("osis-default-2").tasks(1).start();
    for number in QUICK..2 * QUICK {
        until(&redis, &format!("j{number}"), "finished");
    }
    assert_eq!(field(&redis, "slow", "status").as_deref(), Some("started"));
    assert_eq!(field(&redis, "slow", "actor").as_deref(), Some("osis:default:1"));
    for number in QUICK..2 * QUICK {
        let attempt = |name| field(&redis, &format!("j{number}"), name).unwrap_or_default();
        assert_eq!((attempt("attempt").as_str(), attempt("attempts").as_str()), ("1", ""));
    }
    drop((busy, idle));
}
