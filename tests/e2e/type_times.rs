//! The times of script types: what `expect_within` and `slow_after` of the configuration give their jobs.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{Hero, Redis, keys, wait_until};

use super::field;

/// Waits until supervisors have published the time of a script type.
#[track_caller]
fn published(redis: &Redis, field: &str, seconds: Option<&str>) {
    let read = || redis.field(&keys::prefix("TYPE_TIMES"), field);
    wait_until(&format!("{field} is {seconds:?}"), || read().as_deref() == seconds);
}

/// Returns a Hero that expects the jobs of this type within a tenth of a second.
fn expecting(redis: &Redis, script_type: &str) -> Hero {
    Hero::on(redis).set(&format!("type.{script_type}.expect_within"), "\"100ms\"")
}

#[test]
fn job_is_late_by_the_time_of_its_type_by_every_entrance_before_any_claim() {
    let redis = Redis::start();
    let cron = redis.folder().join("cron.d");
    fs::create_dir_all(&cron).expect("a folder");
    let daily = "[cron.daily]\nschedule = \"@yearly\"\ntype = \"osis\"\nscript = \"1\"\n";
    fs::write(cron.join("own.toml"), daily).expect("writing a file");
    let legacy = format!("{}old", keys::prefix("LEGACY_WORK"));
    let hero = expecting(&redis, "osis")
        .set("supervisor.cron_dir", &format!("\"{}\"", cron.display()))
        .set("supervisor.migration", "\"dual\"")
        .set("supervisor.legacy_queues", &format!("[{{ legacy = {legacy:?}, type = \"osis\" }}]"));
    let _supervisor = hero.supervisor().start();
    published(&redis, "expect_within:osis", Some("0.1"));
    hero.run(&["submit", "--id", "plain", "-t", "osis", "-e", "1"]).code(0);
    hero.run(&["submit", "--id", "waits", "--after", "plain", "-t", "osis", "-e", "1"]).code(0);
    hero.run(&["submit", "--id", "hour", "--delay", "1h", "-t", "osis", "-e", "1"]).code(0);
    hero.run(&["submit", "--id", "bash", "-t", "bash", "-e", "true"]).code(0);
    let own = ["submit", "--id", "own", "-t", "osis", "--expect-within", "1h", "-e", "1"];
    hero.run(&own).code(0);
    for (id, more) in [("line", &[][..]), ("whole", &["--all-or-none"][..])] {
        let line = json!({ "id": id, "type": "osis", "script": "1" });
        let own = json!({ "id": format!("own-{id}"), "type": "osis", "script": "1", "expect_within": 3600 });
        let lines = format!("{line}\n{own}\n");
        hero.run_with_input(&[&["submit", "--batch", "-"], more].concat(), &lines).code(0);
    }
    let graph = "[job.g]\nid = \"g\"\ntype = \"osis\"\nscript = \"1\"\n";
    hero.run_with_input(&["submit", "--graph", "-"], graph).code(0);
    redis.push_job("osis", "pushed", "1");
    redis.push_job("osis", "own-pushed", "1");
    redis.set_job("own-pushed", "expect_within 3600");
    let fired = hero.run(&["cron", "run", "daily"]).code(0).stdout.trim().to_owned();
    redis.set_job("old", "id old status dispatched script 1");
    redis.push(&legacy, &["old"]);
    let all = ["plain", "waits", "line", "whole", "g", "pushed", &fired, "old"];
    for id in all {
        wait_until(&format!("{id} is late"), || field(&redis, id, "late_at").is_some());
        assert_eq!(field(&redis, id, "expect_within").as_deref(), Some("0.1"), "{id}");
        assert!(field(&redis, id, "started_at").is_none(), "{id} was not claimed");
    }
    for id in ["own", "own-line", "own-whole", "own-pushed"] {
        assert_eq!(field(&redis, id, "expect_within").as_deref(), Some("3600"), "{id}");
        assert!(field(&redis, id, "late_at").is_none(), "{id}");
    }
    assert!(field(&redis, "hour", "late_at").is_none(), "its time begins in an hour");
    assert!(field(&redis, "bash", "expect_within").is_none(), "its type has no time");
    let shown = hero.run(&["job", "show", "pushed"]).code(0).stdout;
    assert!(shown.contains("expect_within  100ms") && shown.contains("late_at"), "{shown}");
    assert!(hero.run(&["job", "list"]).code(0).stdout.contains("dispatched, late"));
}

#[test]
fn attempt_is_slow_by_the_time_of_its_type_unless_the_job_has_its_own() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.bash.slow_after", "\"100ms\"");
    let _supervisor = hero.supervisor().start();
    published(&redis, "slow_after:bash", Some("0.1"));
    let _bash = hero.actor("bash-default-1").tasks(3).start();
    hero.run(&["submit", "--id", "slow", "-t", "bash", "-e", "sleep 60"]).code(0);
    redis.push_job("bash", "pushed", "sleep 60");
    let own = ["submit", "--id", "own", "-t", "bash", "--slow-after", "1h", "-e", "sleep 60"];
    hero.run(&own).code(0);
    for id in ["slow", "pushed"] {
        wait_until(&format!("{id} is slow"), || field(&redis, id, "slow_at").is_some());
    }
    wait_until("the other runs", || field(&redis, "own", "status").as_deref() == Some("started"));
    assert_eq!(field(&redis, "own", "slow_after").as_deref(), Some("3600"));
    assert_eq!(field(&redis, "slow", "slow_after").as_deref(), Some("0.1"));
    let expected = redis.members(&keys::prefix("EXPECTED"));
    assert_eq!(expected, ["slow own"], "the others were told once");
    assert!(hero.run(&["job", "list"]).code(0).stdout.contains("started, slow"));
}

#[test]
fn times_of_types_follow_a_reload_and_stay_while_no_supervisor_runs() {
    let redis = Redis::start();
    let hero = expecting(&redis, "osis");
    let supervisor = hero.supervisor().start();
    published(&redis, "expect_within:osis", Some("0.1"));
    let text = fs::read_to_string(supervisor.config()).expect("its file");
    let text = text.replace("expect_within = \"100ms\"", "expect_within = \"2h\"");
    fs::write(supervisor.config(), &text).expect("written");
    supervisor.signal(Signal::SIGHUP);
    published(&redis, "expect_within:osis", Some("7200"));
    drop(supervisor);
    hero.run(&["submit", "--id", "a", "-t", "osis", "-e", "1"]).code(0);
    assert_eq!(field(&redis, "a", "expect_within").as_deref(), Some("7200"));
    // A program that writes there makes no job invalid.
    redis.set_field(&keys::prefix("TYPE_TIMES"), "expect_within:osis", "soon");
    hero.run(&["submit", "--id", "b", "-t", "osis", "-e", "1"]).code(0);
    assert_eq!(field(&redis, "b", "expect_within"), None);
    // A supervisor without such a time takes it away.
    let _other = Hero::on(&redis).supervisor().start();
    published(&redis, "expect_within:osis", None);
}
