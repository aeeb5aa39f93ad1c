//! The collection of log records, as objects in a real Redis.

use hero::amqp::logs::{LogCollection, LogPurge, LogRecord, RecordProperties, RecordQuery};
use hero::client::Client;
use hero::config::{JobConfig, LogsConfig, OsisConfig};
use serde_json::{Value, json};

use crate::support::{Hero, Redis};

fn logs(redis: &Redis, config: &LogsConfig) -> LogCollection {
    let client = Client::with(&redis.config("hero"), JobConfig::default()).expect("a client");
    LogCollection::new(client, config, &OsisConfig::default()).expect("legal settings")
}

/// Settings that delete nothing for its age.
fn forever() -> LogsConfig {
    LogsConfig { keep: std::time::Duration::ZERO, ..LogsConfig::default() }
}

async fn write(logs: &LogCollection, data: Value) {
    logs.serve("write", &data, RecordProperties::default()).await.expect("stored");
}

async fn ids(logs: &LogCollection, query: Value) -> (Vec<String>, Value) {
    let page = logs.serve("fetch", &query, RecordProperties::default()).await.expect("a page");
    let records = page["records"].as_array().expect("records");
    let id = |record: &Value| record["id"].as_str().expect("an id").to_owned();
    (records.iter().map(id).collect(), page["next"].clone())
}

#[tokio::test]
async fn records_are_fetched_by_root_chain_level_and_time_in_the_order_of_time() {
    let redis = Redis::start();
    let logs = logs(&redis, &forever());
    // Neither ids nor writes are in the order of time.
    for (id, minute, root, chain, level) in [
        ("a", 3, "r1", "c1", "info"),
        ("b", 1, "r1", "c2", "error"),
        ("c", 2, "r2", "c3", "info"),
        ("d", 2, "r1", "c1", "warn"),
        ("e", 0, "r1", "c1", "info"),
    ] {
        let time = format!("2026-01-31T10:0{minute}:00Z");
        write(
            &logs,
            json!({ "id": id, "time": time, "root": root, "chain": chain, "level": level }),
        )
        .await;
    }
    let time = |minute: u32| format!("2026-01-31T11:0{minute}:00+01:00");
    for (query, expected) in [
        (json!({ "root": "r1" }), &["e", "b", "d", "a"][..]),
        (json!({ "root": "r1", "newest_first": true }), &["a", "d", "b", "e"]),
        (json!({ "chain": "c1" }), &["e", "d", "a"]),
        (json!({ "root": "r1", "level": "INFO" }), &["e", "a"]),
        (json!({ "since": time(1), "until": time(3) }), &["b", "c", "d"]),
        (json!({ "root": "none" }), &[]),
        (json!(null), &["e", "b", "c", "d", "a"]),
    ] {
        assert_eq!(ids(&logs, query.clone()).await, (strings(expected), Value::Null), "{query}");
    }
    let (first, next) = ids(&logs, json!({ "root": "r1", "limit": 2 })).await;
    let rest = ids(&logs, json!({ "root": "r1", "limit": 2, "after": next })).await;
    assert_eq!((first, rest), (strings(&["e", "b"]), (strings(&["d", "a"]), Value::Null)));
}

fn strings(ids: &[&str]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_record_that_is_delivered_twice_is_stored_once_as_it_first_came() {
    let redis = Redis::start();
    let logs = logs(&redis, &LogsConfig::default());
    let beside = RecordProperties { id: Some("m1"), root: Some("r"), chain: Some("c") };
    for message in ["first", "second"] {
        let written = logs.serve("write", &json!({ "message": message }), beside).await;
        assert_eq!(written, Ok(json!({ "id": "m1" })));
    }
    let page = logs.fetch(&RecordQuery::default()).await.expect("a page");
    assert_eq!(page.records.len(), 1);
    let fields = &page.records[0].fields;
    assert_eq!((&fields["message"], &fields["chain"]), (&json!("first"), &json!("c")));
}

#[tokio::test]
async fn records_are_purged_by_root_and_by_age() {
    let redis = Redis::start();
    let logs = logs(&redis, &forever());
    for (id, year, root) in
        [("a", 2024, "r1"), ("b", 2025, "r1"), ("c", 2024, "r2"), ("d", 2025, "r2")]
    {
        write(&logs, json!({ "id": id, "time": format!("{year}-06-01T00:00:00Z"), "root": root }))
            .await;
    }
    let purge = async |data: Value| logs.serve("delete", &data, RecordProperties::default()).await;
    let before = "2025-01-01T00:00:00Z";
    let deleted = purge(json!({ "root": "r1", "before": before })).await;
    assert_eq!(deleted, Ok(json!({ "deleted": 1, "complete": true })));
    assert_eq!(ids(&logs, Value::Null).await.0, ["c", "b", "d"]);
    let purged =
        logs.purge(&LogPurge { before: Some(before.to_owned()), ..LogPurge::default() }).await;
    assert_eq!(purged.map(|purged| purged.deleted), Ok(1));
    let deleted = purge(json!({ "root": "r2" })).await;
    assert_eq!(deleted, Ok(json!({ "deleted": 1, "complete": true })));
    assert_eq!(ids(&logs, Value::Null).await.0, ["b"]);
    // Nothing deletes all of it by mistake.
    for data in [json!({}), json!(null), json!([]), json!({ "rot": "r1" })] {
        assert_eq!(purge(data).await.expect_err("rejected").code, "invalid_message");
    }
}

#[tokio::test]
async fn records_that_are_too_old_go_when_another_is_written() {
    let redis = Redis::start();
    let logs = logs(&redis, &LogsConfig::default());
    let now = jiff::Timestamp::now();
    let data = json!({ "id": "old", "time": "2020-01-01T00:00:00Z" });
    let old = LogRecord::of(&data, RecordProperties::default(), now).expect("legal");
    assert_eq!(logs.store(&old).await, Ok(true));
    write(&logs, json!({ "id": "new" })).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while ids(&logs, Value::Null).await.0 != ["new"] {
        assert!(tokio::time::Instant::now() < deadline, "the old record is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_full_collection_makes_room_by_its_oldest_records() {
    let redis = Redis::start();
    let config = LogsConfig { records_max: 3, ..forever() };
    let logs = logs(&redis, &config);
    for minute in [2, 1, 3, 4] {
        let time = format!("2026-01-31T10:0{minute}:00Z");
        write(&logs, json!({ "id": format!("m{minute}"), "time": time })).await;
    }
    assert_eq!(ids(&logs, Value::Null).await.0, ["m2", "m3", "m4"]);
}

#[tokio::test]
async fn an_absent_redis_may_pass() {
    let redis = Redis::absent(false);
    let logs = logs(&redis, &LogsConfig::default());
    let failure =
        logs.serve("write", &json!({}), RecordProperties::default()).await.expect_err("absent");
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
    let failure =
        logs.serve("dance", &json!({}), RecordProperties::default()).await.expect_err("unknown");
    assert_eq!((failure.code.as_str(), failure.retryable), ("unknown_operation", false));
}

#[tokio::test]
async fn an_operator_prints_and_deletes_records() {
    let redis = Redis::start();
    let logs = logs(&redis, &forever());
    for (id, year) in [("a", 2024), ("b", 2025)] {
        let time = format!("{year}-06-01T00:00:00Z");
        write(&logs, json!({ "id": id, "time": time, "root": "r", "message": "it broke\u{1b}" }))
            .await;
    }
    let hero = Hero::on(&redis);
    let printed = hero.run(&["amqp", "logs", "--root", "r", "--limit", "1"]).code(0);
    let line = "r\n└─ without a chain\n     2024-06-01T00:00:00.000000Z info    it broke";
    assert!(
        printed.stdout.contains(line) && !printed.stdout.contains('\u{1b}'),
        "{}",
        printed.stdout
    );
    printed.says("--after '2024-06-01T00:00:00.000000Z a'");
    let page = hero.run(&["--json", "amqp", "logs", "--newest-first"]).code(0).stdout;
    let page: Value = serde_json::from_str(&page).expect("JSON");
    assert_eq!((&page["records"][0]["id"], &page["next"]), (&json!("b"), &Value::Null));
    hero.run(&["amqp", "logs", "--level", "loud"]).code(65).says("unknown level `loud`");
    hero.run(&["amqp", "purge-logs"]).code(2);
    let deleted = hero.run(&["amqp", "purge-logs", "--root", "r", "--older-than", "100000d"]);
    assert_eq!(deleted.code(0).stdout, "0 deleted\n");
    assert_eq!(hero.run(&["amqp", "purge-logs", "--root", "r"]).code(0).stdout, "2 deleted\n");
}
