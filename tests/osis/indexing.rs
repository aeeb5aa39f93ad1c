//! Declared indexes: built online by queries, supervisors and operators, kept complete by writers
//! without the declaration, removed once no supervisor declares them.

use hero::store::{TendedIndex, TendedIndexes};
use serde_json::json;

use super::*;
use crate::support::{Hero, wait_until};

async fn filled(fields: &[&str], objects: usize) -> ObjectStore {
    let osis = ObjectStore::with_indexes(fields);
    for first in (0..objects).step_by(500) {
        let writes = (first..objects.min(first + 500))
            .map(|n| setting(&format!("{n:05}"), json!({ "n": n, "m": n % 10 }), None))
            .collect();
        osis.write(writes).await.expect("written");
    }
    osis
}

fn entries(osis: &ObjectStore, field: &str) -> u64 {
    osis.redis.ask(&format!("ZCARD hero:meta:osis:index:%:thing:{field}"))
}

#[tokio::test]
async fn index_declared_later_is_built_by_the_first_query() {
    let mut osis = filled(&["n"], 1100).await;
    assert_eq!(osis.redis.keys("hero:meta:osis:index:"), ["hero:meta:osis:index:%:thing:n"]);
    osis.config = indexes(&["n", "m"]);
    assert_eq!(osis.found("m = 3").await.len(), 110);
    assert_eq!(entries(&osis, "m"), 1100);
    let state = |osis: &ObjectStore| osis.redis.field("hero:meta:osis:state:%:thing", "m");
    assert_eq!(state(&osis).as_deref(), Some("ready"));
}

#[tokio::test]
async fn interrupted_build_continues_and_writers_keep_it_correct() {
    let mut osis = filled(&["n"], 900).await;
    // The state after a process was killed during the build.
    osis.redis.run("HSET hero:meta:osis:state:%:thing m @00399");
    // A writer without the declaration: before the build position, and after it.
    osis.set("00100", json!({ "n": 1, "m": 77 })).await;
    osis.set("00800", json!({ "n": 1, "m": 77 })).await;
    osis.set("new", json!({ "n": 1, "m": 77 })).await;
    osis.write(vec![deleting("00801", None)]).await.expect("deleted");
    assert_eq!(entries(&osis, "m"), 3, "writers add their entries");
    osis.config = indexes(&["n", "m"]);
    assert_eq!(osis.found("m = 77").await, ["00100", "00800", "new"]);
    assert_eq!(
        entries(&osis, "m"),
        500 + 1 + 1 - 1,
        "objects before the build position count as built"
    );
}

#[tokio::test]
async fn build_with_concurrent_writers_completes_the_index() {
    let osis = filled(&["n"], 3000).await;
    let later = indexes(&["n", "m"]);
    let reindex = async { osis.store.reindex(&osis.context, &thing(), &later).await };
    let write = async {
        for n in (0..3000).step_by(7) {
            osis.set(&format!("{n:05}"), json!({ "n": n, "m": -1 })).await;
            if n % 5 == 0 {
                osis.write(vec![deleting(&format!("{:05}", n + 1), None)]).await.expect("deleted");
            }
        }
    };
    let (built, ()) = tokio::join!(reindex, write);
    let built: Vec<String> = built.expect("built").built.iter().map(ToString::to_string).collect();
    assert_eq!(built, ["m"]);
    let osis = ObjectStore { config: later, ..osis };
    let by_scan = |objects: Vec<Object>| objects.iter().filter(|o| o.body["m"] == -1).count();
    let matching = by_scan(osis.find("").await.expect("all"));
    assert_eq!(osis.found("m = -1").await.len(), matching);
    let all: u64 = osis.redis.ask("HLEN hero:meta:osis:head:%:thing");
    assert_eq!(entries(&osis, "m"), all);
}

#[tokio::test]
async fn reindex_removes_an_index_that_is_no_longer_declared() {
    let mut osis = filled(&["n", "m"], 300).await;
    osis.config = indexes(&["n"]);
    let done = osis.store.reindex(&osis.context, &thing(), &osis.config).await.expect("done");
    assert_eq!((done.built.len(), done.removed.len()), (0, 1));
    assert_eq!(osis.redis.keys("hero:meta:osis:index:"), ["hero:meta:osis:index:%:thing:n"]);
    assert!(osis.find("m = 1").await.is_err());
    // It can be declared again, and contains the later changes.
    osis.set("00011", json!({ "n": 11, "m": 8 })).await;
    osis.config = indexes(&["n", "m"]);
    assert_eq!(osis.found("m = 1").await.len(), 29);
    assert_eq!(entries(&osis, "m"), 300);
}

/// The key with the time since which no supervisor has declared an index.
const UNDECLARED: &str = "hero:meta:osis:undeclared";

async fn tend(osis: &ObjectStore, config: &OsisConfig) -> TendedIndexes {
    let mut all = TendedIndexes::default();
    loop {
        let tended = osis.store.tend_object_indexes(config, all.last.as_ref(), 2).await;
        let tended = tended.expect("tended");
        all.built.extend(tended.built);
        all.removed.extend(tended.removed);
        if tended.last.is_none() {
            return all;
        }
        all.last = tended.last;
    }
}

fn index_of(context: &Context, field: &str) -> TendedIndex {
    let field = field.parse().expect("a legal field");
    TendedIndex { context: context.clone(), object_type: thing(), field }
}

/// Backdates an undeclared index, so that it is due for removal.
fn make_long_undeclared(osis: &ObjectStore, field: &str) {
    let name = format!("thing:{field}");
    let times = osis.redis.field(UNDECLARED, &name).expect("an entry");
    let (_, last) = times.split_once(' ').expect("two times");
    let long_ago = format!("1 {last}");
    osis.redis.ask_with::<u64, _>("HSET", &[UNDECLARED, &name, &long_ago]);
}

#[tokio::test]
async fn tending_builds_a_declared_index_once_in_every_context() {
    let mut osis = filled(&["n"], 300).await;
    let mut contexts = vec![osis.context.clone()];
    for name in ["a", "b: c", "d", "e"] {
        osis.context = name.parse().expect("a context");
        osis.set("x", json!({ "n": 1, "m": 1 })).await;
        contexts.push(osis.context.clone());
    }
    let later = indexes(&["n", "m"]);
    let tended = tend(&osis, &later).await;
    contexts.sort();
    let mut built: Vec<TendedIndex> = tended.built;
    built.sort_by(|a, b| a.context.cmp(&b.context));
    let expected: Vec<TendedIndex> = contexts.iter().map(|c| index_of(c, "m")).collect();
    assert_eq!((built, tended.removed), (expected, Vec::new()));
    osis.context = Context::default();
    assert_eq!(entries(&osis, "m"), 300);
    assert_eq!(tend(&osis, &later).await.built, []);
}

#[tokio::test]
async fn index_is_removed_when_no_supervisor_declared_it_for_long() {
    let osis = filled(&["n", "m"], 300).await;
    let (old, new) = (indexes(&["n", "m"]), indexes(&["n"]));
    assert_eq!(
        tend(&osis, &new).await.removed,
        [],
        "not at once: other supervisors may declare it"
    );
    make_long_undeclared(&osis, "m");
    // Another supervisor still declares it.
    tend(&osis, &old).await;
    assert_eq!(tend(&osis, &new).await.removed, []);
    assert_eq!(osis.redis.keys("hero:meta:osis:index:").len(), 2);
    make_long_undeclared(&osis, "m");
    assert_eq!(tend(&osis, &new).await.removed, [index_of(&osis.context, "m")]);
    assert_eq!(osis.redis.keys("hero:meta:osis:index:"), ["hero:meta:osis:index:%:thing:n"]);
}

#[tokio::test]
async fn concurrent_builds_removals_and_queries_return_correct_results() {
    const ROUNDS: usize = 40;
    let osis = filled(&["n"], 1000).await;
    let later = indexes(&["n", "m"]);
    let (first, second) = (indexes(&["n"]), &later);
    let remove = async {
        for _ in 0..ROUNDS {
            osis.store.reindex(&osis.context, &thing(), &first).await.expect("removed");
        }
    };
    let build = || async {
        for _ in 0..ROUNDS {
            tend(&osis, second).await;
        }
    };
    let find = async {
        let mut answered = 0;
        for _ in 0..4 * ROUNDS {
            let query = Query::parse("m = 3").expect("legal");
            let ask = Ask::Find { object_type: thing(), query, after: None, limit: 10_000 };
            match osis.store.objects(&osis.context, ask, second).await {
                Ok(Answer::Objects(objects)) => {
                    assert_eq!(objects.len(), 100, "a query is correct or an error");
                    answered += 1;
                }
                Err(ObjectError::Building { .. } | ObjectError::TooMuch(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        answered
    };
    let ((), (), (), answered) = tokio::join!(remove, build(), build(), find);
    assert!(answered > 0, "every query failed");
    tend(&osis, second).await;
    assert_eq!(entries(&osis, "m"), 1000, "the index is complete");
}

#[tokio::test]
async fn damaged_object_does_not_block_an_index() {
    let osis = filled(&["n"], 3).await;
    osis.redis.run("HSET hero:meta:osis:body:%:thing 00001 {");
    let later = indexes(&["n", "m"]);
    assert_eq!(tend(&osis, &later).await.built, [index_of(&osis.context, "m")]);
    assert_eq!(entries(&osis, "m"), 2);
}

#[test]
fn supervisor_builds_a_newly_declared_index() {
    let redis = Redis::start();
    let before = Hero::on(&redis).set("osis.index.thing", "[\"n\"]");
    let lines: Vec<String> = (0..700)
        .map(|n| {
            format!("{{\"type\":\"thing\",\"object\":{{\"id\":\"{n}\",\"n\":{n},\"m\":1}}}}\n")
        })
        .collect();
    before.run_with_input(&["osis", "import"], &lines.concat()).code(0);
    let _old = before.supervisor().start();
    assert_eq!(redis.field("hero:meta:osis:state:%:thing", "m"), None);
    let after = Hero::on(&redis).set("osis.index.thing", "[\"n\", \"m\"]");
    let new = after.supervisor().start();
    wait_until("the index is complete", || {
        redis.field("hero:meta:osis:state:%:thing", "m").as_deref() == Some("ready")
    });
    wait_until("the build is logged", || new.err().contains("the index on thing.m is built"));
    assert_eq!(redis.ask::<u64>("ZCARD hero:meta:osis:index:%:thing:m"), 700);
}
