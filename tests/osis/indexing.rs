//! Declared indexes: built online, kept whole by writers that know less, removed on demand.

use serde_json::json;

use super::*;

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
