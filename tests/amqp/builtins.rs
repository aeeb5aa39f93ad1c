//! The built-ins that store, as messages reach them.

use std::time::Duration;

use hero::amqp::builtin::BuiltIns;
use hero::amqp::message::{AmqpMessage, Delivered, MessageAnswer, Properties};
use hero::client::Client;
use hero::config::{AmqpConfig, BuiltInName, JobConfig, OsisConfig};
use hero::store::Verdict;
use serde_json::{Value, json};

use crate::support::{Life, MariaDb, Redis, World, needs_mariadb};

fn built_ins(redis: &Redis, config: &AmqpConfig) -> BuiltIns {
    let client = Client::with(&redis.config("hero"), JobConfig::default()).expect("a client");
    BuiltIns::new(&client, config, &OsisConfig::default()).expect("the password is read")
}

/// A message as it is delivered.
fn message(
    key: &str,
    operation: &str,
    template: &str,
    data: &Value,
    id: Option<&str>,
) -> AmqpMessage {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let properties = Properties {
        kind: Some(operation.to_owned()),
        message_id: id.map(str::to_owned),
        headers: [header("root", "r1"), header("chain", "c1")].into(),
        ..Properties::default()
    };
    let body = json!({ "template": template, "data": data }).to_string();
    let delivered = Delivered {
        queue: "prod_events",
        key,
        is_direct: false,
        body: body.as_bytes(),
        properties: &properties,
    };
    AmqpMessage::parse(delivered, 1 << 20).expect("legal")
}

fn failed(answer: MessageAnswer) -> (String, bool) {
    match answer {
        Err(failure) => (failure.code, failure.retryable),
        Ok(result) => panic!("done: {result}"),
    }
}

#[tokio::test]
async fn a_log_record_that_is_written_is_fetched_by_the_chain_of_its_message() {
    let redis = Redis::start();
    let built_ins = built_ins(&redis, &AmqpConfig::default());
    let logger = async |key: &str, operation: &str, data: Value, id: Option<&str>| {
        let message = message(key, operation, "Logger", &data, id);
        built_ins.serve(BuiltInName::Logger, &message).await
    };
    // The second one is the same message again.
    for (key, id) in [("rec.write", "m1"), ("rec.write", "m1"), ("log", "m2")] {
        let data = json!({ "level": "warn", "message": id });
        let written = logger(key, "write", data, Some(id)).await;
        assert_eq!(written, Ok(json!({ "id": id })));
    }
    let query = json!({ "chain": "c1", "root": "r1" });
    let Ok(page) = logger("rec.read", "fetch", query, None).await else {
        panic!("no page");
    };
    let messages: Vec<&Value> =
        page["records"].as_array().expect("records").iter().map(|r| &r["message"]).collect();
    assert_eq!(messages, ["m1", "m2"]);
    for (key, operation) in [("rec.read", "write"), ("rec.read", "delete"), ("log", "fetch")] {
        let answer = logger(key, operation, json!({ "root": "r1" }), None).await;
        assert_eq!(failed(answer), ("unknown_operation".to_owned(), false), "{key} {operation}");
    }
}

#[tokio::test]
async fn rows_are_served_where_a_database_is_configured() {
    if !needs_mariadb() {
        return;
    }
    let redis = Redis::absent(false);
    let fetch = message("rel.read", "fetch", "T", &Value::Null, None);
    let without = built_ins(&redis, &AmqpConfig::default());
    let answer = without.serve(BuiltInName::Relational, &fetch).await;
    assert_eq!(failed(answer), ("not_configured".to_owned(), false));

    let database = MariaDb::create();
    database.run("CREATE TABLE t (id BIGINT PRIMARY KEY)");
    let tables = "[T]\nname = \"t\"\nkey = [\"id\"]\ncolumns = { id = \"int\" }";
    let config = AmqpConfig { relational: database.config(tables), ..AmqpConfig::default() };
    let with = built_ins(&redis, &config);
    let write = message("rel.write", "write", "T", &json!({ "id": 7 }), None);
    let written = with.serve(BuiltInName::Relational, &write).await;
    assert_eq!(written, Ok(json!({ "key": { "id": 7 } })));
    let page = with.serve(BuiltInName::Relational, &fetch).await;
    assert_eq!(page, Ok(json!({ "rows": [{ "id": 7 }], "next": null })));
}

#[tokio::test]
async fn message_tells_a_job_its_event_once() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let config = AmqpConfig::default();
    let served = built_ins(&world.redis, &config);
    let tell = async |data: Value| {
        let message = message("jobs.tell", "tell", "", &data, Some("m1"));
        served.serve(BuiltInName::Tell, &message).await
    };
    let waits = |wait: &str| Verdict::Wait {
        wait: wait.to_owned(),
        exit_code: None,
        delay: Duration::from_hours(1),
    };
    for (id, wait) in [("a", "{\"event\":\"ok\"}"), ("b", "{\"event\":\"ok\",\"who\":[\"ann\"]}")] {
        let id = world.started(&life, id).await;
        world.finish(&life, &id, waits(wait)).await;
    }
    let event = |id: &str, event: &str| json!({ "id": id, "event": event, "data": [7] });
    let done =
        |id: &str, result: &str| -> MessageAnswer { Ok(json!({ "id": id, "result": result })) };
    for (hostile, code) in [
        (event("b", "ok"), "refused"),
        (event("none", "ok"), "not_found"),
        (event("a", "o k"), "invalid_message"),
        (event("*", "ok"), "invalid_message"),
        (json!({ "id": "a" }), "invalid_message"),
        (json!({ "id": "a", "event": "ok", "who": "ann" }), "invalid_message"),
        (json!([]), "invalid_message"),
        (json!({ "id": "a", "event": "ok", "data": "x".repeat(70_000) }), "invalid_message"),
    ] {
        assert_eq!(failed(tell(hostile.clone()).await), (code.to_owned(), false), "{hostile}");
    }
    assert_eq!(tell(event("a", "other")).await, done("a", "kept"));
    assert_eq!(tell(event("a", "ok")).await, done("a", "told"));
    assert_eq!(tell(event("a", "ok")).await, done("a", "twice"));
    let came: Value = serde_json::from_str(&world.field("a", "event").expect("one")).expect("JSON");
    assert_eq!((&came["data"], &came["through"]), (&json!([7]), &json!("RabbitMQ")));
    assert_eq!(world.field("b", "event"), None);
}
