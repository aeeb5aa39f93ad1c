//! Finding objects, compared with a model that looks at every one of them.

use std::collections::BTreeMap;

use hero::proto::object::{Direction, Field, Term};
use serde_json::{Map, json};

use super::*;

/// What a query means, found by looking at all objects.
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
async fn every_query_gives_what_a_look_at_all_objects_gives() {
    let place = Place::with_indexes(&["n", "s", "deep.x"]);
    let mut all: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for _ in 0..200 {
        // Objects come, change and go.
        let id = format!("o{}", fastrand::u8(0..60));
        if fastrand::u8(0..6) == 0 {
            place.write(vec![deleting(&id, None)]).await.expect("deleted");
            all.remove(&id);
        } else {
            let mut body = json!({ "n": some_value(), "s": some_value() });
            if fastrand::bool() {
                body["deep"] = json!({ "x": some_value() });
            }
            place.set(&id, body.clone()).await;
            all.insert(id, body.as_object().expect("a map").clone());
        }
    }
    for _ in 0..400 {
        let query = some_query();
        assert_eq!(place.found(&query).await, expected(&all, &query), "{query}\n{all:?}");
        assert_eq!(
            paged(&place, &query).await,
            expected(&all, &query),
            "in pages: {query}\n{all:?}"
        );
    }
}

/// The same by pages, each after the last object of the one before.
async fn paged(place: &Place, query: &str) -> Vec<String> {
    let limit = fastrand::usize(1..8);
    let query = Query::parse(query).expect("legal");
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let ask = Ask::Find { object_type: thing(), query: query.clone(), after, limit };
        let Answer::Objects(objects) = place.ask(ask).await.expect("found") else { panic!() };
        after = objects.last().map(|object| (object.id.clone(), object.body.clone()));
        let is_last = objects.len() < limit;
        ids.extend(objects.into_iter().map(|object| object.id.to_string()));
        if is_last {
            return ids;
        }
    }
}

#[tokio::test]
async fn many_objects_are_found_along_the_order_and_along_the_narrowest_index() {
    let place = Place::with_indexes(&["n", "kind"]);
    let mut all: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    // More than are ever collected and sorted.
    for first in (0..12_000).step_by(1000) {
        let writes: Vec<Write> = (first..first + 1000)
            .map(|n| {
                let body =
                    json!({ "n": n % 997, "kind": if n % 3000 == 7 { "rare" } else { "usual" } });
                all.insert(format!("{n:05}"), body.as_object().expect("a map").clone());
                setting(&format!("{n:05}"), body, None)
            })
            .collect();
        place.write(writes).await.expect("written");
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
        assert_eq!(place.found(query).await, expected(&all, query), "{query}");
    }
}

#[tokio::test]
async fn long_texts_that_begin_alike_are_told_apart() {
    let place = Place::with_indexes(&["t"]);
    let long = |end: &str| format!("{}{end}", "x".repeat(300));
    for (id, end) in [("a", "1"), ("b", "2"), ("c", "2"), ("d", "")] {
        place.set(id, json!({ "t": long(end) })).await;
    }
    assert_eq!(place.found(&format!("t = '{}'", long("2"))).await, ["b", "c"]);
    assert_eq!(place.found(&format!("t = '{}' limit 1", long("2"))).await, ["b"]);
    assert_eq!(place.found(&format!("t < '{}'", long("2"))).await, ["a", "d"]);
    assert_eq!(place.found(&format!("t starts with '{}'", long(""))).await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn a_field_without_an_index_is_named_with_what_to_write() {
    let place = Place::with_indexes(&["n"]);
    place.set("a", json!({ "n": 1, "m": 1 })).await;
    for query in ["m = 1", "n = 1 or m = 1", "order by m"] {
        let refused = place.find(query).await.expect_err(query).to_string();
        assert_eq!(refused, "no index on thing.m; declare it: [osis.index] thing = [\"m\"]");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_and_a_page_of_it_is_not() {
    let place = Place::with_indexes(&[]);
    let text = "x".repeat(9_000_000);
    for id in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        place.set(id, json!({ "t": text })).await;
    }
    let refused = place.find("").await.expect_err("72 MB").to_string();
    assert!(refused.contains("larger than 64MiB together"), "{refused}");
    assert_eq!(place.found("limit 7").await.len(), 7);
}
