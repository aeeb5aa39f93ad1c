//! `rel.*` through a real MariaDB.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use hero::amqp::message::MessageFailure;
use hero::amqp::relational::Relational;
use hero::config::RelationalConfig;
use serde_json::{Value, json};

use crate::support::proxy::{Lane, Mode};
use crate::support::{MariaDb, needs_mariadb};

const PEOPLE: &str = "
    [Person]
    name = \"people\"
    key = [\"id\"]
    columns = { id = \"int\", name = \"text\", age = \"int\" }

    [Absent]
    name = \"absent\"
    key = [\"id\"]
    columns = { id = \"int\" }
";
const PEOPLE_SQL: &str = "CREATE TABLE people (
    id BIGINT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100) NOT NULL, age SMALLINT CHECK (age >= 0))";

/// A database with the table of people, and what serves it.
fn people() -> (MariaDb, Relational) {
    let database = MariaDb::create();
    database.run(PEOPLE_SQL);
    let relational = Relational::new(&database.config(PEOPLE)).expect("the password is read");
    (database, relational)
}

/// Serves a message with these parts.
async fn serve(
    relational: &Relational,
    key: &str,
    operation: &str,
    template: &str,
    data: &Value,
    message_id: Option<&str>,
) -> Result<Value, MessageFailure> {
    let message = json!({
        "queue": "q", "key": key, "operation": operation, "template": template, "data": data,
        "message_id": message_id,
    });
    relational.serve(&serde_json::from_value(message).expect("a message")).await
}

async fn write(relational: &Relational, row: Value) -> Result<Value, MessageFailure> {
    serve(relational, "rel.write", "write", "Person", &row, None).await
}

async fn fetch(relational: &Relational, data: Value) -> Result<Value, MessageFailure> {
    serve(relational, "rel.read", "fetch", "Person", &data, None).await
}

/// The ids of a page, and the offset of the next one.
fn ids(page: &Value) -> (Vec<i64>, Option<u64>) {
    let rows = page["rows"].as_array().expect("rows");
    (rows.iter().map(|row| row["id"].as_i64().expect("a number")).collect(), page["next"].as_u64())
}

#[tokio::test]
async fn rows_are_written_fetched_updated_and_deleted() {
    if !needs_mariadb() {
        return;
    }
    let (database, relational) = people();
    let written = write(&relational, json!({ "name": "Ann", "age": 44 })).await;
    assert_eq!(written, Ok(json!({ "key": { "id": 1 } })));
    let written = write(&relational, json!({ "id": 7, "name": "Bob" })).await;
    assert_eq!(written, Ok(json!({ "key": { "id": 7 } })));
    let ann = json!({ "id": 1, "name": "Ann", "age": 44 });
    let bob = json!({ "id": 7, "name": "Bob", "age": null });
    let all = fetch(&relational, Value::Null).await;
    assert_eq!(all, Ok(json!({ "rows": [ann, bob], "next": null })));

    let change = json!({ "set": { "age": 17 }, "where": { "name": { "in": ["Bob", "Cas"] } } });
    let updated = serve(&relational, "rel.write", "update", "Person", &change, None).await;
    assert_eq!(updated, Ok(json!({ "rows": 1 })));
    let condition = json!({ "where": { "age": { "lt": 18 } } });
    assert_eq!(ids(&fetch(&relational, condition.clone()).await.expect("a page")).0, [7]);
    let deleted = serve(&relational, "rel.write", "delete", "Person", &condition, None).await;
    assert_eq!(deleted, Ok(json!({ "rows": 1 })));
    assert_eq!(database.run("SELECT id, name, age FROM people"), "1\tAnn\t44");
}

#[tokio::test]
async fn every_declared_type_comes_back_as_it_was_written() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database.run(
        "CREATE TABLE kinds (id BIGINT UNSIGNED PRIMARY KEY, f DOUBLE, d DECIMAL(10,2), b BOOLEAN, \
         t TEXT, y BLOB, at DATETIME(6), day DATE, j JSON)",
    );
    let config = database.config(
        "[Kind]\nname = \"kinds\"\nkey = [\"id\"]\n\
         columns = { id = \"int\", f = \"float\", d = \"decimal\", b = \"bool\", t = \"text\", \
         y = \"bytes\", at = \"time\", day = \"date\", j = \"json\" }",
    );
    let relational = Relational::new(&config).expect("the password is read");
    let full = json!({
        "id": u64::MAX, "f": 0.1, "d": "-12.50", "b": true, "t": "Zoë 🦀", "y": "AP8nYA==",
        "at": "2026-01-31T10:00:00.123456Z", "day": "2026-01-31", "j": { "a": [1, null, "'"] },
    });
    let empty = json!({
        "id": 0, "f": null, "d": null, "b": null, "t": null, "y": null, "at": null, "day": null,
        "j": null,
    });
    for row in [&full, &empty] {
        serve(&relational, "rel.write", "write", "Kind", row, None).await.expect("written");
    }
    let page =
        serve(&relational, "rel.read", "read", "Kind", &Value::Null, None).await.expect("a page");
    assert_eq!(page["rows"], json!([empty, full]));
    // Each type that has conditions is compared as itself.
    for name in ["id", "d", "b", "t", "y", "at", "day"] {
        let data = json!({ "where": { name: { "ge": full[name] } }, "columns": ["id"] });
        let page =
            serve(&relational, "rel.read", "fetch", "Kind", &data, None).await.expect("a page");
        assert_eq!(page["rows"], json!([{ "id": u64::MAX }]), "{name}");
    }
}

#[tokio::test]
async fn pages_follow_the_order_and_do_not_overlap() {
    if !needs_mariadb() {
        return;
    }
    let (database, relational) = people();
    database.run("INSERT INTO people (name, age) SELECT 'x', seq % 3 FROM seq_1_to_10");
    let mut read = Vec::new();
    let mut offset = Some(0);
    while let Some(from) = offset {
        let data = json!({ "order": ["age desc"], "limit": 4, "offset": from });
        let (some, next) = ids(&fetch(&relational, data).await.expect("a page"));
        read.push(some);
        offset = next;
    }
    assert_eq!(read, [vec![2, 5, 8, 1], vec![4, 7, 10, 3], vec![6, 9]]);
}

#[tokio::test]
async fn a_page_ends_where_its_result_would_be_too_large() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database.run("CREATE TABLE texts (id BIGINT PRIMARY KEY, t MEDIUMTEXT)");
    database.run("INSERT INTO texts SELECT seq, REPEAT('x', seq * 400) FROM seq_1_to_3");
    let tables = "[T]\nname = \"texts\"\nkey = [\"id\"]\ncolumns = { id = \"int\", t = \"text\" }";
    let mut config = database.config(tables);
    config.result_size_max = 1024;
    let relational = Relational::new(&config).expect("the password is read");
    let page = |offset| {
        let data = json!({ "offset": offset });
        let relational = &relational;
        async move { serve(relational, "rel.read", "fetch", "T", &data, None).await }
    };
    assert_eq!(ids(&page(0).await.expect("a page")), (vec![1], Some(1)));
    assert_eq!(ids(&page(1).await.expect("a page")), (vec![2], Some(2)));
    let failure = page(2).await.expect_err("too large");
    assert_eq!((failure.code.as_str(), failure.retryable), ("refused", false), "{failure}");
}

#[tokio::test]
async fn hostile_texts_are_values_and_nothing_else() {
    if !needs_mariadb() {
        return;
    }
    let (database, relational) = people();
    let texts = [
        "'; DROP TABLE people; --",
        "\" OR \"\"=\"",
        "\\' OR 1=1 #",
        "`people`",
        "a\u{0}b\u{1a}c",
        "?",
        "%s {name} $1 :name",
        "\u{feff}\u{202e}ﬀ𝕏",
    ];
    for text in texts {
        write(&relational, json!({ "name": text })).await.expect("written");
        let data = json!({ "where": { "name": text } });
        let page = fetch(&relational, data).await.expect("a page");
        assert_eq!(page["rows"].as_array().map(Vec::len), Some(1), "{text:?}");
        assert_eq!(page["rows"][0]["name"], text);
        let change = json!({ "set": { "name": text }, "where": { "name": { "eq": text } } });
        let updated = serve(&relational, "rel.write", "update", "Person", &change, None).await;
        assert_eq!(updated, Ok(json!({ "rows": 1 })), "{text:?}");
        // A text from outside is never taken for the name of a column.
        for data in [json!({ "where": { text: 1 } }), json!({ "order": [text] })] {
            let failure = fetch(&relational, data).await.expect_err("rejected");
            assert_eq!(failure.code, "invalid_message", "{failure}");
        }
        assert_eq!(
            write(&relational, json!({ text: 1 })).await.expect_err("rejected").code,
            "invalid_message"
        );
        let failure = serve(&relational, "rel.read", "fetch", text, &Value::Null, None).await;
        assert_eq!(failure.expect_err("rejected").code, "unknown_template");
    }
    assert_eq!(database.run("SELECT COUNT(*) FROM people"), texts.len().to_string());
}

#[tokio::test]
async fn a_bulk_is_done_as_a_whole_or_not_at_all() {
    if !needs_mariadb() {
        return;
    }
    let (database, relational) = people();
    let change = |operation: &str, data: Value| json!({ "operation": operation, "data": data });
    let changes = json!({ "changes": [
        change("write", json!({ "id": 1, "name": "Ann" })),
        change("write", json!({ "id": 2, "name": "Bob" })),
        change("update", json!({ "set": { "age": 3 }, "where": { "id": 1 } })),
        change("delete", json!({ "where": { "id": 2 } })),
    ] });
    let done = serve(&relational, "rel.obj", "bulk", "Person", &changes, None).await;
    let results =
        json!([{ "key": { "id": 1 } }, { "key": { "id": 2 } }, { "rows": 1 }, { "rows": 1 }]);
    assert_eq!(done, Ok(json!({ "results": results })));
    assert_eq!(database.run("SELECT id, age FROM people"), "1\t3");

    let changes = json!({ "changes": [
        change("write", json!({ "id": 3, "name": "Cas" })),
        change("write", json!({ "id": 1, "name": "Ann" })),
    ] });
    let failure =
        serve(&relational, "rel.obj", "bulk", "Person", &changes, None).await.expect_err("refused");
    assert_eq!((failure.code.as_str(), failure.retryable), ("exists", false));
    assert!(failure.message.contains("changes[1], write of Person"), "{failure}");
    assert_eq!(database.run("SELECT id FROM people"), "1");
    for changes in
        [json!([]), json!([change("fetch", Value::Null)]), json!([change("write", json!({}))])]
    {
        let data = json!({ "changes": changes });
        let failure = serve(&relational, "rel.obj", "bulk", "Person", &data, None).await;
        assert!(!failure.expect_err("rejected").retryable);
    }
}

#[tokio::test]
async fn each_failure_has_its_code_and_leaves_the_connection_usable() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database.run(PEOPLE_SQL);
    let mut config = database.config(PEOPLE);
    config.connections = 1;
    let relational = Relational::new(&config).expect("the password is read");
    write(&relational, json!({ "id": 1, "name": "Ann" })).await.expect("written");
    let long = "x".repeat(101);
    for (key, operation, template, data, code) in [
        ("rel.write", "write", "Person", json!({ "id": 1, "name": "Bob" }), "exists"),
        ("rel.write", "write", "Person", json!({ "id": 2 }), "refused"),
        ("rel.write", "write", "Person", json!({ "id": 2, "name": null }), "refused"),
        ("rel.write", "write", "Person", json!({ "id": 2, "name": long }), "refused"),
        ("rel.write", "write", "Person", json!({ "id": u64::MAX, "name": "x" }), "refused"),
        ("rel.write", "write", "Person", json!({ "name": "x", "age": 40_000 }), "refused"),
        ("rel.write", "write", "Person", json!({ "name": "x", "age": -1 }), "refused"),
        ("rel.read", "fetch", "Absent", json!(null), "database"),
        ("rel.read", "fetch", "Persn", json!(null), "unknown_template"),
        ("rel.read", "delete", "Person", json!({ "where": { "id": 1 } }), "unknown_operation"),
        ("rel.write", "bulk", "Person", json!({}), "unknown_operation"),
        ("rec.read", "fetch", "Person", json!(null), "unknown_operation"),
    ] {
        let failure =
            serve(&relational, key, operation, template, &data, None).await.expect_err("refused");
        assert_eq!((failure.code.as_str(), failure.retryable), (code, false), "{failure}");
    }
    assert_eq!(ids(&fetch(&relational, Value::Null).await.expect("a page")).0, [1]);
    let connections = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() \
                       AND user = 'hero'";
    assert_eq!(database.run(connections), "1");
}

#[tokio::test]
async fn a_lost_connection_may_pass_and_is_replaced() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database.run(PEOPLE_SQL);
    let folder = tempfile::tempdir().expect("a folder");
    let lane = Lane::open(&folder.path().join("lane"), &database.socket());
    let mut config = database.config(PEOPLE);
    config.url = database.url_through(lane.path()).into();
    config.timeout = Duration::from_millis(500);
    config.connections = 2;
    let relational = Relational::new(&config).expect("the password is read");
    write(&relational, json!({ "id": 1, "name": "Ann" })).await.expect("written");

    // The server does not answer: nothing waits for longer than the timeout, and none is left over.
    lane.set(Mode::Hold);
    for _ in 0..4 {
        let failure = fetch(&relational, Value::Null).await.expect_err("no answer");
        assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true), "{failure}");
    }
    lane.set(Mode::Refuse);
    let failure = fetch(&relational, Value::Null).await.expect_err("refused");
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
    lane.set(Mode::Pass);
    assert_eq!(ids(&fetch(&relational, Value::Null).await.expect("a page")).0, [1]);
    lane.cut();
    let next = fetch(&relational, Value::Null).await;
    assert!(next.as_ref().err().is_none_or(|failure| failure.retryable), "{next:?}");
    assert_eq!(ids(&fetch(&relational, Value::Null).await.expect("a page")).0, [1]);
}

#[tokio::test]
async fn a_server_that_is_absent_silent_or_denies_the_login_may_pass() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = database.config(PEOPLE);
    config.timeout = Duration::from_millis(300);
    config.connections = 1;
    let failure_of = async |config: &RelationalConfig| {
        let relational = Relational::new(config).expect("the password is read");
        fetch(&relational, Value::Null).await.expect_err("no database")
    };
    let file = folder.path().join("password");
    std::fs::write(&file, "wrong").expect("written");
    config.password_file = Some(file);
    let failure = failure_of(&config).await;
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true));
    assert!(failure.message.contains("check amqp.relational.url"), "{failure}");

    config.url = database.url_through(&folder.path().join("none")).into();
    let failure = failure_of(&config).await;
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");

    let silent = folder.path().join("silent");
    let _listener = UnixListener::bind(&silent).expect("a socket");
    config.url = database.url_through(&silent).into();
    let failure = failure_of(&config).await;
    assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true), "{failure}");
}

#[tokio::test]
async fn a_connection_through_tls_trusts_the_configured_authority_and_no_other() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database.run(PEOPLE_SQL);
    let mut config = database.config(PEOPLE);
    config.url = database.url_through_tls().as_str().into();
    let relational = Relational::new(&config).expect("the password is read");
    let failure = fetch(&relational, Value::Null).await.expect_err("a stranger");
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true), "{failure}");
    config.tls_ca_file = Some(database.authority().file("ca.pem").into());
    let relational = Relational::new(&config).expect("the password is read");
    write(&relational, json!({ "id": 1, "name": "Ann" })).await.expect("written");
    assert_eq!(ids(&fetch(&relational, Value::Null).await.expect("a page")).0, [1]);
    // The user of the port is refused without TLS.
    config.url = database.url_through_tls().replacen("mysqls:", "mysql:", 1).as_str().into();
    config.tls_ca_file = None;
    let relational = Relational::new(&config).expect("the password is read");
    let failure = fetch(&relational, Value::Null).await.expect_err("refused");
    assert_eq!(failure.code, "unavailable", "{failure}");
}

#[tokio::test]
async fn a_message_that_is_in_the_ledger_changes_nothing_again() {
    if !needs_mariadb() {
        return;
    }
    let database = MariaDb::create();
    database.run(PEOPLE_SQL);
    database.run("CREATE TABLE ledger (id VARBINARY(255) PRIMARY KEY, result LONGTEXT)");
    let mut config = database.config(PEOPLE);
    config.ledger = Some("ledger".parse().expect("legal"));
    let relational = Relational::new(&config).expect("the password is read");
    let write = async |id: Option<&str>, row: Value| {
        serve(&relational, "rel.write", "write", "Person", &row, id).await
    };
    let ann = json!({ "name": "Ann" });
    // Two dispatchers may have it at the same time.
    let both = tokio::join!(write(Some("m1"), ann.clone()), write(Some("m1"), ann.clone()));
    assert_eq!(both.0, both.1);
    assert_eq!(write(Some("m1"), ann.clone()).await, both.0);
    assert_eq!(database.run("SELECT COUNT(*) FROM people"), "1");
    // A failure enters nothing, and an id that differs is another message.
    let refused = write(Some("M1"), json!({ "name": null })).await.expect_err("refused");
    assert_eq!(refused.code, "refused");
    for id in [Some("M1"), Some("m1 "), None, None] {
        write(id, ann.clone()).await.expect("written");
    }
    assert_eq!(database.run("SELECT COUNT(*) FROM people"), "5");
}
