//! The commands that Redis gets while there is nothing to do, or little.

use std::collections::BTreeMap;

use crate::support::{Hero, Redis, keys, wait_until};

use super::until;

/// Returns how often each command was called, in scripts too.
fn calls(redis: &Redis) -> BTreeMap<String, u64> {
    let stats: String = redis.ask("INFO commandstats");
    let of = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    stats.lines().filter_map(of).collect()
}

fn count(calls: &BTreeMap<String, u64>, name: &str) -> u64 {
    calls.get(name).copied().unwrap_or_default()
}

#[test]
fn duties_of_an_idle_supervisor_rest_while_one_of_them_looks() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = [hero.supervisor().start(), hero.actor("osis-default-1").start()];
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0);
    // A sample finds that its queue is empty.
    wait_until("the queue is forgotten", || {
        !redis.ask::<bool>(&format!("EXISTS {}", keys::keys().queues()))
    });
    let before = calls(&redis);
    // Only a look asks for the revision of the periodic jobs.
    let looks = || count(&calls(&redis), "hget") - count(&before, "hget");
    wait_until("it has looked for long", || looks() >= 100);
    let scripts = count(&calls(&redis), "evalsha") - count(&before, "evalsha");
    assert!(scripts < 300, "{scripts} calls of scripts");
}

#[test]
fn job_wakes_one_of_many_idle_actors() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let units: Vec<String> = (1..=6).map(|instance| format!("osis-default-{instance}")).collect();
    let _actors: Vec<_> = units.iter().map(|unit| hero.actor(unit).start()).collect();
    let waiting = || redis.ask::<String>("CLIENT LIST").matches("cmd=blpop").count();
    let woken = |id: &str| {
        wait_until("all wait", || waiting() == units.len());
        let before = calls(&redis);
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", "1"]).code(0);
        until(&redis, id, "finished");
        wait_until("all wait again", || waiting() == units.len());
        count(&calls(&redis), "blpop") - count(&before, "blpop")
    };
    // A turn of a wait may end meanwhile, but not of one every time.
    let least = (0..8).map(|number| woken(&format!("j{number}"))).min();
    assert_eq!(least, Some(1), "the actor that runs the job waits again, and no other");
}
