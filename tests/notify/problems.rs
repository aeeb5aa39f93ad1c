//! Problems of queues and periodic jobs: told once while they last, and once when they are over.

use std::collections::BTreeSet;
use std::fs;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Receiver, fail};
use crate::support::{Hero, Redis, keys, wait_until};

/// Returns what was told so far: `NOTIFICATION EVENT SUBJECT`, and what is over.
pub(super) fn told(receiver: &Receiver) -> Vec<String> {
    let word = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    // A supervisor that is killed may not have recorded its delivery: the same message comes again.
    let mut messages = receiver.messages();
    let mut ids = BTreeSet::new();
    messages.retain(|message| ids.insert(word(message, "id")));
    let events = messages.iter().flat_map(|message| {
        let events = message["events"].as_array().expect("events").clone();
        let name = word(message, "notification");
        events.into_iter().map(move |of| {
            let named = ["queue", "cron", "graph", "job"].map(|key| word(&of, key));
            // A job of a graph has both.
            let subject = named.into_iter().rfind(|name| !name.is_empty()).unwrap_or_default();
            let line = format!("{name} {} {subject} {}", word(&of, "event"), word(&of, "ended"));
            line.trim_end().to_owned()
        })
    });
    let mut events: Vec<String> = events.collect();
    events.sort();
    events
}

/// Waits until exactly this was told.
#[track_caller]
fn awaits(receiver: &Receiver, mut expected: Vec<&str>) {
    expected.sort_unstable();
    wait_until(&format!("{expected:?}"), || told(receiver).len() >= expected.len());
    assert_eq!(told(receiver), expected);
}

/// Returns a program with these notifications, which post to the receiver.
fn hero(redis: &Redis, receiver: &Receiver, notifications: &[(&str, &str)]) -> Hero {
    let table = |(name, more): &(&str, &str)| {
        let url = format!("http://127.0.0.1:{}/hook", receiver.port);
        format!("[notify.{name}]\nwebhook = \"{url}\"\nevery = \"0s\"\n{more}\n")
    };
    Hero::on(redis).quick_sweeps().add(&notifications.iter().map(table).collect::<String>())
}

#[test]
fn queue_without_actor_is_reported_once_by_all_supervisors_and_once_when_it_is_served() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let notifications = [
        ("all", "on = [\"no_actor\", \"recovered\"]"),
        ("typed", "on = [\"no_actor\"]\ntypes = [\"bash\"]"),
        ("grouped", "on = [\"no_actor\"]\ngroups = [\"io\"]"),
        ("deaf", "on = [\"recovered\", \"cron_late\"]"),
    ];
    let hero = hero(&redis, &receiver, &notifications).set("unit.two.role", "\"supervisor\"");
    let mut supervisors = [hero.supervisor().start(), hero.actor("two").start()];
    let submit = |args: &[&str]| {
        hero.run(&[&["submit", "-e", "1"], args].concat()).code(0);
    };
    submit(&["-t", "osis"]);
    awaits(&receiver, vec!["all no_actor type:osis"]);
    let text = receiver.messages()[0]["events"][0]["error"].clone();
    assert_eq!(text, "queue type:osis has 1 job and no live actor");
    for of in &mut supervisors {
        of.kill();
    }
    // One that starts later finds the same problem, which was told, and others.
    let _later = hero.supervisor().start();
    submit(&["-t", "bash"]);
    submit(&["-t", "osis", "-g", "io"]);
    let mut expected = vec![
        "all no_actor type:osis",
        "all no_actor type:bash",
        "typed no_actor type:bash",
        "all no_actor type:osis:group:io",
        "grouped no_actor type:osis:group:io",
    ];
    awaits(&receiver, expected.clone());
    let _osis = hero.actor("osis-default-1").start();
    expected.push("all recovered type:osis no_actor");
    awaits(&receiver, expected.clone());
    // It is a problem again.
    let _io = hero.actor("osis-io-1").start();
    expected.push("all recovered type:osis:group:io no_actor");
    awaits(&receiver, expected.clone());
    fail(&hero, &["--name", "one"]);
    super::finish(&hero, &["--name", "one", "--id", "back"]);
    expected.extend(["all recovered back", "deaf recovered back"]);
    awaits(&receiver, expected);
}

#[test]
fn jobs_that_a_pause_or_a_limit_holds_for_long_are_reported_until_they_are_not() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = hero(&redis, &receiver, &[("ops", "on = [\"held\", \"recovered\"]")])
        .set("check.wait_warning", "\"1s\"")
        .set("limit.few.type", "\"bash\"")
        .set("limit.few.running", "1");
    let _running = [
        hero.supervisor().start(),
        hero.actor("osis-default-1").start(),
        hero.actor("bash-default-1").start(),
    ];
    let go = redis.folder().join("go");
    let script = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
    hero.run(&["queue", "pause", "type:osis"]).code(0);
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    awaits(&receiver, vec!["ops held type:osis"]);
    let text = receiver.messages()[0]["events"][0]["error"].as_str().expect("text").to_owned();
    assert!(
        text.starts_with("queue type:osis is paused by ")
            && text.contains("; 1 job waits in it, the first for"),
        "{text}"
    );
    let doctor = hero.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("queue type:osis is paused by ")
            && doctor.contains("; 1 job waits in it, the first for"),
        "{doctor}"
    );
    for _ in 0..2 {
        hero.run(&["submit", "-t", "bash", "-e", &script]).code(0);
    }
    awaits(&receiver, vec!["ops held type:osis", "ops held type:bash"]);
    hero.run(&["queue", "resume", "type:osis"]).code(0);
    let resumed = "ops recovered type:osis held";
    awaits(&receiver, vec!["ops held type:osis", "ops held type:bash", resumed]);
    fs::write(&go, "").expect("written");
    let started = "ops recovered type:bash held";
    awaits(&receiver, vec!["ops held type:osis", "ops held type:bash", resumed, started]);
}

#[test]
fn periodic_job_that_does_not_succeed_is_reported_until_it_does() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let folder = redis.folder().join("cron.d");
    fs::create_dir_all(&folder).expect("a folder");
    let daily = "[cron.backup]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\nnotify = [\"named\"]\n";
    fs::write(folder.join("own.toml"), daily).expect("writing a file");
    let late = "on = [\"cron_late\", \"recovered\"]";
    let with = |more: &str| format!("{late}\n{more}");
    let (backup, other, typed, named) = (
        with("crons = [\"backup\"]"),
        with("crons = [\"report\"]"),
        with("types = [\"bash\"]"),
        with("named = true"),
    );
    let notifications =
        [("backup", &*backup), ("other", &other), ("typed", &typed), ("named", &named)];
    let hero = hero(&redis, &receiver, &notifications)
        .set("supervisor.cron_dir", &format!("\"{}\"", folder.display()));
    // It was first seen three days ago, and no actor ran it since.
    let ended = format!("{}backup", keys::prefix("CRON_ENDED"));
    let since = (Timestamp::now() - SignedDuration::from_hours(72)).as_microsecond();
    redis.set_field(&ended, "since_us", since);
    let mut supervisor = hero.supervisor().start();
    awaits(&receiver, vec!["backup cron_late backup", "named cron_late backup"]);
    supervisor.kill();
    let _later = [hero.supervisor().start(), hero.actor("osis-default-1").start()];
    let id = hero.run(&["cron", "run", "backup"]).code(0).stdout.trim().to_owned();
    hero.run(&["job", "wait", &id]).code(0);
    let over = ["backup recovered backup cron_late", "named recovered backup cron_late"];
    awaits(&receiver, [&["backup cron_late backup", "named cron_late backup"], &over[..]].concat());
}
