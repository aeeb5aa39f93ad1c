//! Storing objects: versions, batches, limits, contexts.

use serde_json::json;

use super::*;

#[tokio::test]
async fn object_is_returned_unchanged_and_its_version_counts_writes() {
    let osis = ObjectStore::with_indexes(&["name"]);
    let body = json!({ "name": "Ann", "": [1, 1.0, null, { "é\n\"": true }], "big": i64::MIN });
    assert_eq!(osis.set("a", body.clone()).await, Written { version: 1, existed: false });
    assert_eq!(osis.set("a", body.clone()).await, Written { version: 2, existed: true });
    let object = osis.get("a").await.expect("there");
    assert_eq!((object.version, serde_json::Value::from(object.body)), (2, body));
    assert!(object.created_ms > 1_600_000_000_000 && object.created_ms <= object.modified_ms);
    assert_eq!(osis.get("b").await, None);
}

#[tokio::test]
async fn stale_version_is_rejected_and_writes_nothing() {
    let osis = ObjectStore::with_indexes(&["n"]);
    osis.set("a", json!({ "n": 1 })).await;
    let two = osis.write(vec![setting("a", json!({ "n": 2 }), Some(1))]).await;
    assert_eq!(two, Ok(vec![Written { version: 2, existed: true }]));
    for (write, expected) in [
        (setting("a", json!({ "n": 3 }), Some(1)), 1),
        (deleting("a", Some(1)), 1),
        (setting("a", json!({}), Some(0)), 0),
    ] {
        let stale = ObjectError::Stale { object_type: thing(), id: id_of("a"), expected, found: 2 };
        assert!(stale.to_string().starts_with("stale version: thing a has version 2"));
        assert_eq!(osis.write(vec![write]).await, Err(stale));
    }
    assert_eq!(osis.found("n = 2").await, ["a"]);
    assert_eq!(osis.found("n != 2").await, [] as [&str; 0]);
}

#[tokio::test]
async fn one_of_two_writers_of_the_same_version_wins() {
    let osis = ObjectStore::with_indexes(&["writer"]);
    osis.set("a", json!({})).await;
    for version in 1..30 {
        let one = osis.write(vec![setting("a", json!({ "writer": 1 }), Some(version))]);
        let two = osis.write(vec![setting("a", json!({ "writer": 2 }), Some(version))]);
        let (one, two) = tokio::join!(one, two);
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
        let winner = if one.is_ok() { 1 } else { 2 };
        assert_eq!(osis.found(&format!("writer = {winner}")).await, ["a"]);
        assert_eq!(osis.found(&format!("writer = {}", 3 - winner)).await, [] as [&str; 0]);
    }
}

#[tokio::test]
async fn batch_is_atomic() {
    let osis = ObjectStore::with_indexes(&["n"]);
    osis.set("a", json!({ "n": 1 })).await;
    let stale = vec![
        setting("a", json!({ "n": 2 }), Some(1)),
        setting("b", json!({ "n": 2 }), None),
        deleting("a", Some(1)),
    ];
    assert!(matches!(osis.write(stale).await, Err(ObjectError::Stale { found: 2, .. })));
    assert_eq!((osis.found("n = 2").await, osis.get("b").await), (Vec::new(), None));
    let valid = vec![
        setting("a", json!({ "n": 2 }), Some(1)),
        setting("b", json!({ "n": 3 }), Some(0)),
        setting("b", json!({ "n": 4 }), Some(1)),
        deleting("a", Some(2)),
    ];
    let written = osis.write(valid).await.expect("written");
    assert_eq!(written.iter().map(|w| w.version).collect::<Vec<_>>(), [1 + 1, 1, 2, 0]);
    assert_eq!(osis.found("n > 0").await, ["b"]);
}

#[tokio::test]
async fn batch_that_empties_and_refills_a_type_keeps_its_indexes() {
    let osis = ObjectStore::with_indexes(&["n"]);
    osis.set("a", json!({ "n": 1 })).await;
    let writes = vec![deleting("a", None), setting("b", json!({ "n": 2 }), None)];
    osis.write(writes).await.expect("written");
    osis.set("b", json!({ "n": 3 })).await;
    assert_eq!((osis.found("n = 3").await, osis.found("n < 3").await), (vec!["b".into()], vec![]));
}

#[tokio::test]
async fn deleting_the_last_object_removes_every_key() {
    let osis = ObjectStore::with_indexes(&["n", "s"]);
    for id in ["a", "b"] {
        osis.set(id, json!({ "n": 1, "s": "x" })).await;
    }
    let there = |written: Vec<Written>| written.iter().map(|w| w.existed).collect::<Vec<_>>();
    let gone = osis.write(vec![deleting("a", None), deleting("a", None), deleting("b", None)]);
    assert_eq!(there(gone.await.expect("deleted")), [true, false, true]);
    assert_eq!(osis.redis.keys("hero:"), [] as [&str; 0]);
}

#[tokio::test]
async fn contexts_with_special_names_are_separate() {
    let mut osis = ObjectStore::with_indexes(&["n"]);
    let contexts = ["", "%", "a", "a:b", "a:thing", "{x}", "*", "é\n", "a%3ab"];
    for (number, context) in contexts.iter().enumerate() {
        osis.context = context.parse().expect("short enough");
        osis.set("same", json!({ "n": number })).await;
    }
    for (number, context) in contexts.iter().enumerate() {
        osis.context = context.parse().expect("short enough");
        assert_eq!(osis.found(&format!("n = {number}")).await, ["same"], "{context}");
        assert_eq!(osis.found("").await, ["same"], "{context}");
        let counts = osis.store.object_counts(&osis.context).await.expect("counted");
        assert_eq!(counts, [(thing(), 1)].into(), "{context}");
    }
    let mut listed: Vec<String> = Vec::new();
    loop {
        let after = listed.last().map(|last| last.parse().expect("legal"));
        let page = osis.store.object_contexts(after.as_ref(), 2).await.expect("listed");
        if page.is_empty() {
            break;
        }
        listed.extend(page.iter().map(Context::text));
    }
    listed.sort();
    let mut all = contexts.map(str::to_owned);
    all.sort();
    assert_eq!(listed, all);
}

#[tokio::test]
async fn special_ids_are_listed_in_pages() {
    let osis = ObjectStore::with_indexes(&["n"]);
    let ids = ["*", "a b", "a:b", "é", "{x}", "-", "[", "(", "%", "0"];
    for id in ids {
        osis.set(id, json!({ "n": 1 })).await;
    }
    let mut sorted = ids.map(str::to_owned);
    sorted.sort();
    assert_eq!(osis.found("n = 1").await, sorted);
    assert_eq!(
        osis.found("n = 1 order by n desc").await,
        sorted.iter().rev().cloned().collect::<Vec<_>>()
    );
    let mut listed: Vec<ObjectId> = Vec::new();
    loop {
        let after = listed.last().cloned();
        let page = osis.ask(Ask::Ids { object_type: thing(), after, limit: 3 }).await;
        match page.expect("listed") {
            Answer::Ids(page) if page.is_empty() => break,
            Answer::Ids(page) => listed.extend(page),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(listed.iter().map(ToString::to_string).collect::<Vec<_>>(), sorted);
}

#[tokio::test]
async fn size_and_count_limits_are_named() {
    let mut osis = ObjectStore::with_indexes(&[]);
    osis.config.object_size_max = 10_000_010;
    osis.config.objects_max = 2;
    let text = "x".repeat(10_000_000);
    osis.set("large", json!({ "t": text })).await;
    assert_eq!(osis.get("large").await.expect("there").body["t"], text);
    let larger = setting("larger", json!({ "t": text, "more": 1 }), None);
    let rejected = osis.write(vec![larger]).await.expect_err("too large").to_string();
    assert!(rejected.contains("osis.object_size_max"), "{rejected}");
    osis.set("b", json!({})).await;
    let rejected = osis.write(vec![setting("c", json!({}), None)]).await.expect_err("full");
    assert!(rejected.to_string().contains("osis.objects_max"), "{rejected}");
    // Stored objects can still be changed and replaced.
    osis.set("b", json!({ "n": 1 })).await;
    osis.write(vec![deleting("b", None), setting("c", json!({}), None)]).await.expect("as many");
}

#[tokio::test]
async fn object_that_another_program_damaged_is_rejected() {
    let osis = ObjectStore::with_indexes(&["n"]);
    osis.set("a", json!({ "n": 1 })).await;
    osis.redis.run("HSET hero:meta:osis:body:%:thing a {");
    let rejected = osis.ask(Ask::Get(thing(), id_of("a"))).await.expect_err("no object");
    assert_eq!(rejected.to_string(), "cannot read thing a: its value in redis is no object");
}
