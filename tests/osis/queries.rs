//! Queries, compared with a model that checks every object.

use std::collections::BTreeMap;

use hero::proto::object::{Direction, Field, Term};
use serde_json::{Map, json};

use super::*;

/// Returns the ids that match a query, by checking all objects.
fn expected(all: &BTreeMap<String, Map<String, Value>>, query: &str) -> Vec<String> {
    let query = Query::parse(query).expect("a legal query");
    let mut found: Vec<(Option<Term>, &String)> = all
        .iter()
        .filter(|(id, body)| query.means(id, body))
        .map(|(id, body)| {
            let by = |(field, _): &(Field, Direction)| (!field.is_id()).then(|| field.term(body));
            (query.order.as_ref().and_then(by), id)
        })
        .collect();
    found.sort();
    if query.order.as_ref().is_some_and(|(_, way)| *way == Direction::Descending) {
        found.reverse();
    }
    found.truncate(query.limit.unwrap_or(usize::MAX));
    found.into_iter().map(|(_, id)| id.clone()).collect()
}

fn some_value() -> Value {
    match fastrand::u8(0..8) {
        0 => Value::Null,
        1 => fastrand::bool().into(),
        2 => fastrand::i64(-3..4).into(),
        3 => (f64::from(fastrand::i32(-6..7)) / 2.0).into(),
        4 => ((1_i64 << 53) + fastrand::i64(-2..3)).into(),
        5 => json!([1]),
        _ => ["", "a", "ab", "abc", "b", "é", "\u{0}", "a\u{1}"][fastrand::usize(0..8)].into(),
    }
}

fn some_condition() -> String {
    let field = ["n", "s", "deep.x", "id"][fastrand::usize(0..4)];
    let value = match (field, some_value()) {
        ("id", _) => json!(format!("o{}", fastrand::u8(0..60))),
        (_, Value::Array(_)) => Value::Null,
        (_, value) => value,
    };
    let value = match &value {
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    };
    if fastrand::u8(0..8) == 0 {
        return format!("{field} starts with '{}'", if field == "id" { "o1" } else { "a" });
    }
    let sign = ["=", "=", "!=", "<", "<=", ">", ">="][fastrand::usize(0..7)];
    format!("{field} {sign} {value}")
}

fn some_query() -> String {
    let mut query = some_condition();
    for _ in 0..fastrand::u8(0..4) {
        let join = ["and", "or"][fastrand::usize(0..2)];
        let first = if fastrand::bool() { format!("({query})") } else { query };
        query = format!("{first} {join} {}", some_condition());
    }
    if fastrand::bool() {
        let field = ["n", "s", "deep.x", "id"][fastrand::usize(0..4)];
        query = format!("{query} order by {field} {}", ["asc", "desc"][fastrand::usize(0..2)]);
    }
    query
}

#[tokio::test]
async fn every_query_returns_the_same_as_a_full_scan() {
    let osis = ObjectStore::with_indexes(&["n", "s", "deep.x"]);
    let mut all: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for _ in 0..200 {
        // Objects are created, changed and deleted.
        let id = format!("o{}", fastrand::u8(0..60));
        if fastrand::u8(0..6) == 0 {
            osis.write(vec![deleting(&id, None)]).await.expect("deleted");
            all.remove(&id);
        } else {
            let mut body = json!({ "n": some_value(), "s": some_value() });
            if fastrand::bool() {
                body["deep"] = json!({ "x": some_value() });
            }
            osis.set(&id, body.clone()).await;
            all.insert(id, body.as_object().expect("a map").clone());
        }
    }
    for _ in 0..400 {
        let query = some_query();
        assert_eq!(osis.found(&query).await, expected(&all, &query), "{query}\n{all:?}");
        assert_eq!(
            paged(&osis, &query).await,
            expected(&all, &query),
            "in pages: {query}\n{all:?}"
        );
    }
}

/// Returns the ids that match a query, page by page.
async fn paged(osis: &ObjectStore, query: &str) -> Vec<String> {
    let limit = fastrand::usize(1..8);
    let query = Query::parse(query).expect("legal");
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let ask = Ask::Find { object_type: thing(), query: query.clone(), after, limit };
        let Answer::Objects(objects) = osis.ask(ask).await.expect("found") else { panic!() };
        after = objects.last().map(|object| (object.id.clone(), object.body.clone()));
        let is_last = objects.len() < limit;
        ids.extend(objects.into_iter().map(|object| object.id.to_string()));
        if is_last {
            return ids;
        }
    }
}

#[tokio::test]
async fn queries_over_many_objects_use_the_order_or_the_narrowest_index() {
    let osis = ObjectStore::with_indexes(&["n", "kind"]);
    let mut all: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    // More than a query collects and sorts.
    for first in (0..12_000).step_by(1000) {
        let writes: Vec<Write> = (first..first + 1000)
            .map(|n| {
                let body =
                    json!({ "n": n % 997, "kind": if n % 3000 == 7 { "rare" } else { "usual" } });
                all.insert(format!("{n:05}"), body.as_object().expect("a map").clone());
                setting(&format!("{n:05}"), body, None)
            })
            .collect();
        osis.write(writes).await.expect("written");
    }
    for query in [
        "kind = 'rare' order by n",
        "kind = 'usual' and n > 990 order by n desc limit 30",
        "kind = 'usual' and n >= 0 limit 50",
        "kind != 'rare' and n >= 0 order by n limit 1500",
        "order by n desc limit 5",
        "kind = 'usual' limit 5",
        "n = 3 and id > '05000' or kind = 'rare' order by id desc",
    ] {
        assert_eq!(osis.found(query).await, expected(&all, query), "{query}");
    }
}

#[tokio::test]
async fn long_texts_with_the_same_start_are_distinguished() {
    let osis = ObjectStore::with_indexes(&["t"]);
    let long = |end: &str| format!("{}{end}", "x".repeat(300));
    for (id, end) in [("a", "1"), ("b", "2"), ("c", "2"), ("d", "")] {
        osis.set(id, json!({ "t": long(end) })).await;
    }
    assert_eq!(osis.found(&format!("t = '{}'", long("2"))).await, ["b", "c"]);
    assert_eq!(osis.found(&format!("t = '{}' limit 1", long("2"))).await, ["b"]);
    assert_eq!(osis.found(&format!("t < '{}'", long("2"))).await, ["a", "d"]);
    assert_eq!(osis.found(&format!("t starts with '{}'", long(""))).await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn field_without_an_index_is_rejected_with_the_setting_to_add() {
    let osis = ObjectStore::with_indexes(&["n"]);
    osis.set("a", json!({ "n": 1, "m": 1 })).await;
    for query in ["m = 1", "n = 1 or m = 1", "order by m"] {
        let rejected = osis.find(query).await.expect_err(query).to_string();
        let told = "no index on thing.m; write below [osis.index] in hero.toml: thing = [\"n\", \"m\"], then reload";
        assert_eq!(rejected, told);
    }
    let both = osis.find("k = 1 order by m").await.expect_err("two").to_string();
    assert!(both.contains("thing.k, thing.m") && both.contains("[\"n\", \"k\", \"m\"]"), "{both}");
}

#[tokio::test]
async fn result_that_is_too_large_is_rejected_but_a_page_is_returned() {
    let osis = ObjectStore::with_indexes(&[]);
    let text = "x".repeat(9_000_000);
    for id in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        osis.set(id, json!({ "t": text })).await;
    }
    let rejected = osis.find("").await.expect_err("72 MB").to_string();
    assert!(rejected.contains("larger than 64MiB together"), "{rejected}");
    assert_eq!(osis.found("limit 7").await.len(), 7);
}
