//! The ends of graphs and batches: one message each, with the numbers of their jobs.

use serde_json::{Value, json};

use super::{Receiver, hero, wanted};
use crate::support::{Hero, Redis, Served, wait_until};

/// A notification of those that name it, which tells each end by a message of its own.
const NAMED: &str = "named = true\nevery = \"0s\"\non = [\"failed\", \"finished\"]";

/// Submits a batch of scripts in Rhai.
fn batch(hero: &Hero, args: &[&str], scripts: &[&str]) {
    let line = |script: &&str| json!({ "type": "osis", "script": script }).to_string() + "\n";
    let lines: String = scripts.iter().map(line).collect();
    hero.run_with_input(&[&["submit", "--batch", "-"], args].concat(), &lines).code(0);
}

/// Returns the titles of the messages so far.
fn titles(receiver: &Receiver) -> Vec<String> {
    let title = |of: &Value| of["title"].as_str().expect("text").to_owned();
    receiver.messages().iter().map(title).collect()
}

#[test]
fn end_of_a_graph_or_batch_is_one_message_with_the_numbers_of_its_jobs() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = hero(&redis, &receiver, NAMED);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed named", "finished named"]);
    let graph = "id = \"g1\"\nname = \"nightly\"\nnotify = [\"ops\"]\n[defaults]\ntype = \"osis\"\ncaller_id = \"ann\"\n\
                 [job.a]\nscript = \"1\"\n[job.b]\nscript = \"throw 1\"\n[job.c]\nscript = \"1\"\nafter = [\"b\"]\n";
    hero.run_with_input(&["submit", "--graph", "-"], graph).code(0);
    receiver.awaits(1);
    let event = receiver.messages()[0]["events"][0].clone();
    assert_eq!((&event["event"], &event["graph"]), (&json!("failed"), &json!("g1")), "{event}");
    assert_eq!((&event["name"], &event["caller"]), (&json!("nightly"), &json!("ann")), "{event}");
    let whole = json!({ "kind": "graph", "jobs": 3, "finished": 1, "failed": 2, "cancelled": 0 });
    assert_eq!(event["whole"], whole);
    // A graph without the name is told to nobody.
    let unnamed = graph.replace("notify = [\"ops\"]\n", "").replace("g1", "g0");
    hero.run_with_input(&["submit", "--graph", "-"], &unnamed).code(0);
    hero.run(&["graph", "wait", "g0"]).code(1);
    let more = [("b1", &[][..]), ("b2", &["--all-or-none"])];
    for (place, (id, args)) in more.into_iter().enumerate() {
        batch(&hero, &[&["--id", id, "--notify", "ops"], args].concat(), &["1", "2", "3"]);
        receiver.awaits(place + 2);
    }
    let late = json!({ "id": "z1", "type": "osis", "script": "1", "at": "2100-01-01T00:00:00Z" });
    let submit = ["submit", "--batch", "-", "--id", "b3", "--notify", "ops"];
    hero.run_with_input(&submit, &late.to_string()).code(0);
    hero.run(&["graph", "stop", "b3"]).code(0);
    receiver.awaits(4);
    hero.run(&["graph", "retry", "g1"]).code(0);
    receiver.awaits(5);
    let expected = [
        "failed: nightly (graph g1): 1 of 3 done, 2 failed",
        "finished: batch b1: 3 of 3 done",
        "finished: batch b2: 3 of 3 done",
        "finished: batch b3: 0 of 1 done, 1 cancelled",
        "failed: nightly (graph g1): 1 of 3 done, 2 failed",
    ];
    assert_eq!(titles(&receiver), expected);
}

#[test]
fn end_is_notified_though_supervisor_and_receiver_are_dead_when_it_comes() {
    let redis = Redis::start();
    let mut receiver = Receiver::start(&redis, "receiver.py");
    let hero = hero(&redis, &receiver, NAMED);
    let _osis = hero.actor("osis-default-1").start();
    let mut supervisor = hero.supervisor().start();
    wanted(&redis, &["failed named"]);
    supervisor.kill();
    receiver.kill();
    batch(&hero, &["--id", "b", "--notify", "ops"], &["1", "throw 1", "2"]);
    hero.run(&["graph", "wait", "b"]).code(1);
    let mut supervisor = hero.supervisor().start();
    wait_until("an attempt failed", || !redis.all("NOTIFY_TROUBLE").is_empty());
    supervisor.kill();
    receiver.start_again();
    let _supervisor = hero.supervisor().start();
    receiver.awaits(1);
    wait_until("nothing is left", || redis.all("NOTIFY_DUE").is_empty());
    let messages = receiver.messages();
    assert!(messages.iter().all(|of| of["id"] == messages[0]["id"]), "{messages:?}");
    assert_eq!(titles(&receiver)[0], "failed: batch b: 2 of 3 done, 1 failed");
}

#[test]
fn api_takes_the_notifications_of_a_graph_and_of_a_batch() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = hero(&redis, &receiver, NAMED);
    let _osis = hero.actor("osis-default-1").start();
    let api = Served::with(hero, &redis);
    wanted(&redis, &["finished named"]);
    let job = json!({ "type": "osis", "script": "1" });
    let graph = json!({ "id": "g", "jobs": [{ "name": "a", "job": job }], "notify": ["ops"] });
    api.call("graph.submit", &graph);
    receiver.awaits(1);
    api.call("batch.submit", &json!({ "id": "b", "jobs": [job, job], "notify": ["ops"] }));
    receiver.awaits(2);
    let expected = ["finished: graph g: 1 of 1 done", "finished: batch b: 2 of 2 done"];
    assert_eq!(titles(&receiver), expected);
}

#[test]
fn illegal_notifications_of_a_graph_are_refused_with_their_place() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let jobs = "[job.a]\ntype = \"osis\"\nscript = \"1\"\n";
    for (head, said) in [
        ("notify = \"ops\"\n", "-:1:10: notify: expected a list of strings"),
        ("notify = [\"Ops\"]\n", "-:1:10: notify: "),
    ] {
        let graph = format!("{head}{jobs}");
        hero.run_with_input(&["submit", "--graph", "-"], &graph).code(65).says(said);
    }
}
