//! Situations, and exactly the messages that each of them leads to.

use serde_json::{Value, json};

use super::{Receiver, fail, finish, wanted};
use crate::support::{Hero, Redis, keys, wait_until};

/// The notifications: each posts to a path with its name.
const NOTIFICATIONS: &[(&str, &str)] = &[
    ("all", "on = [\"failed\", \"dead\", \"recovered\", \"finished\", \"late\", \"slow\"]"),
    ("tardy", "on = [\"late\"]\nnamed = true"),
    ("dead", "on = [\"dead\"]"),
    ("typed", "types = [\"bash\"]"),
    ("grouped", "groups = [\"io\"]"),
    ("called", "callers = [\"ann\"]"),
    ("tagged", "tags = [\"nightly\", \"weekly\"]"),
    ("named", "named = true"),
    ("back", "on = [\"recovered\"]"),
];

/// A situation: what it is, what is done, and the events that are told, `NOTIFICATION EVENT JOB` each.
type Situation = (&'static str, fn(&Hero, &Redis), &'static [&'static str]);

const SITUATIONS: &[Situation] = &[
    ("a job finishes", |hero, _| finish(hero, &["--id", "a1"]), &["all finished a1"]),
    ("a job fails", |hero, _| fail(hero, &["--id", "a2"]), &["all failed a2"]),
    (
        "its like finishes: it has recovered",
        |hero, _| finish(hero, &["--id", "a3"]),
        &["all recovered a3", "back recovered a3"],
    ),
    ("another finishes", |hero, _| finish(hero, &["--id", "a4"]), &["all finished a4"]),
    (
        "a job of a name fails",
        |hero, _| fail(hero, &["--id", "b1", "--name", "backup"]),
        &["all failed b1"],
    ),
    (
        "a job of another name finishes: nothing has recovered",
        |hero, _| finish(hero, &["--id", "b2", "--name", "report"]),
        &["all finished b2"],
    ),
    (
        "one of this name finishes",
        |hero, _| finish(hero, &["--id", "b3", "--name", "backup"]),
        &["all recovered b3", "back recovered b3"],
    ),
    (
        "a job uses up its attempts",
        |hero, _| fail(hero, &["--id", "c1", "--retries", "1"]),
        &["all dead c1", "dead dead c1"],
    ),
    (
        "a job finishes at its second attempt: only its end is told",
        |hero, _| {
            let script = "[ \"$HERO_ATTEMPT\" = 2 ]";
            hero.run(&["exec", "-t", "bash", "-e", script, "--id", "c2", "--retries", "1"]).code(0);
        },
        &["all finished c2"],
    ),
    (
        "a job of the caller fails",
        |hero, _| fail(hero, &["--id", "d1", "--caller", "ann"]),
        &["all failed d1", "called failed d1"],
    ),
    (
        "a job with a tag fails",
        |hero, _| fail(hero, &["--id", "d2", "--tag", "x", "--tag", "weekly"]),
        &["all failed d2", "tagged failed d2"],
    ),
    (
        "a job of the group fails",
        |hero, _| fail(hero, &["--id", "d3", "--group", "io"]),
        &["all failed d3", "grouped failed d3"],
    ),
    (
        "a job names notifications, one of which has other filters",
        |hero, _| fail(hero, &["--id", "e1", "--notify", "named", "--notify", "typed"]),
        &["all failed e1", "named failed e1", "typed failed e1"],
    ),
    (
        "a job that names a notification finishes, which it does not tell",
        |hero, _| finish(hero, &["--id", "e2", "--name", "e", "--notify", "named"]),
        &["all finished e2"],
    ),
    (
        "a job names an unknown notification",
        |hero, _| fail(hero, &["--id", "e3", "--notify", "nobody"]),
        &["all failed e3"],
    ),
    (
        "a waiting job is stopped: it did not fail",
        |hero, _| {
            hero.run(&["submit", "-t", "osis", "-e", "1", "--id", "f1", "--delay", "1h"]).code(0);
            hero.run(&["job", "stop", "f1"]).code(0);
        },
        &[],
    ),
    (
        "a prerequisite fails, and its dependent with it",
        |hero, _| {
            hero.run(&["submit", "-t", "osis", "-e", "throw 1", "--id", "g1", "--delay", "300ms"])
                .code(0);
            hero.run(&["submit", "-t", "osis", "-e", "1", "--id", "g2", "--after", "g1"]).code(0);
        },
        &["all failed g1", "all failed g2"],
    ),
    (
        "a job does not start in time",
        |hero, _| {
            let args = [
                "submit",
                "-t",
                "osis",
                "-g",
                "nowhere",
                "-e",
                "1",
                "--id",
                "h1",
                "--expires",
                "50ms",
            ];
            hero.run(&args).code(0);
        },
        &["all failed h1"],
    ),
    (
        "a job exceeds its timeout",
        |hero, _| {
            let args = ["exec", "-t", "osis", "-e", "loop {}", "--id", "h2", "--timeout", "100ms"];
            hero.run(&args).code(1);
        },
        &["all failed h2"],
    ),
    (
        "a job of a program with plain commands fails",
        |_, redis| redis.push_job("osis", "i1", "throw 1"),
        &["all failed i1"],
    ),
    (
        "a job has not ended within its time",
        |hero, _| {
            let job = ["submit", "-t", "osis", "-g", "nowhere", "-e", "1", "--id", "j1"];
            hero.run(&[&job[..], &["--expect-within", "50ms"]].concat()).code(0);
        },
        &["all late j1"],
    ),
    (
        "a job that names a notification of late jobs is late",
        |hero, _| {
            let job = ["submit", "-t", "osis", "-g", "nowhere", "-e", "1", "--id", "j2"];
            hero.run(&[&job[..], &["--expect-within", "50ms", "--notify", "tardy"]].concat())
                .code(0);
        },
        &["all late j2", "tardy late j2"],
    ),
    (
        "a job ends within its times: it only recovers",
        |hero, _| finish(hero, &["--id", "j3", "--expect-within", "1h", "--slow-after", "1h"]),
        &["all recovered j3", "back recovered j3"],
    ),
    (
        "both attempts of a job run for long",
        |hero, _| {
            let job = ["exec", "-t", "bash", "-e", "sleep 60", "--id", "k1", "--timeout", "2s"];
            let more = ["--retries", "1", "--backoff", "10ms", "--slow-after", "100ms"];
            hero.run(&[&job[..], &more[..]].concat()).code(1);
        },
        &["all slow k1", "all slow k1", "all dead k1", "dead dead k1", "typed failed k1"],
    ),
];

#[test]
fn each_situation_leads_to_exactly_its_messages() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let table = |(name, more): &(&str, &str)| {
        let port = receiver.port;
        format!(
            "[notify.{name}]\nwebhook = \"http://127.0.0.1:{port}/{name}\"\nevery = \"0s\"\n{more}\n"
        )
    };
    let tables: String = NOTIFICATIONS.iter().map(table).collect();
    let hero = Hero::on(&redis).add(&tables);
    let _osis = hero.actor("osis-default-1").start();
    let _bash = hero.actor("bash-default-1").start();
    let _io = hero.actor("osis-io-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed", "finished", "recovered", "failed named", "late", "slow"]);
    let mut expected: Vec<String> = Vec::new();
    for (what, act, told) in SITUATIONS {
        act(&hero, &redis);
        expected.extend(told.iter().map(|&line| line.to_owned()));
        wait_until(what, || seen(&receiver).len() >= expected.len());
        let (mut seen, mut wanted) = (seen(&receiver), expected.clone());
        seen.sort();
        wanted.sort();
        assert_eq!(seen, wanted, "{what}");
    }
    // Everything that was written has been read, and nothing more came of it.
    wait_until("all is read", || {
        let last: Option<String> = redis.field(&keys().notify_state(), "read:0");
        let newest: Vec<(String, Vec<String>)> =
            redis.ask(&format!("XREVRANGE {} + - COUNT 1", keys().notify_events()));
        last == newest.first().map(|(id, _)| id.clone())
            && redis.members(&keys().notify_due()).is_empty()
    });
    assert_eq!(seen(&receiver).len(), expected.len());
}

/// Returns the events that were told: `NOTIFICATION EVENT JOB`.
fn seen(receiver: &Receiver) -> Vec<String> {
    let messages = receiver.messages();
    let events = messages.iter().flat_map(|message| {
        let name = message["notification"].as_str().expect("a name").to_owned();
        let events = message["events"].as_array().expect("events").clone();
        events.into_iter().map(move |event| {
            let word =
                |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("{name} {} {}", word("event"), word("job"))
        })
    });
    events.collect()
}

#[test]
fn a_storm_is_two_messages_with_all_its_events_counted() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = super::hero(&redis, &receiver, "every = \"1s\"");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "first"]);
    receiver.awaits(1);
    let lines: String = (0..50)
        .map(|number| json!({ "type": "osis", "script": "throw 1", "id": format!("s{number}") }))
        .flat_map(|line| [line.to_string(), "\n".to_owned()])
        .collect();
    hero.run_with_input(&["submit", "--batch", "-"], &lines).code(0);
    let total = || {
        receiver.messages().iter().map(|of| of["total"].as_u64().expect("a number")).sum::<u64>()
    };
    wait_until("all are told", || total() == 51);
    let messages = receiver.messages();
    assert_eq!(messages[0]["total"], 1);
    assert!((2..=3).contains(&messages.len()), "{messages:?}");
    assert!(messages.iter().all(|of| of["events"].as_array().expect("events").len() <= 20));
}

#[test]
fn events_that_wait_for_the_next_message_are_listed_with_their_number_and_its_time() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = super::hero(&redis, &receiver, "every = \"10m\"");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    fail(&hero, &["--id", "first"]);
    receiver.awaits(1);
    for id in ["second", "third"] {
        fail(&hero, &["--id", id]);
    }
    wait_until("both are held", || {
        let list = hero.run(&["notify", "list"]).code(0).stdout;
        list.contains(": held 2 events, next message at ")
    });
    let list = hero.run(&["notify", "list", "--json"]).code(0).stdout;
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["held"][0]["events"], json!(2), "{list}");
}
