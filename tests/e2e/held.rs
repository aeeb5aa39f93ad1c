//! Limits on concurrent jobs, counted by the jobs themselves.

use std::fs;
use std::path::Path;

use crate::support::{Hero, Redis, wait_until};

use super::{ENDLESS, field, until};

/// Builds a sal script that has a file while it runs, and records how many such files it saw.
fn counting(folder: &Path, name: &str) -> String {
    let (running, seen) = (folder.join("running"), folder.join("seen"));
    format!(
        "let own = \"{own}\";\n\
         file_write(own, \"\");\n\
         let together = run_command(\"ls {running} | wc -l\").stdout;\n\
         file_write(\"{seen}\", together);\n\
         run_command(\"sleep 0.05; rm \" + own);",
        own = running.join(name).display(),
        running = running.display(),
        seen = seen.join(name).display(),
    )
}

fn folders(redis: &Redis) -> std::path::PathBuf {
    let folder = redis.folder().join("counted");
    for part in ["running", "seen"] {
        fs::create_dir_all(folder.join(part)).expect("a folder");
    }
    folder
}

/// Waits until so many jobs have run, and returns the highest number that one of them saw running.
fn most_together(folder: &Path, jobs: usize) -> u32 {
    let seen = folder.join("seen");
    wait_until("all have run", || fs::read_dir(&seen).expect("a folder").count() == jobs);
    fs::read_dir(&seen)
        .expect("a folder")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let mut text = String::new();
            wait_until("it has written", || {
                text = fs::read_to_string(&path).unwrap_or_default();
                !text.trim().is_empty()
            });
            text.trim().parse::<u32>().expect("a number")
        })
        .max()
        .unwrap_or_default()
}

#[test]
fn limit_holds_across_four_actor_processes() {
    const JOBS: usize = 40;
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("limit.api.key", "\"api\"").set("limit.api.running", "3");
    let folder = folders(&redis);
    for number in 0..JOBS {
        let script = counting(&folder, &number.to_string());
        let submit = ["submit", "-t", "sal", "--limit-key", "api", "-e", script.as_str()];
        hero.run(&submit).code(0);
    }
    let _actors: Vec<_> = (1..=4)
        .map(|number| hero.actor(&format!("sal-default-{number}")).tasks(4).start())
        .collect();
    assert!((1..=3).contains(&most_together(&folder, JOBS)));
    wait_until("every place is free again", || redis.all("LIMIT_RUNNING").is_empty());
}

#[test]
fn limit_slots_of_a_dead_actor_become_free() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("limit.one.running", "1").set("actor.lease", "\"500ms\"");
    let _supervisor = hero.supervisor().start();
    let mut osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "-t", "osis", "-i", "1", "--id", "a", "-e", ENDLESS]).code(0);
    until(&redis, "a", "started");
    hero.run(&["submit", "-t", "osis", "--id", "b", "-e", "2"]).code(0);
    wait_until("b is held", || field(&redis, "b", "held_by").as_deref() == Some("one"));
    let shown = hero.run(&["queue", "list", "--json"]).code(0).stdout;
    assert!(shown.contains("\"held\":1"), "{shown}");
    let _other = hero.actor("osis-default-2").start();
    osis.kill();
    hero.run(&["job", "wait", "b"]).code(0).stdout("2\n");
}

#[test]
fn rate_limit_holds_jobs_and_the_supervisor_releases_them() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("limit.slow.rate", "\"2/500ms\"");
    let _supervisor = hero.supervisor().start();
    for number in 0..6 {
        let id = format!("j{number}");
        hero.run(&["submit", "-t", "osis", "--id", &id, "-e", "1"]).code(0);
    }
    let _osis = hero.actor("osis-default-1").start();
    let starts: Vec<jiff::Timestamp> = (0..6)
        .map(|number| {
            let id = format!("j{number}");
            until(&redis, &id, "finished");
            field(&redis, &id, "started_at").expect("it ran").parse().expect("a time")
        })
        .collect();
    // By Redis's clock, which the limit uses.
    for pair in starts.windows(3) {
        let apart = pair[2].duration_since(pair[0]).as_millis();
        assert!(apart >= 499, "three started within {apart} ms: {starts:?}");
    }
}

#[test]
fn actor_with_a_higher_limit_takes_held_jobs() {
    let redis = Redis::start();
    let low = Hero::on(&redis).set("limit.one.running", "1");
    let _supervisor = low.supervisor().start();
    let _full = low.actor("osis-default-1").start();
    low.run(&["submit", "-t", "osis", "--id", "a", "-e", ENDLESS]).code(0);
    until(&redis, "a", "started");
    for id in ["b", "c"] {
        low.run(&["submit", "-t", "osis", "--id", id, "-e", "1"]).code(0);
        wait_until("it is held", || field(&redis, id, "held_by").is_some());
    }
    // Otherwise it may take the released job first, and hold it again.
    low.run(&["actor", "drain", "osis-default-1"]).code(0);
    let high = Hero::on(&redis).set("limit.one.running", "2");
    let _more = high.actor("osis-default-2").start();
    for id in ["b", "c"] {
        until(&redis, id, "finished");
    }
}

#[test]
fn serial_jobs_run_in_order_one_at_a_time_while_others_run() {
    const SERIAL: usize = 12;
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let folder = folders(&redis);
    let order = redis.folder().join("order");
    for number in 0..SERIAL {
        let name = number.to_string();
        let script = format!(
            "run_command(\"echo {name} >> {order}\");\n{}",
            counting(&folder, &name),
            order = order.display()
        );
        let submit = ["submit", "-t", "sal", "-i", "1", "--no-concurrent", "-e", script.as_str()];
        hero.run(&submit).code(0);
    }
    // It runs as long as the serial jobs, which shows that they do not block it.
    hero.run(&["submit", "-t", "sal", "-i", "1", "--id", "beside", "-e", ENDLESS]).code(0);
    let _sal = hero.actor("sal-default-1").tasks(4).start();
    until(&redis, "beside", "started");
    assert_eq!(most_together(&folder, SERIAL), 1);
    let lines = fs::read_to_string(&order).expect("they have written");
    let expected: Vec<String> = (0..SERIAL).map(|number| number.to_string()).collect();
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    assert_eq!(field(&redis, "beside", "status").as_deref(), Some("started"));
}

#[test]
fn limits_are_listed_with_what_runs_and_what_they_hold() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("limit.few.type", "\"osis\"")
        .set("limit.few.running", "1")
        .set("limit.each.per", "\"key\"")
        .set("limit.each.running", "9")
        .set("limit.each.rate", "\"100/h\"");
    let _osis = hero.actor("osis-default-1").tasks(4).start();
    for id in ["a", "b"] {
        let submit = ["submit", "-t", "osis", "--id", id, "--limit-key", "k", "-e", "loop {}"];
        hero.run(&submit).code(0);
    }
    let listed = || {
        let listed = hero.run(&["limit", "list", "--json"]).code(0).stdout;
        serde_json::from_str::<serde_json::Value>(&listed).expect("one document")["limits"].clone()
    };
    crate::support::wait_until("one runs and one is held", || {
        let limits = listed();
        let of = |name: &str| {
            let limits = limits.as_array().expect("limits");
            limits.iter().rfind(|limit| limit["name"] == name).cloned().unwrap_or_default()
        };
        let (few, each) = (of("few"), of("each"));
        few["running"] == 1
            && few["held"] == 1
            && few["running_max"] == 1
            && each["value"] == "k"
            && each["running"] == 1
            && each["started"] == 1
    });
    let text = hero.run(&["limit", "list"]).code(0).stdout;
    assert!(text.contains("key k") && text.contains("100/h"), "{text}");
}
