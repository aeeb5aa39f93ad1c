//! The commands that Redis gets while there is nothing to do, or little.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::notify::Receiver;
use crate::support::{Hero, Redis, keys, size, wait_until};

use super::traces::collector::sending;
use super::until;

/// The scripts by which a job is submitted, claimed, logged and recorded, and its end is awaited.
const SCRIPTS_OF_A_JOB: u64 = 8;

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
fn duties_of_an_idle_supervisor_rest_while_one_of_them_polls() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).quick_sweeps();
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
fn jobs_that_wait_cost_no_more_commands_than_one() {
    let redis = Redis::start();
    // The walk through all hashes costs a command for each, at its own pace.
    let hero = Hero::on(&redis).quick_sweeps().set("supervisor.foreign", "false");
    let supervisor = hero.supervisor().start();
    let actor = hero.actor("osis-default-1").tasks(4).start();
    let waiting = || redis.ask::<u64>(&format!("ZCARD {}", keys::index("scheduled", "osis")));
    let submit = |count: usize| {
        let before = waiting();
        let job = "{\"script_type\":\"osis\",\"script\":\"wait(#{event: \\\"go\\\"})\"}\n";
        for some in (0..count).collect::<Vec<_>>().chunks(1000) {
            hero.run_with_input(&["submit", "--batch", "-"], &job.repeat(some.len())).code(0);
        }
        wait_until("they wait", || waiting() == before + count as u64);
        wait_until("the queue is forgotten", || {
            !redis.ask::<bool>(&format!("EXISTS {}", keys::keys().queues()))
        });
    };
    let memory = || -> u64 {
        let used: String = redis.ask("INFO memory");
        let used = used.lines().find_map(|line| line.strip_prefix("used_memory:")?.parse().ok());
        used.expect("a number")
    };
    // Commands per look: only a look asks for the revision of the periodic jobs.
    let per_look = || {
        let before = calls(&redis);
        let looks = |now: &BTreeMap<String, u64>| count(now, "hget") - count(&before, "hget");
        wait_until("it has looked for long", || looks(&calls(&redis)) >= 60);
        let now = calls(&redis);
        // What this test asks for does not count.
        let all = |of: &BTreeMap<String, u64>| of.values().sum::<u64>() - count(of, "info");
        (all(&now) - all(&before)) / looks(&now)
    };
    let none = per_look();
    submit(1);
    let one = per_look();
    let before = memory();
    let more = size(10_000) - 1;
    submit(more);
    let bytes = memory().saturating_sub(before) / more as u64;
    let many = per_look();
    println!(
        "{none} commands per look with 0 waiting jobs, {one} with 1, {many} with {more} more, of {bytes} bytes each"
    );
    assert!(many <= one + 3, "{none} {one} {many}");
    drop((supervisor, actor));
}

#[test]
fn job_costs_no_more_commands_and_no_field_where_its_attempts_are_traced_or_were_not() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let plain = Hero::on(&redis).set("actor.heartbeat", "\"5s\"");
    // The calls of a job, without those of its heartbeat, its wait and the look at it.
    let number = Cell::new(0);
    let cost = || {
        number.set(number.get() + 1);
        let id = format!("job{}", number.get());
        let before = calls(&redis);
        plain.run(&["exec", "-t", "osis", "--id", &id, "-e", "1"]).code(0);
        let now = calls(&redis);
        // No ZREM: the look for pushed ids makes one if it comes between a submission and its claim.
        let names = ["evalsha", "hset", "hget", "hgetall", "hincrby", "zadd", "rpush"];
        let grown: Vec<u64> =
            names.iter().map(|name| count(&now, name) - count(&before, name)).collect();
        (grown, redis.ask::<u64>(&format!("HLEN {}", keys::job(&id))))
    };
    // Some other call may come between, but not in the cheapest of many.
    let off = {
        let _actor = plain.actor("osis-default-1").start();
        (0..12).map(|_| cost()).min().expect("some")
    };
    println!("{off:?}");
    let traced = sending(Hero::on(&redis).set("actor.heartbeat", "\"5s\""), &receiver);
    let _actor = traced.actor("osis-default-1").start();
    wait_until("a traced job costs as much", || cost() == off);
    assert!(!receiver.received().is_empty());
    assert!(off.0[0] <= SCRIPTS_OF_A_JOB, "{off:?}");
}

#[test]
fn job_wakes_one_of_many_idle_actors() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).quick_sweeps();
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
    let is_one = (0..40).any(|number| woken(&format!("j{number}")) == 1);
    assert!(is_one, "the actor that runs the job waits again, and no other");
}
