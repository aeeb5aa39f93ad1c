//! Values that MariaDB would change, ids that are used again, and answers that come once.

use hero::amqp::message::MessageFailure;
use hero::amqp::relational::Relational;
use serde_json::{Value, json};

use super::Broker;
use super::steps::{has_pika, steps};
use crate::support::rabbitmq::has_rabbitmq;
use crate::support::{MariaDb, needs_mariadb, wait_until};

const KINDS: &str = "[Kind]\nname = \"kinds\"\nkey = [\"id\"]\n\
    columns = { id = \"int\", f = \"float\", d = \"decimal\", w = \"decimal\", at = \"time\", day = \"time\" }";

async fn serve(
    relational: &Relational,
    operation: &str,
    data: &Value,
    id: Option<&str>,
) -> Result<Value, MessageFailure> {
    let message = json!({ "queue": "q", "key": "rel.write", "operation": operation,
                          "template": "Kind", "data": data, "message_id": id });
    relational.serve(&serde_json::from_value(message).expect("a message")).await
}

#[tokio::test]
async fn values_that_mariadb_would_round_or_cut_are_refused() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database.run(
        "CREATE TABLE kinds (id BIGINT PRIMARY KEY, f DOUBLE, d DECIMAL(10,2), w INT, at DATETIME, day DATE)",
    );
    let relational = Relational::new(&database.config(KINDS)).expect("the password is read");
    let first = json!({ "id": 1, "f": 0.1, "d": "12.500", "w": "3", "at": "2026-01-31T10:00:00Z",
                        "day": "2026-01-31T00:00:00Z" });
    serve(&relational, "write", &first, None).await.expect("written");
    let row = "1\t0.1\t12.50\t3\t2026-01-31 10:00:00\t2026-01-31";
    for (name, value) in [
        ("d", json!("12.505")),
        ("w", json!("3.5")),
        ("at", json!("2026-01-31T10:00:00.5Z")),
        ("at", json!("2026-01-31T10:00:00.0000001Z")),
        ("day", json!("2026-01-31T10:00:00Z")),
        ("f", json!(9_007_199_254_740_993_u64)),
        ("w", json!("99999999999")),
        ("d", json!("123456789.01")),
    ] {
        let write = json!({ "id": 2, name: value });
        let refused = serve(&relational, "write", &write, None).await.expect_err(name);
        let known = ["refused", "invalid_message"].contains(&refused.code.as_str());
        assert!(known && !refused.retryable, "{name} {value}: {refused}");
        let update = json!({ "set": { name: value }, "where": { "id": 1 } });
        serve(&relational, "update", &update, None).await.expect_err(name);
        assert_eq!(database.run("SELECT * FROM kinds"), row, "{name} {value}");
    }
    // A column that holds more by now.
    database.run("ALTER TABLE kinds MODIFY d DECIMAL(10,3)");
    let update = json!({ "set": { "d": "12.505" }, "where": { "id": 1 } });
    serve(&relational, "update", &update, None).await.expect("updated");
}

#[tokio::test]
async fn an_id_in_the_ledger_is_of_one_message() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database
        .run("CREATE TABLE kinds (id BIGINT PRIMARY KEY, f DOUBLE, d INT, w INT, at INT, day INT)");
    database.run("CREATE TABLE ledger (id VARBINARY(255) PRIMARY KEY, result LONGTEXT)");
    database.run("INSERT INTO ledger VALUES ('old', '[{\"rows\": 7}]')");
    let mut config = database.config(KINDS);
    config.ledger = Some("ledger".parse().expect("legal"));
    let relational = Relational::new(&config).expect("the password is read");
    let write = |id: i64| json!({ "id": id });
    let first = serve(&relational, "write", &write(1), Some("m")).await.expect("written");
    assert_eq!(serve(&relational, "write", &write(1), Some("m")).await, Ok(first));
    for (operation, data) in [("write", write(2)), ("delete", json!({ "where": { "id": 1 } }))] {
        let reused = serve(&relational, operation, &data, Some("m")).await.expect_err("another");
        assert_eq!((reused.code.as_str(), reused.retryable), ("id_reused", false), "{reused}");
    }
    assert_eq!(database.run("SELECT id FROM kinds"), "1");
    // An entry of before the digests.
    let old = serve(&relational, "write", &write(3), Some("old")).await;
    assert_eq!(old, Ok(json!({ "rows": 7 })));
}

#[test]
fn a_log_event_is_answered_once_though_several_brokers_get_it() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let broker = Broker::with("").set("amqp.mode", "\"matrix\"");
    let process = broker.hero.actor("broker-admin").start();
    let event = |name: &str| {
        let body = json!({ "template": "Logger", "data": { "message": name } }).to_string();
        let properties = json!({ "type": "write", "message_id": name, "reply_to": "answers",
                                 "correlation_id": name });
        json!({ "do": "publish", "key": "log", "body": body, "properties": properties })
    };
    let declare = json!({ "do": "declare", "queue": "answers" });
    steps(&broker.url, &json!([declare, event("first"), event("second")]));
    wait_until("the journal has both", || {
        let err = process.err();
        err.contains("log event: info: first") || err.contains("log event: : first")
    });
    wait_until("both are settled", || {
        let count = |queue: &str| json!({ "do": "count", "queue": queue });
        let queues = ["prod_log", "prod_log.adminSyslogBroker"].map(count);
        steps(&broker.url, &json!(queues)) == json!([0, 0])
    });
    let mut answered = 0;
    wait_until("both are answered", || {
        let taken = steps(&broker.url, &json!([{ "do": "take", "queue": "answers" }]));
        answered += taken[0].as_array().map_or(0, Vec::len);
        answered >= 2
    });
    assert_eq!(answered, 2);
}

#[test]
fn brokers_are_seen_in_the_status_with_their_messages_and_milestones() {
    if !has_rabbitmq() || !has_pika() {
        return;
    }
    let broker = Broker::with("");
    let process = broker.hero.actor("broker").start();
    for key in ["rec.read", "rec.read", "invented"] {
        broker.result(key, "ping", "", "null");
    }
    broker.ask("nobody", "load", "x", "null");
    wait_until("Redis knows what it has done", || {
        let status = broker.json(&["status"]);
        let one = &status["brokers"][0];
        one["messages"]["rec.read"]["done"] == 2
            && one["messages"]["other"] == json!({ "done": 1, "dead": 1 })
            && (one["is_alive"] == true && one["consuming"] == 4 && one["dispatchers"] == 4)
    });
    let text = broker.hero.run(&["status"]).code(0).stdout;
    assert!(
        text.contains("broker broker@") && text.contains("4 of 4 dispatchers consume"),
        "{text}"
    );
    let text = broker.hero.run(&["amqp", "status"]).code(0).stdout;
    assert!(text.contains(" done, 1 dead"), "{text}");

    // The last milestones are stored by the next process.
    process.signal(nix::sys::signal::Signal::SIGTERM);
    let err = process.ends().code(0).stderr;
    assert!(err.contains("shutdown.ended"), "{err}");
    assert_eq!(broker.json(&["status"])["brokers"], json!([]), "it has taken leave");
    let _next = broker.hero.actor("broker").start();
    let mut root = String::new();
    wait_until("the end of the first is stored", || {
        let found = broker.result("rec.read", "fetch", "Logger", r#"{"limit": 100}"#);
        let records = found["records"].as_array().expect("records").clone();
        let ended = records.iter().find(|one| one["event"] == "shutdown.ended");
        ended.map(|one| root = one["root"].as_str().unwrap_or_default().to_owned()).is_some()
    });
    let tree = broker.hero.run(&["amqp", "logs", "--root", &root, "--limit", "100"]).code(0).stdout;
    for line in [
        &root,
        &format!("├─ {root}.start"),
        "the unit broker has the tag prod_",
        "connected to RabbitMQ at",
        "the exchanges are declared",
        "every dispatcher consumes",
        "4 dispatchers consume prod_events",
        "no more messages are taken",
        "the messages are settled",
        "the last event of this process",
    ] {
        assert!(tree.contains(line), "{line}: {tree}");
    }
    assert!(tree.contains(&format!("{root}.dispatcher")), "{tree}");
    assert!(tree.contains(&format!("└─ {root}.end")), "{tree}");
}
