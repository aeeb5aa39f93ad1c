//! Messages that no client of Hero would send, from a client of RabbitMQ with pika.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Broker;
use super::steps::{has_pika, steps};
use crate::support::rabbitmq::has_rabbitmq;
use crate::support::wait_until;

/// The short strings of a message that Hero reads, and the others.
const READ: [&str; 4] = ["type", "message_id", "correlation_id", "reply_to"];
const UNREAD: [&str; 4] = ["content_type", "content_encoding", "app_id", "cluster_id"];

fn ping(name: &str, value: &Value) -> Value {
    let mut step = json!({ "do": "publish", "key": "rec.read", "properties": { "type": "ping" } });
    step["properties"][name] = value.clone();
    step
}

#[track_caller]
fn pong(broker: &Broker) {
    broker.result("rec.read", "ping", "", "null");
}

/// Publishes a byte that is not UTF-8 in each short string, and expects a dead letter for each that Hero
/// reads.
fn survives_bytes(settings: &[(&str, &str)], unit: &str, queue: &str) {
    let broker =
        settings.iter().fold(Broker::with(""), |broker, (key, value)| broker.set(key, value));
    let process = broker.hero.actor(unit).start();
    let wrong = json!({ "bytes": "M\u{fc}ller" });
    let mut all: Vec<Value> = READ.iter().chain(&UNREAD).map(|name| ping(name, &wrong)).collect();
    all.push(ping("headers", &json!({ "bytes:\u{e9}": "v", "list": { "bytes:\u{ff}": "w" } })));
    if queue == "prod_events" {
        let mut of_key = ping("message_id", &json!("of-key"));
        of_key["key"] = wrong.clone();
        all.push(of_key);
    }
    let expected = READ.len() + usize::from(queue == "prod_events");
    steps(&broker.url, &json!(all));
    pong(&broker);
    wait_until("each that cannot be read is a dead letter", || broker.dead().len() == expected);
    let list = broker.hero.run(&["amqp", "dlq", "list"]).code(0).stdout;
    for name in READ {
        let reason = format!("not_utf8: the property {name} has bytes that are not UTF-8");
        assert!(list.contains(&reason), "{list}");
    }
    let err = process.err();
    let named = format!("must encode it queue=\"{queue}\" message_id=\"M");
    assert!(err.contains("ERROR a message becomes a dead letter") && err.contains(&named), "{err}");
    let left = steps(&broker.url, &json!([{ "do": "count", "queue": queue }]));
    assert_eq!(left, json!([0]));
    broker.hero.run(&["amqp", "dlq", "delete", "--reason", "not_utf8"]).code(0);
    assert!(broker.dead().is_empty());
    pong(&broker);
}

#[test]
fn a_byte_that_is_not_utf_8_makes_a_dead_letter_and_stops_no_consumer() {
    if has_rabbitmq() && has_pika() {
        survives_bytes(&[], "broker", "prod_events");
    }
}

#[test]
fn a_byte_that_is_not_utf_8_stops_no_consumer_of_quorum_queues_in_the_matrix() {
    if has_rabbitmq() && has_pika() {
        let settings = [("amqp.queue_type", "\"quorum\""), ("amqp.mode", "\"matrix\"")];
        survives_bytes(&settings, "broker-appServer", "prod_rec.read");
    }
}

#[test]
fn a_queue_that_rejects_its_answers_holds_up_nobody_and_no_end() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    for queue_type in ["classic", "quorum"] {
        let broker = Broker::with("").set("amqp.queue_type", &format!("{queue_type:?}"));
        let process = broker.hero.actor("broker").start();
        let arguments = json!({
            "x-max-length": 1, "x-overflow": "reject-publish", "x-queue-type": queue_type,
        });
        let properties = json!({ "type": "ping", "reply_to": "full", "correlation_id": "c" });
        let publish =
            json!({ "do": "publish", "key": "rec.read", "times": 600, "properties": properties });
        steps(
            &broker.url,
            &json!([{ "do": "declare", "queue": "full", "arguments": arguments }, publish]),
        );
        pong(&broker);
        wait_until("every message is settled", || {
            steps(&broker.url, &json!([{ "do": "count", "queue": "prod_events" }])) == json!([0])
        });
        pong(&broker);
        process.signal(Signal::SIGTERM);
        let done = process.ends().code(0);
        let counted = |line: &&str| line.contains("answers are dropped: this process ends");
        assert_eq!(done.stderr.lines().filter(counted).count(), 1, "{}", done.stderr);
        // The kept answers are tried: the queue takes one at a time.
        let taken = steps(&broker.url, &json!([{ "do": "take", "queue": "full" }]));
        assert!(!taken[0].as_array().expect("a list").is_empty(), "{taken}");
    }
}

#[test]
fn answers_of_jobs_that_a_full_queue_rejects_are_delivered_or_counted_and_none_is_lost() {
    const MESSAGES: usize = 20;
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let route =
        "[[amqp.route]]\nkey = \"adm\"\noperation = \"count\"\ntype = \"osis\"\nscript = '1'\n";
    let broker = Broker::with(route);
    let _actor = broker.hero.actor("osis-default-1").start();
    let process = broker.hero.actor("broker").start();
    let arguments = json!({ "x-max-length": 1, "x-overflow": "reject-publish" });
    let ask = |id: &String, to: &str| {
        let properties =
            json!({ "type": "count", "message_id": id, "reply_to": to, "correlation_id": id });
        json!({ "do": "publish", "key": "adm", "properties": properties })
    };
    let ids: BTreeSet<String> = (0..MESSAGES).map(|n| format!("m{n}")).collect();
    let declare = json!({ "do": "declare", "queue": "full", "arguments": arguments });
    let all: Vec<Value> =
        [declare].into_iter().chain(ids.iter().map(|id| ask(id, "full"))).collect();
    steps(&broker.url, &json!(all));
    let finished = || {
        let jobs = broker.json(&["job", "list", "--status", "finished"]);
        jobs["jobs"].as_array().expect("jobs").len()
    };
    wait_until("every job has finished", || finished() == MESSAGES);
    process.signal(Signal::SIGTERM);
    let done = process.ends().code(0);
    let line = done.stderr.lines().find(|line| line.contains("dropped: this process ends"));
    let words = line.map(|line| line.split_whitespace().collect::<Vec<_>>()).unwrap_or_default();
    let counted: usize = words
        .windows(2)
        .filter(|pair| pair[1].starts_with("answer"))
        .filter_map(|pair| pair[0].parse::<usize>().ok())
        .sum();

    let _process = broker.hero.actor("broker").start();
    let take = |queue: &str| -> BTreeSet<String> {
        let taken = steps(&broker.url, &json!([{ "do": "take", "queue": queue }]));
        let ids = taken[0].as_array().expect("a list").iter();
        ids.map(|one| one["correlation_id"].as_str().expect("an id").to_owned()).collect()
    };
    let mut answered = BTreeSet::new();
    wait_until("each is answered or was counted", || {
        answered.extend(take("full"));
        answered.len() + counted >= MESSAGES
    });
    // Who has got no answer asks again.
    let declare = json!({ "do": "declare", "queue": "again" });
    let again = ids.difference(&answered).map(|id| ask(id, "again"));
    steps(&broker.url, &json!([declare].into_iter().chain(again).collect::<Vec<_>>()));
    wait_until("each is answered", || {
        answered.extend(take("again"));
        answered == ids
    });
    assert_eq!(finished(), MESSAGES, "no job ran again");
}

#[test]
fn an_answer_into_a_queue_of_the_topology_is_no_message_and_others_with_its_tag_get_theirs() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let broker = Broker::with("");
    let _process = broker.hero.actor("broker").start();
    let ask = |to: &str| {
        let properties = json!({ "type": "ping", "reply_to": to, "correlation_id": to });
        json!({ "do": "publish", "key": "rec.read", "properties": properties })
    };
    let declare = json!({ "do": "declare", "queue": "prod_answers" });
    let asked =
        ["prod_events", "prod_events.retry", "prod_events.dlq", "beds.owner", "prod_answers"];
    let all: Vec<Value> = [declare].into_iter().chain(asked.map(ask)).collect();
    steps(&broker.url, &json!(all));
    wait_until("the client is answered", || {
        let taken = steps(&broker.url, &json!([{ "do": "take", "queue": "prod_answers" }]));
        taken[0][0]["correlation_id"] == "prod_answers"
    });
    pong(&broker);
    assert!(broker.dead().is_empty());
}

#[test]
fn answers_go_to_the_queues_of_the_patterns_and_to_direct_replies_alone() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let broker = Broker::with("");
    let hero = broker.hero.set("amqp.reply_queues", "[\"answers.*\"]");
    let broker = Broker { hero, ..broker };
    let process = broker.hero.actor("broker").start();
    let queues = ["private", "answers.ann"];
    let declare = queues.map(|queue| json!({ "do": "declare", "queue": queue }));
    let ask = queues.map(|to| {
        let properties = json!({ "type": "ping", "reply_to": to, "correlation_id": to });
        json!({ "do": "publish", "key": "rec.read", "properties": properties })
    });
    steps(&broker.url, &json!(declare.into_iter().chain(ask).collect::<Vec<_>>()));
    let take =
        |queue: &str| steps(&broker.url, &json!([{ "do": "take", "queue": queue }]))[0].take();
    wait_until("the allowed queue has its answer", || {
        take("answers.ann")[0]["correlation_id"] == "answers.ann"
    });
    wait_until("the other one is refused", || {
        process.err().contains("an answer was asked for in the queue private")
    });
    assert_eq!(take("private"), json!([]));
    pong(&broker);
}

#[test]
fn an_operation_fits_its_key_and_shutdown_its_keys_and_its_time() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let tables = "[[amqp.route]]\nkey = \"mig\"\noperation = \"shutdown\"\nbuiltin = \"ping\"\n";
    let broker = Broker::with(tables);
    let ask = |key: &str, operation: &str, data: Value| {
        let body = json!({ "template": "person", "data": data }).to_string();
        json!({ "do": "ask", "key": key, "body": body, "properties": { "type": operation } })
    };
    drop(broker.hero.actor("broker").start());
    // An order from before the start of a process ends nothing.
    let early = json!({ "do": "publish", "key": "adm",
                        "properties": { "type": "shutdown", "message_id": "early" } });
    steps(&broker.url, &json!([early]));
    let process = broker.hero.actor("broker").start();
    wait_until("the early order is a dead letter", || broker.dead() == ["early"]);
    let id = json!({ "id": "p1" });
    let wrong = [
        ("rec.read", "write"),
        ("rec.read", "delete"),
        ("rec.read", "bulk"),
        ("rec.write", "bulk"),
        ("rec.write", "fetch"),
        ("rec.obj", "write"),
    ];
    for (key, operation) in wrong {
        let answer = steps(&broker.url, &json!([ask(key, operation, id.clone())]));
        assert_eq!(answer[0]["error"]["code"], "unknown_operation", "{key} {operation}: {answer}");
    }
    let refused = steps(&broker.url, &json!([ask("rec.read", "shutdown", Value::Null)]));
    assert_eq!(refused[0]["error"]["code"], "not_permitted", "{refused}");
    // A route decides before the built-in.
    let routed = steps(&broker.url, &json!([ask("mig", "shutdown", Value::Null)]));
    assert_eq!(routed[0]["result"]["key"], "mig", "{routed}");
    pong(&broker);
    let taken = steps(&broker.url, &json!([ask("adm", "shutdown", Value::Null)]));
    assert_eq!(taken[0]["result"]["shutdown"], "all", "{taken}");
    let err = process.ends().code(0).stderr;
    assert!(err.contains("were told to end") && err.contains("stopped"), "{err}");
}
