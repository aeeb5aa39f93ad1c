//! Declared indexes: built online by queries, supervisors and operators, kept whole by writers that
//! know less, removed when nobody declares them.

use hero::store::{TendedIndex, TendedIndexes};
use serde_json::json;

use super::*;
use crate::support::{Hero, wait_until};

async fn filled(fields: &[&str], objects: usize) -> Place {
    let place = Place::with_indexes(fields);
    for first in (0..objects).step_by(500) {
        let writes = (first..objects.min(first + 500))
            .map(|n| setting(&format!("{n:05}"), json!({ "n": n, "m": n % 10 }), None))
            .collect();
        place.write(writes).await.expect("written");
    }
    place
}

fn entries(place: &Place, field: &str) -> u64 {
    place.redis.ask(&format!("ZCARD hero:meta:osis:index:%:thing:{field}"))
}

#[tokio::test]
async fn an_index_that_is_declared_later_is_built_by_the_first_query() {
    let mut place = filled(&["n"], 1100).await;
    assert_eq!(place.redis.keys("hero:meta:osis:index:"), ["hero:meta:osis:index:%:thing:n"]);
    place.config = indexes(&["n", "m"]);
    assert_eq!(place.found("m = 3").await.len(), 110);
    assert_eq!(entries(&place, "m"), 1100);
    let state = |place: &Place| place.redis.field("hero:meta:osis:state:%:thing", "m");
    assert_eq!(state(&place).as_deref(), Some("ready"));
}

#[tokio::test]
async fn a_build_goes_on_where_another_left_off_and_writers_keep_it_right() {
    let mut place = filled(&["n"], 900).await;
    // As a process leaves it that was ended in the middle.
    place.redis.run("HSET hero:meta:osis:state:%:thing m @00399");
    // A writer that has not heard of the index: before the middle, and behind it.
    place.set("00100", json!({ "n": 1, "m": 77 })).await;
    place.set("00800", json!({ "n": 1, "m": 77 })).await;
    place.set("new", json!({ "n": 1, "m": 77 })).await;
    place.write(vec![deleting("00801", None)]).await.expect("deleted");
    assert_eq!(entries(&place, "m"), 3, "writers bring what they write");
    place.config = indexes(&["n", "m"]);
    assert_eq!(place.found("m = 77").await, ["00100", "00800", "new"]);
    assert_eq!(
        entries(&place, "m"),
        500 + 1 + 1 - 1,
        "what stood before the middle is taken for built"
    );
}

#[tokio::test]
async fn a_build_and_writers_at_once_leave_a_whole_index() {
    let place = filled(&["n"], 3000).await;
    let later = indexes(&["n", "m"]);
    let reindex = async { place.store.reindex(&place.context, &thing(), &later).await };
    let write = async {
        for n in (0..3000).step_by(7) {
            place.set(&format!("{n:05}"), json!({ "n": n, "m": -1 })).await;
            if n % 5 == 0 {
                place.write(vec![deleting(&format!("{:05}", n + 1), None)]).await.expect("deleted");
            }
        }
    };
    let (built, ()) = tokio::join!(reindex, write);
    let built: Vec<String> = built.expect("built").built.iter().map(ToString::to_string).collect();
    assert_eq!(built, ["m"]);
    let place = Place { config: later, ..place };
    let by_scan = |objects: Vec<Object>| objects.iter().filter(|o| o.body["m"] == -1).count();
    let meant = by_scan(place.find("").await.expect("all"));
    assert_eq!(place.found("m = -1").await.len(), meant);
    let all: u64 = place.redis.ask("HLEN hero:meta:osis:head:%:thing");
    assert_eq!(entries(&place, "m"), all);
}

#[tokio::test]
async fn reindexing_removes_what_is_declared_no_more() {
    let mut place = filled(&["n", "m"], 300).await;
    place.config = indexes(&["n"]);
    let done = place.store.reindex(&place.context, &thing(), &place.config).await.expect("done");
    assert_eq!((done.built.len(), done.removed.len()), (0, 1));
    assert_eq!(place.redis.keys("hero:meta:osis:index:"), ["hero:meta:osis:index:%:thing:n"]);
    assert!(place.find("m = 1").await.is_err());
    // And it can come back, with what changed meanwhile.
    place.set("00011", json!({ "n": 11, "m": 8 })).await;
    place.config = indexes(&["n", "m"]);
    assert_eq!(place.found("m = 1").await.len(), 29);
    assert_eq!(entries(&place, "m"), 300);
}

/// Where the supervisors keep in mind since when an index has been declared by none of them.
const UNDECLARED: &str = "hero:meta:osis:undeclared";

async fn tend(place: &Place, config: &OsisConfig) -> TendedIndexes {
    let mut all = TendedIndexes::default();
    loop {
        let tended = place.store.tend_object_indexes(config, all.last.as_ref(), 2).await;
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

/// As it is when the time is over.
fn make_long_undeclared(place: &Place, field: &str) {
    let name = format!("thing:{field}");
    let times = place.redis.field(UNDECLARED, &name).expect("it is kept in mind");
    let (_, last) = times.split_once(' ').expect("two times");
    let long_ago = format!("1 {last}");
    place.redis.ask_with::<u64, _>("HSET", &[UNDECLARED, &name, &long_ago]);
}

#[tokio::test]
async fn tending_builds_what_is_declared_in_every_context_and_only_once() {
    let mut place = filled(&["n"], 300).await;
    let mut contexts = vec![place.context.clone()];
    for name in ["a", "b: c", "d", "e"] {
        place.context = name.parse().expect("a context");
        place.set("x", json!({ "n": 1, "m": 1 })).await;
        contexts.push(place.context.clone());
    }
    let later = indexes(&["n", "m"]);
    let tended = tend(&place, &later).await;
    contexts.sort();
    let mut built: Vec<TendedIndex> = tended.built;
    built.sort_by(|a, b| a.context.cmp(&b.context));
    let expected: Vec<TendedIndex> = contexts.iter().map(|c| index_of(c, "m")).collect();
    assert_eq!((built, tended.removed), (expected, Vec::new()));
    place.context = Context::default();
    assert_eq!(entries(&place, "m"), 300);
    assert_eq!(tend(&place, &later).await.built, []);
}

#[tokio::test]
async fn an_index_goes_when_no_supervisor_has_declared_it_for_long() {
    let place = filled(&["n", "m"], 300).await;
    let (old, new) = (indexes(&["n", "m"]), indexes(&["n"]));
    assert_eq!(tend(&place, &new).await.removed, [], "not at once: others may declare it");
    make_long_undeclared(&place, "m");
    // Another supervisor has not heard yet that it is not wanted any more.
    tend(&place, &old).await;
    assert_eq!(tend(&place, &new).await.removed, []);
    assert_eq!(place.redis.keys("hero:meta:osis:index:").len(), 2);
    make_long_undeclared(&place, "m");
    assert_eq!(tend(&place, &new).await.removed, [index_of(&place.context, "m")]);
    assert_eq!(place.redis.keys("hero:meta:osis:index:"), ["hero:meta:osis:index:%:thing:n"]);
}

#[tokio::test]
async fn builders_removers_and_finders_at_once_never_give_a_wrong_answer() {
    const ROUNDS: usize = 40;
    let place = filled(&["n"], 1000).await;
    let later = indexes(&["n", "m"]);
    let (first, second) = (indexes(&["n"]), &later);
    let remove = async {
        for _ in 0..ROUNDS {
            place.store.reindex(&place.context, &thing(), &first).await.expect("removed");
        }
    };
    let build = || async {
        for _ in 0..ROUNDS {
            tend(&place, second).await;
        }
    };
    let find = async {
        let mut answered = 0;
        for _ in 0..4 * ROUNDS {
            let query = Query::parse("m = 3").expect("legal");
            let ask = Ask::Find { object_type: thing(), query, after: None, limit: 10_000 };
            match place.store.objects(&place.context, ask, second).await {
                Ok(Answer::Objects(objects)) => {
                    assert_eq!(objects.len(), 100, "a find is right or an error");
                    answered += 1;
                }
                Err(ObjectError::Building { .. } | ObjectError::TooMuch(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        answered
    };
    let ((), (), (), answered) = tokio::join!(remove, build(), build(), find);
    assert!(answered > 0, "no find came through");
    tend(&place, second).await;
    assert_eq!(entries(&place, "m"), 1000, "what is left is whole");
}

#[tokio::test]
async fn a_damaged_object_holds_up_no_index() {
    let place = filled(&["n"], 3).await;
    place.redis.run("HSET hero:meta:osis:body:%:thing 00001 {");
    let later = indexes(&["n", "m"]);
    assert_eq!(tend(&place, &later).await.built, [index_of(&place.context, "m")]);
    assert_eq!(entries(&place, "m"), 2);
}

#[test]
fn a_supervisor_builds_a_new_index_without_anybody_asking_for_it() {
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
    wait_until("the index is whole", || {
        redis.field("hero:meta:osis:state:%:thing", "m").as_deref() == Some("ready")
    });
    wait_until("it is told", || new.err().contains("the index on thing.m is built"));
    assert_eq!(redis.ask::<u64>("ZCARD hero:meta:osis:index:%:thing:m"), 700);
}
