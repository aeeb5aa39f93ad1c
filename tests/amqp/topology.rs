//! Queues, bindings and exchanges that are removed while brokers run, and vhosts that two tags want.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::steps::{has_pika, steps};
use super::{Broker, on};
use crate::support::rabbitmq::{has_rabbitmq, shared, vhost};
use crate::support::{Redis, wait_until};

const ROUTES: &str = "\
[[amqp.route]]\nkey = \"adm\"\noperation = \"bad\"\ntype = \"osis\"\nscript = 'throw \"no\"'\n\
[[amqp.route]]\nkey = \"adm\"\noperation = \"badend\"\ntype = \"osis\"\nack = \"end\"\ntimeout = \"20s\"\n\
script = 'throw \"no\"'\n";

/// Publishes a message of each way to fail: broken JSON, an illegal template, a job that is acknowledged at
/// its start or its end, and a key that nobody serves.
fn failing(prefix: &str) -> (Vec<Value>, Vec<String>) {
    let illegal = r#"{"template":"a b","data":{}}"#;
    let all = [
        ("rec.write", "write", "{bad json"),
        ("rec.write", "write", illegal),
        ("adm", "bad", ""),
        ("adm", "badend", ""),
        ("nobody", "x", ""),
    ];
    let step = |(place, (key, operation, body)): (usize, &(&str, &str, &str))| {
        json!({ "do": "publish", "key": key, "body": body,
                "properties": { "type": operation, "message_id": format!("{prefix}{place}") } })
    };
    let steps = all.iter().enumerate().map(step).collect();
    (steps, (0..all.len()).map(|place| format!("{prefix}{place}")).collect())
}

#[test]
fn a_rejected_message_finds_its_dead_letters_also_if_their_queue_or_binding_is_gone() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    for queue_type in ["classic", "quorum"] {
        let broker = Broker::with(ROUTES).set("amqp.queue_type", &format!("{queue_type:?}"));
        let _actor = broker.hero.actor("osis-default-1").start();
        let _process = broker.hero.actor("broker").start();
        let dlq = "prod_events.dlq";
        let mut expected: Vec<String> = Vec::new();
        for (prefix, fault) in [
            ("well", json!({ "do": "count", "queue": dlq })),
            (
                "binding",
                json!({ "do": "unbind", "queue": dlq, "exchange": "beds.dlx", "key": "events.dlq" }),
            ),
            ("exchange", json!({ "do": "delete_exchange", "exchange": "beds.dlx" })),
        ] {
            let (mut all, names) = failing(prefix);
            all.insert(0, fault);
            steps(&broker.url, &json!(all));
            expected.extend(names);
            expected.sort();
            wait_until("each is a dead letter", || {
                let mut dead = broker.dead();
                dead.sort();
                dead.dedup();
                dead == expected
            });
        }
        // With the queue its letters are gone: new ones have a queue again.
        steps(&broker.url, &json!([{ "do": "delete", "queue": dlq }]));
        let status = broker.json(&["amqp", "status"]);
        assert_eq!(
            (&status["ready"], &status["gone"][0]),
            (&json!(false), &json!("the queue prod_events.dlq is gone"))
        );
        broker.hero.run(&["amqp", "check"]).code(78);
        let (all, names) = failing("queue");
        steps(&broker.url, &json!(all));
        wait_until("each is a dead letter", || {
            let mut dead = broker.dead();
            dead.sort();
            dead.dedup();
            dead == names
        });
        broker.hero.run(&["amqp", "status"]).code(0);
    }
}

#[test]
fn what_is_removed_from_the_topology_is_declared_again_with_a_warning() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let management = format!("{:?}", shared().management_url());
    let broker = Broker::with("").set("amqp.topology_interval", "\"1s\"");
    let broker = broker.set("amqp.management_url", &management);
    let process = broker.hero.actor("broker").start();
    let unbind = |queue: &str, exchange: &str, key: &str| json!([{ "do": "unbind", "queue": queue, "exchange": exchange, "key": key }]);
    for (fault, warning) in [
        (unbind("prod_events", "beds.events", "#"), "prod_events is not bound to beds.events by #"),
        (
            unbind("prod_events.dlq", "beds.dlx", "events.dlq"),
            "prod_events.dlq is not bound to beds.dlx by events.dlq",
        ),
        (
            json!([{ "do": "delete", "queue": "prod_events.retry" }]),
            "the queue prod_events.retry is gone",
        ),
        (
            json!([{ "do": "delete_exchange", "exchange": "beds.events" }]),
            "the exchange beds.events is gone",
        ),
    ] {
        steps(&broker.url, &fault);
        wait_until(warning, || process.err().contains(warning));
        wait_until("all is as configured", || {
            broker.hero.run(&["amqp", "check"]).code == 0
                && broker.hero.run(&["amqp", "status"]).code == 0
        });
        broker.result("rec.read", "ping", "", "null");
    }
}

/// A management API that repeats its first answers while `is_stale`, as one that is read just before a change.
struct StaleApi {
    port: u16,
    is_stale: Arc<AtomicBool>,
    /// The number of bindings that were listed while it was stale.
    listed: Arc<AtomicUsize>,
}

impl StaleApi {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let api = Self { port, is_stale: Arc::default(), listed: Arc::default() };
        let (is_stale, listed) = (Arc::clone(&api.is_stale), Arc::clone(&api.listed));
        std::thread::spawn(move || {
            let mut first: BTreeMap<String, Vec<u8>> = BTreeMap::new();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let head = head_of(&mut stream);
                let path = head.lines().next().unwrap_or_default().to_owned();
                let stale = first.get(&path).filter(|_| is_stale.load(Ordering::SeqCst));
                let answer = stale.cloned().unwrap_or_else(|| ask_rabbitmq(&head));
                if is_stale.load(Ordering::SeqCst) && path.contains("/bindings/") {
                    listed.fetch_add(1, Ordering::SeqCst);
                }
                first.entry(path).or_insert_with(|| answer.clone());
                let _ = stream.write_all(&answer);
            }
        });
        api
    }
}

fn head_of(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// Asks the management API of the tests the same, and returns its answer.
fn ask_rabbitmq(head: &str) -> Vec<u8> {
    let address = shared().management_url().replace("http://", "");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    answer
}

#[test]
fn binding_that_goes_after_the_bindings_were_listed_comes_back_with_a_warning_alone() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let api = StaleApi::start();
    let broker = Broker::with("").set("amqp.topology_interval", "\"1s\"");
    let broker = broker.set("amqp.management_url", &format!("\"http://127.0.0.1:{}\"", api.port));
    let process = broker.hero.actor("broker").start();
    wait_until("the bindings are listed", || broker.hero.run(&["amqp", "check"]).code == 0);
    api.is_stale.store(true, Ordering::SeqCst);
    let (queue, exchange, key) = ("prod_events.dlq", "beds.dlx", "events.dlq");
    steps(
        &broker.url,
        &json!([{ "do": "unbind", "queue": queue, "exchange": exchange, "key": key }]),
    );
    let seen = api.listed.load(Ordering::SeqCst);
    wait_until("two more looks", || api.listed.load(Ordering::SeqCst) >= seen + 2);
    api.is_stale.store(false, Ordering::SeqCst);
    let warning = "prod_events.dlq is not bound to beds.dlx by events.dlq any more";
    wait_until(warning, || process.err().contains(warning));
    wait_until("it is bound again", || broker.hero.run(&["amqp", "check"]).code == 0);
}

#[test]
fn a_dead_letter_without_an_id_has_a_name_and_an_expired_one_a_reason() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let broker = Broker::with("");
    let _process = broker.hero.actor("broker").start();
    let publish = |key: &str, more: Value| {
        let mut step = json!({ "do": "publish", "key": key, "properties": { "type": "x" } });
        step.as_object_mut().expect("a step").extend(more.as_object().expect("more").clone());
        step
    };
    let short = json!({ "x-message-ttl": 1, "x-dead-letter-exchange": "beds.dlx",
                        "x-dead-letter-routing-key": "events.dlq" });
    steps(
        &broker.url,
        &json!([
            publish("nobody", json!({ "body": "{\"data\":1}" })),
            publish("nobody", json!({ "body": "{\"data\":2}" })),
            { "do": "declare", "queue": "short", "arguments": short },
            publish("short", json!({ "exchange": "" })),
        ]),
    );
    wait_until("each is a dead letter", || broker.dead().len() == 3);
    let list = broker.json(&["amqp", "dlq", "list"]);
    let letters = list["dead_letters"].as_array().expect("letters").clone();
    assert!(letters.iter().all(|one| !one["reason"].as_str().unwrap_or_default().is_empty()));
    let of = |reason: &str| {
        let found =
            letters.iter().find(|one| one["reason"].as_str().unwrap_or_default().contains(reason));
        found.unwrap_or_else(|| panic!("{reason}: {list}"))["name"]
            .as_str()
            .expect("a name")
            .to_owned()
    };
    let (expired, first) = (of("it waited too long in the queue short"), of("no_route"));
    assert!(first.starts_with("letter-"), "{first}");
    let shown = broker.json(&["amqp", "dlq", "show", &first]);
    assert!(shown["body"]["data"].is_number() && shown["key"] == "nobody", "{shown}");
    broker.hero.run(&["amqp", "dlq", "delete", &expired]).code(0);
    broker.hero.run(&["amqp", "dlq", "retry", &first]).code(0);
    wait_until("it is a dead letter again", || broker.dead().len() == 2);
    broker.hero.run(&["amqp", "dlq", "delete", "--reason", "no_route"]).code(0);
    assert!(broker.dead().is_empty());
}

#[test]
fn of_two_tags_or_modes_that_start_together_one_runs() {
    if !has_rabbitmq() {
        return;
    }
    let redis = Redis::start();
    for round in 0..20 {
        let url = vhost_of(round);
        let first = on(&redis, &url, "");
        let second = on(&redis, &url, "");
        let second = match round % 2 {
            0 => second.set("amqp.queue_tag", "\"qa_\""),
            _ => second.set("amqp.mode", "\"matrix\"").set("amqp.node", "\"appServer\""),
        };
        let mut both = [first.actor("broker").begin(), second.actor("broker").begin()];
        let mut ended = Vec::new();
        wait_until("one has ended, and the other is ready", || {
            ended = both.iter_mut().map(super::super::support::Process::has_ended).collect();
            let ready = both.iter().filter(|one| one.err().contains("ready: ")).count();
            ended.iter().filter(|ended| **ended).count() == 1 && ready == 1
        });
        let [first, second] = both;
        let refused = if ended[0] { first } else { second };
        let said = refused.ends().code(78).stderr;
        assert!(said.contains("two of them would both get every message"), "{said}");
    }
}

/// A few vhosts are enough: each round leaves its own, as a reboot does.
fn vhost_of(round: usize) -> String {
    static URLS: std::sync::OnceLock<[String; 4]> = std::sync::OnceLock::new();
    URLS.get_or_init(|| [vhost(), vhost(), vhost(), vhost()])[round % 4].clone()
}

#[test]
fn the_queues_that_another_mode_has_left_are_named_with_their_lanes_and_dead_letters() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    drop(broker.hero.actor("broker").start());
    wait_until("it has no consumers", || broker.consumers()[0].1 == 0);
    let broker = broker.set("amqp.mode", "\"matrix\"");
    let process = broker.hero.actor("broker-appServer").start();
    let err = process.err();
    let named = "hero amqp delete-queue prod_events.dlq prod_events.retry prod_events";
    assert!(err.contains(named) && err.contains("and fill"), "{err}");
}
