//! Messages from their publisher to their answer.

use serde_json::{Value, json};

use super::steps::{has_pika, steps};
use super::{Broker, LATER_AND_POISON};
use crate::e2e::traces::collector::{TRACE, attribute, of, place, sending, span_of, spans};
use crate::notify::Receiver;
use crate::support::rabbitmq::has_rabbitmq;
use crate::support::{Redis, keys, wait_until};

const MATRIX: &str = "\"matrix\"";

#[test]
fn ping_is_answered_on_rec_read_and_rec_write_and_objects_are_written_and_fetched() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    let hero = broker.hero.set("amqp.mode", MATRIX);
    let broker = Broker { hero, ..broker };
    let _app = broker.hero.actor("broker-appServer").start();
    for key in ["rec.read", "rec.write"] {
        let pong = broker.result(key, "ping", "", "{\"n\": 1}");
        assert_eq!((&pong["key"], &pong["data"]), (&json!(key), &json!({"n": 1})));
    }
    let written = broker.result("rec.write", "write", "person", r#"{"id": "p1", "name": "Ann"}"#);
    assert_eq!(written, json!({"id": "p1", "version": 1}));
    let found = broker.result("rec.read", "fetch", "person", r#"{"id": "p1"}"#);
    assert_eq!((&found["name"], &found["version"]), (&json!("Ann"), &json!(1)));
    let changed = broker.result("rec.write", "update", "person", r#"{"id": "p1", "age": 4}"#);
    assert_eq!(changed["version"], 2);
    let found = broker.result("rec.read", "read", "person", "{}");
    assert_eq!(found["objects"][0]["age"], 4);
    let bulk = r#"{"write": [{"id": "p2"}, {"id": "p3"}], "delete": ["p1"]}"#;
    assert_eq!(broker.result("rec.obj", "bulk", "person", bulk)["ids"], json!(["p2", "p3", "p1"]));
    let record = r#"{"level": "warning", "message": "low tide", "chain": "c7"}"#;
    broker.result("rec.write", "write", "Logger", record);
    let found = broker.result("rec.read", "fetch", "Logger", r#"{"chain": "c7"}"#);
    assert_eq!(found["records"][0]["message"], "low tide");
    let gone = broker.ask("rec.read", "fetch", "person", r#"{"id": "p1"}"#);
    assert_eq!(gone["error"]["code"], "not_found");
    let deleted = broker.result("rec.write", "delete", "person", r#"{"id": "p2"}"#);
    assert_eq!(deleted, json!({"deleted": true}));
}

#[test]
fn the_milestones_of_a_start_are_log_records_with_one_root() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    let _process = broker.hero.actor("broker").start();
    wait_until("each level has a record", || {
        let found = broker.result("rec.read", "fetch", "Logger", r#"{"limit": 100}"#);
        let records = found["records"].as_array().expect("records").clone();
        let root = &records.first().map_or(json!(null), |one| one["root"].clone());
        let of_levels = records.iter().filter(|one| one["event"] == "level").count();
        records.iter().all(|one| one["root"] == *root)
            && of_levels == 7
            && records.iter().any(|one| one["event"] == "node.green")
    });
    assert!(broker.dead().is_empty());
}

const ROUTES: &str = "\
[[amqp.route]]\nkey = \"adm\"\noperation = \"count\"\ntype = \"osis\"\nscript = '''\n\
let message = json_parse(INPUTS.message);\n\
osis_set(\"ran\", #{ id: message.data.n });\n\
#{ n: message.data.n, key: message.key }\n'''\n\
[[amqp.route]]\nkey = \"adm\"\noperation = \"end\"\nack = \"end\"\ntimeout = \"20s\"\n\
type = \"osis\"\nscript = '\"done\"'\n";

#[test]
fn a_message_becomes_a_job_whose_output_is_the_answer() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with(&[ROUTES, LATER_AND_POISON].concat());
    let _actor = broker.hero.actor("osis-default-1").start();
    let _process = broker.hero.actor("broker").start();
    let result = broker.result("adm", "count", "", r#"{"n": "a"}"#);
    assert_eq!(result, json!({"n": "a", "key": "adm"}));
    assert_eq!(broker.result("adm", "end", "", "null"), "done");
    assert_eq!(broker.result("adm", "later", "", "null"), 2, "it came through the retry lane");
    let jobs = broker.json(&["job", "list", "--status", "finished"]);
    let names: Vec<&str> = jobs["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .filter_map(|job| job["name"].as_str())
        .collect();
    assert!(names.contains(&"adm count"), "{jobs}");
}

#[test]
fn a_message_puts_its_job_and_its_answer_into_its_trace() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let broker = Broker::with(ROUTES);
    let receiver = Receiver::start(&broker.redis, "receiver.py");
    let broker = Broker { hero: sending(broker.hero, &receiver), ..broker };
    let _actor = broker.hero.actor("osis-default-1").start();
    let process = broker.hero.actor("broker").start();
    steps(&broker.url, &json!([{ "do": "declare", "queue": "answers" }]));
    let answer_to = |trace: &str| {
        let headers = json!({ "traceparent": trace });
        let properties = json!({ "type": "count", "reply_to": "answers", "headers": headers });
        let body = r#"{"data": {"n": "a"}}"#;
        let publish =
            json!({ "do": "publish", "key": "adm", "properties": properties, "body": body });
        steps(&broker.url, &json!([publish]));
        let count = json!([{ "do": "count", "queue": "answers" }]);
        wait_until("the answer is there", || steps(&broker.url, &count) == json!([1]));
        steps(&broker.url, &json!([{ "do": "take", "queue": "answers" }]))[0][0].clone()
    };
    let jobs = || {
        let listed = broker.json(&["job", "list"]);
        let jobs = listed["jobs"].as_array().expect("jobs").clone();
        jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(answer_to(&place(1))["traceparent"], place(1));
    let known = jobs();
    let message = span_of(&receiver, "message", &known[0]);
    let own = message["spanId"].as_str().expect("text");
    let stored = of(&broker.redis, &known[0]);
    assert_eq!((known.len(), stored), (1, Some(format!("00-{TRACE}-{own}-01"))));
    let attempt = span_of(&receiver, "attempt osis", &known[0]);
    for (span, above) in [(&message, "0000000000000001"), (&attempt, own)] {
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(TRACE), &json!(above)));
    }
    assert_eq!(attribute(&message, "hero.amqp.operation"), "count");
    // A message that nobody serves is told with its trace, and its span has failed.
    let properties = json!({ "type": "unknown", "headers": { "traceparent": place(1) } });
    let publish = json!({ "do": "publish", "key": "adm", "properties": properties, "body": "{}" });
    steps(&broker.url, &json!([publish]));
    let told = |err: &str| {
        err.lines().any(|line| {
            line.contains("dead letter") && line.contains(&format!("trace_id=\"{TRACE}\""))
        })
    };
    wait_until("the dead letter is told", || told(&process.err()));
    let is_failed = |span: &Value| {
        let is_same = attribute(span, "hero.amqp.operation") == "unknown";
        is_same && span["status"]["code"] == 2 && span["traceId"] == TRACE
    };
    wait_until("its span has failed", || spans(&receiver).iter().any(is_failed));
    let giant = "0".repeat(60_000);
    for (number, wrong) in ["00-junk", "\n$(reboot)", &giant].into_iter().enumerate() {
        let answer = answer_to(wrong);
        assert_eq!((&answer["reason"], &answer["traceparent"]), (&json!(null), &json!(null)));
        let all = jobs();
        assert_eq!(all.len(), number + 2);
        let fresh = all.iter().filter(|id| **id != known[0]);
        for id in fresh {
            assert_eq!(of(&broker.redis, id), None);
            let message = broker.redis.field(&keys::job(id), "message").expect("it is kept");
            assert!(!message.contains("traceparent"), "{message:.300}");
        }
    }
}

#[test]
fn a_second_delivery_of_a_message_is_the_same_job() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with(ROUTES);
    let _actor = broker.hero.actor("osis-default-1").start();
    let _process = broker.hero.actor("broker").start();
    let publish = ["amqp", "publish", "adm", "--type", "count", "--data", r#"{"n": "x"}"#, "--id"];
    for _ in 0..3 {
        broker.hero.run(&[&publish[..], &["same"]].concat()).code(0);
    }
    // It comes after them in the same queue.
    broker.result("adm", "count", "", r#"{"n": "y"}"#);
    wait_until("all are finished", || {
        let jobs = broker.json(&["job", "list", "--type", "osis"]);
        let jobs = jobs["jobs"].as_array().expect("jobs").clone();
        jobs.iter().all(|job| job["status"] == "finished") && jobs.len() == 2
    });
}

#[test]
fn a_job_that_ended_while_no_broker_ran_is_answered_by_the_next() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with(ROUTES);
    let mut first = broker.hero.actor("broker").start();
    let args = ["amqp", "publish", "adm", "--type", "count", "--data", r#"{"n": "late"}"#];
    let asking = broker.hero.begin(&[&args[..], &["--wait"]].concat());
    wait_until("its job is stored", || {
        let jobs = broker.json(&["job", "list", "--type", "osis"]);
        jobs["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty())
    });
    first.kill();
    let _actor = broker.hero.actor("osis-default-1").start();
    wait_until("it is finished", || {
        let jobs = broker.json(&["job", "list", "--status", "finished"]);
        jobs["jobs"].as_array().is_some_and(|jobs| jobs.len() == 1)
    });
    let _second = broker.hero.actor("broker").start();
    let answer = asking.ends().code(0).stdout;
    assert!(answer.contains("\"late\""), "{answer}");
}

#[test]
fn an_order_to_end_reaches_every_broker_of_a_tag() {
    if !has_rabbitmq() {
        return;
    }
    let redis = Redis::start();
    let url = crate::support::rabbitmq::vhost();
    let tables = "[unit.second]\nrole = \"broker\"\n";
    let hero = super::on(&redis, &url, tables);
    let broker = Broker { hero, redis, url };
    let (first, second) =
        (broker.hero.actor("broker").start(), broker.hero.actor("second").start());
    assert_eq!(broker.result("adm", "shutdown", "", "null"), json!({"shutdown": "all"}));
    for process in [first, second] {
        assert!(process.ends().code(0).stderr.contains("stopped"));
    }
    // A later start is not told to end.
    let third = broker.hero.actor("broker").start();
    broker.result("rec.read", "ping", "", "null");
    broker.hero.run(&["amqp", "shutdown", "--tag", "other"]).code(2);
    broker.hero.run(&["amqp", "shutdown", "--tag", "prod_"]).code(0);
    third.ends().code(0);
}

#[test]
fn a_message_that_waits_for_a_deleted_job_is_a_dead_letter_and_answered_so() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with(ROUTES);
    let _process = broker.hero.actor("broker").start();
    let asking =
        broker.hero.begin(&["--json", "amqp", "publish", "adm", "--type", "end", "--wait"]);
    let mut waiting = serde_json::Value::Null;
    wait_until("its job is stored", || {
        let jobs = broker.json(&["job", "list", "--status", "dispatched"]);
        waiting = jobs["jobs"][0]["id"].clone();
        waiting.is_string()
    });
    broker.hero.run(&["job", "delete", waiting.as_str().expect("an id")]).code(0);
    let answer = asking.ends().stdout;
    assert!(answer.contains("unknown_end") && answer.contains("no such job"), "{answer}");
    wait_until("its message is a dead letter", || broker.dead().len() == 1);
}

#[test]
fn a_message_is_acknowledged_no_sooner_than_its_job_is_confirmed() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    // There is no replica.
    let broker = Broker::with(ROUTES).set("redis.ack", "\"replicas:1\"");
    let mut process = broker.hero.actor("broker").start();
    let data = r#"{"n": "kept"}"#;
    let publish = ["amqp", "publish", "adm", "--type", "count", "--data", data, "--id", "m"];
    broker.hero.run(&publish).code(0);
    wait_until("its job is stored, and that is not confirmed", || {
        let jobs = broker.json(&["job", "list", "--status", "dispatched"]);
        jobs["jobs"][0]["id"].is_string() && process.err().contains("0 of 1 replicas")
    });
    wait_until("its job is found, and is not confirmed either", || {
        process.err().contains("looking at a message that came again")
    });
    process.kill();
    wait_until("RabbitMQ has the message", || {
        steps(&broker.url, &json!([{ "do": "count", "queue": "prod_events" }])) == json!([1])
    });
}
