//! Messages that come again with the same id, from a client with pika, and what an outage leaves.

use serde_json::{Value, json};

use super::Broker;
use super::steps::{AMQPLIB, has_amqplib, has_pika, node, steps};
use crate::support::proxy::{Lane, Mode};
use crate::support::rabbitmq::has_rabbitmq;
use crate::support::{MariaDb, Redis, needs_mariadb, wait_until};

/// A route whose script waits for an object, and one whose script fails while there is one.
const ROUTES: &str = "\
[[amqp.route]]\nkey = \"adm\"\noperation = \"slow\"\ntype = \"osis\"\nscript = '''\n\
while !osis_exists(\"gate\", \"open\") { sleep(0.02); }\n\
osis_set(\"ran\", #{}); \"slow\"\n'''\n\
[[amqp.route]]\nkey = \"adm\"\noperation = \"count\"\ntype = \"osis\"\nscript = '''\n\
osis_set(\"ran\", #{}); json_parse(INPUTS.message).data.n\n'''\n\
[[amqp.route]]\nkey = \"adm\"\noperation = \"fix\"\ntype = \"osis\"\nscript = '''\n\
if osis_exists(\"gate\", \"broken\") { throw \"no such bill\"; }\n\"mended\"\n'''\n\
[[amqp.route]]\nkey = \"adm\"\noperation = \"end\"\nack = \"end\"\ntimeout = \"20s\"\ntype = \"osis\"\nscript = '''\n\
if osis_exists(\"gate\", \"broken\") { throw \"no such bill\"; }\nosis_set(\"ran\", #{}); \"mended\"\n'''\n";

fn request(operation: &str, id: &str, data: &Value) -> Value {
    let body = json!({ "data": data }).to_string();
    let properties = json!({ "type": operation, "message_id": id });
    json!({ "do": "ask", "key": "adm", "body": body, "properties": properties })
}

fn write(broker: &Broker, operation: &str, data: &str) -> Value {
    let key = if operation == "fetch" { "rec.read" } else { "rec.write" };
    broker.ask(key, operation, "gate", data)
}

/// Returns the number of objects that scripts have written.
fn ran(broker: &Broker) -> usize {
    let found = broker.result("rec.read", "read", "ran", "{}");
    found["objects"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_repeat_is_answered_with_its_running_job_and_with_its_kept_answer() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    for queue_type in ["classic", "quorum"] {
        let broker = Broker::with(ROUTES).set("amqp.queue_type", &format!("{queue_type:?}"));
        let _actor = broker.hero.actor("osis-default-1").tasks(2).start();
        let _process = broker.hero.actor("broker").start();
        let declare = json!({ "do": "declare", "queue": "answers" });
        let publish = |correlation_id: &str| {
            json!({ "do": "publish", "key": "adm", "properties": {
                "type": "slow", "message_id": "m1", "reply_to": "answers",
                "correlation_id": correlation_id } })
        };
        steps(&broker.url, &json!([declare, publish("first"), publish("second")]));
        wait_until("its job runs", || {
            let jobs = broker.json(&["job", "list", "--status", "started"]);
            jobs["jobs"].as_array().is_some_and(|jobs| jobs.len() == 1)
        });
        steps(&broker.url, &json!([publish("third")]));
        wait_until("every message is taken", || {
            steps(&broker.url, &json!([{ "do": "count", "queue": "prod_events" }])) == json!([0])
        });
        assert_eq!(write(&broker, "write", r#"{"id": "open"}"#)["ok"], true);
        let mut answered: Vec<Value> = Vec::new();
        wait_until("each of the three is answered", || {
            let taken = steps(&broker.url, &json!([{ "do": "take", "queue": "answers" }]));
            answered.extend(taken[0].as_array().expect("a list").iter().cloned());
            let has = |id: &str| answered.iter().any(|one| one["correlation_id"] == id);
            has("first") && has("second") && has("third")
        });
        assert!(answered.iter().all(|one| one["body"] == r#"{"ok":true,"result":"slow"}"#));
        // It has ended: its answer is kept.
        let again = steps(&broker.url, &json!([request("slow", "m1", &Value::Null)]));
        assert_eq!(again[0]["result"], "slow", "{again}");
        assert_eq!(ran(&broker), 1);
        // Another message with the same id is no repeat.
        let other = steps(&broker.url, &json!([request("slow", "m1", &json!({ "n": 2 }))]));
        assert_eq!(other[0]["error"]["code"], "id_reused", "{other}");
        assert_eq!(broker.dead(), ["m1"]);
    }
}

#[test]
fn a_message_that_was_a_dead_letter_runs_again_from_a_client_a_shovel_and_the_command() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    for operation in ["fix", "end"] {
        let broker = Broker::with(ROUTES);
        let _actor = broker.hero.actor("osis-default-1").start();
        let _process = broker.hero.actor("broker").start();
        assert_eq!(write(&broker, "write", r#"{"id": "broken"}"#)["ok"], true);
        for id in ["client", "shovel", "command"] {
            let failed = steps(&broker.url, &json!([request(operation, id, &Value::Null)]));
            assert_eq!(failed[0]["error"]["code"], "job_failed", "{failed}");
            wait_until("it is a dead letter", || broker.dead() == [id]);
            if id == "client" {
                // It fails again, and is a dead letter again.
                let failed = steps(&broker.url, &json!([request(operation, id, &Value::Null)]));
                assert_eq!(failed[0]["error"]["code"], "job_failed", "{failed}");
                wait_until("it is there twice", || broker.dead() == [id, id]);
                broker.hero.run(&["amqp", "dlq", "delete", "--all"]).code(0);
                write(&broker, "delete", r#"{"id": "broken"}"#);
                let mended = steps(&broker.url, &json!([request(operation, id, &Value::Null)]));
                assert_eq!(mended[0]["result"], "mended", "{mended}");
                write(&broker, "write", r#"{"id": "broken"}"#);
                continue;
            }
            write(&broker, "delete", r#"{"id": "broken"}"#);
            if id == "shovel" {
                steps(
                    &broker.url,
                    &json!([{ "do": "shovel", "from": "prod_events.dlq", "to": "prod_events" }]),
                );
            } else {
                broker.hero.run(&["amqp", "dlq", "retry", "--reason", "no such bill"]).code(0);
            }
            wait_until("its job has finished", || {
                let jobs = broker.json(&["job", "list", "--status", "finished"]);
                let number = if id == "shovel" { 2 } else { 3 };
                jobs["jobs"].as_array().is_some_and(|jobs| jobs.len() == number)
            });
            assert!(broker.dead().is_empty());
            write(&broker, "write", r#"{"id": "broken"}"#);
        }
    }
}

#[test]
fn a_client_with_amqplib_that_has_lost_its_connection_asks_again() {
    if !has_rabbitmq() || !has_amqplib() {
        return;
    }
    let broker = Broker::with(ROUTES);
    let _actor = broker.hero.actor("osis-default-1").start();
    let _process = broker.hero.actor("broker").start();
    let out = node("repeats.js", &[AMQPLIB, &broker.url]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines,
        [
            "true",
            r#"{"ok":true,"result":7}"#,
            r#"{"ok":true,"result":7}"#,
            "id_reused",
            r#"{"ok":true,"result":{"id":"b","version":2}}"#,
            r#"{"ok":true,"result":{"id":"b","version":1}}"#,
            "Cas",
        ]
    );
    assert_eq!(ran(&broker), 1);
}

#[test]
fn a_message_that_changes_objects_changes_them_once() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let broker = Broker::with("");
    let _process = broker.hero.actor("broker").start();
    let ask = |operation: &str, id: &str, data: Value| {
        let body = json!({ "template": "person", "data": data }).to_string();
        let properties = json!({ "type": operation, "message_id": id });
        let step = json!({ "do": "ask", "key": if operation == "bulk" { "rec.obj" } else { "rec.write" },
                           "body": body, "properties": properties });
        steps(&broker.url, &json!([step]))[0].clone()
    };
    let name =
        || broker.ask("rec.read", "fetch", "person", r#"{"id": "p"}"#)["result"]["name"].clone();
    let first = || ask("write", "m1", json!({ "id": "p", "name": "Ann", "version": 0 }));
    assert_eq!(first()["result"], json!({ "id": "p", "version": 1 }));
    let second = || ask("update", "m2", json!({ "id": "p", "name": "Bea" }));
    assert_eq!(second()["result"]["version"], 2);
    assert_eq!(ask("update", "m3", json!({ "id": "p", "name": "Cas" }))["result"]["version"], 3);
    assert_eq!(first()["result"], json!({ "id": "p", "version": 1 }), "no false dead letter");
    assert_eq!(second()["result"], json!({ "id": "p", "version": 2 }));
    assert_eq!(name(), "Cas");
    let delete = || ask("delete", "m4", json!({ "id": "p" }));
    assert_eq!(delete()["result"], json!({ "deleted": true }));
    for again in [first(), second()] {
        assert_eq!(again["ok"], true, "{again}");
    }
    assert_eq!(name(), Value::Null, "a deleted object stays deleted");
    ask("write", "m5", json!({ "id": "p", "name": "Dan" }));
    assert_eq!(delete()["result"], json!({ "deleted": true }));
    assert_eq!(name(), "Dan");
    let bulk = || ask("bulk", "m6", json!({ "write": [{ "id": "q" }], "delete": ["p"] }));
    assert_eq!(bulk()["result"], bulk()["result"]);
    let other = ask("write", "m5", json!({ "id": "p", "name": "Eva" }));
    assert_eq!(other["error"]["code"], "id_reused", "{other}");
    // The other letter is the look at the deleted object.
    let named: Vec<String> = broker.dead().into_iter().filter(|id| id.starts_with('m')).collect();
    assert_eq!(named, ["m5"]);
}

#[test]
fn an_outage_of_redis_makes_no_dead_letter_and_loses_no_message() {
    if has_rabbitmq() && has_pika() {
        outage_of_redis(Redis::kill, Redis::start_again);
    }
}

#[test]
fn a_redis_that_takes_no_writes_makes_no_dead_letter_and_loses_no_message() {
    if has_rabbitmq() && has_pika() {
        // A replica of a primary that does not exist keeps its data and answers reads.
        let begin = |redis: &mut Redis| redis.run("REPLICAOF 127.0.0.1 1");
        outage_of_redis(begin, |redis| redis.run("REPLICAOF NO ONE"));
    }
}

fn outage_of_redis(begin: impl FnOnce(&mut Redis), end: impl FnOnce(&mut Redis)) {
    let mut redis = Redis::that_keeps();
    let url = crate::support::rabbitmq::vhost();
    // Three attempts within a tenth of a second.
    let hero = super::on(&redis, &url, "");
    let process = hero.actor("broker").start();
    begin(&mut redis);
    let publish = |key: &str, operation: &str, prefix: &str, body: &Value| {
        json!({ "do": "publish", "key": key, "times": 100, "numbered": prefix,
                "body": body.to_string(), "properties": { "type": operation } })
    };
    let person = json!({ "template": "person", "data": { "name": "x" } });
    let event = json!({ "template": "Logger", "data": { "message": "x" } });
    let all = [publish("rec.write", "write", "w", &person), publish("log", "write", "l", &event)];
    steps(&url, &json!(all));
    wait_until("the broker has met the outage", || {
        process.err().contains("messages wait until Redis answers")
    });
    // Far longer than all attempts together would take.
    let mut looks = 0;
    wait_until("several looks have found no dead letter", || {
        let count = steps(&url, &json!([{ "do": "count", "queue": "prod_events.dlq" }]));
        assert_eq!(count, json!([0]));
        looks += 1;
        looks > 5
    });
    end(&mut redis);
    let broker = Broker { hero, redis, url };
    wait_until("every object is written", || {
        let found = broker.result("rec.read", "read", "person", r#"{"limit": 1000}"#);
        found["objects"].as_array().is_some_and(|objects| objects.len() == 100)
    });
    wait_until("every event is stored", || {
        let found = broker.result("rec.read", "fetch", "Logger", r#"{"limit": 1000}"#);
        let records = found["records"].as_array().expect("records").clone();
        records.iter().filter(|one| one["message"] == "x").count() == 100
    });
    assert!(broker.dead().is_empty());
    wait_until("it says so", || process.err().contains("Redis is back after"));
}

#[test]
fn an_outage_of_mariadb_is_no_attempt_and_stops_no_other_message() {
    if !has_rabbitmq() || !has_pika() || !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database.run("CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT)");
    let folder = tempfile::tempdir().expect("a folder");
    let lane = Lane::open(&folder.path().join("lane"), &database.socket());
    let tables = format!(
        "[amqp.relational]\nurl = {:?}\npassword_file = {:?}\n[amqp.relational.table.Person]\n\
         name = \"people\"\nkey = [\"id\"]\ncolumns = {{ id = \"int\", name = \"text\" }}\n",
        database.url_through(lane.path()),
        database.password_file()
    );
    let broker = Broker::with(&tables);
    let process = broker.hero.actor("broker").start();
    lane.set(Mode::Refuse);
    let body = json!({ "template": "Person", "data": { "id": 1, "name": "Ann" } }).to_string();
    let properties = json!({ "type": "write", "message_id": "r1" });
    steps(
        &broker.url,
        &json!([{ "do": "publish", "key": "rel.write", "body": body, "properties": properties }]),
    );
    wait_until("the broker has met the outage", || process.err().contains("longest retry lane"));
    for _ in 0..5 {
        broker.result("rec.read", "ping", "", "null");
        assert!(broker.dead().is_empty());
    }
    lane.set(Mode::Pass);
    wait_until("the row is written", || database.run("SELECT name FROM people") == "Ann");
    assert!(broker.dead().is_empty());
    wait_until("it says so", || process.err().contains("MariaDB is back after"));
}
