//! The API of a system with several shards: the same methods, and all jobs.

use std::collections::BTreeSet;

use hero::rpc::code;
use serde_json::{Value, json};

use super::{Api, admin};

fn osis(key: &str) -> Value {
    json!({ "script": "1", "script_type": "osis", "shard_key": key })
}

#[test]
fn jobs_of_all_shards_are_submitted_read_and_listed() {
    let api = Api::with(&[], |hero| hero.set("redis.shards", "4"));
    let mut ids = BTreeSet::new();
    for number in 0..10 {
        let new = api.call("job.submit", json!({ "job": osis(&number.to_string()) }));
        assert_eq!(new["created"], true, "{new}");
        let id = new["id"].clone();
        let shown = api.call("job.get", json!([id]));
        assert_eq!((&shown["id"], &shown["shard_key"]), (&id, &json!(number.to_string())));
        ids.insert(id.to_string());
    }
    let (mut listed, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = api.call("job.list", json!({ "limit": 3, "cursor": cursor }));
        let jobs = page["jobs"].as_array().cloned().unwrap_or_default();
        listed.extend(jobs.iter().map(|job| job["id"].to_string()));
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed.len(), ids.len(), "{listed:?}");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), ids);
    let batch = json!({ "jobs": [osis("a"), osis("a")], "id": "s2-batch" });
    assert_eq!(api.call("batch.submit", batch)["batch_id"], "s2-batch");
    assert_eq!(api.call("graph.list", Value::Null)["graphs"][0]["id"], "s2-batch");
    let apart = json!({ "job": {
        "script": "1", "script_type": "osis", "prerequisites": ["s1-a", "s2-b"],
    } });
    let (number, error) = api.fails(&admin(), "job.submit", apart);
    assert_eq!(number, code::INVALID_PARAMS, "{error}");
    assert!(error.message.contains("are on different shards"), "{error}");
}

#[test]
fn id_of_a_shard_that_is_not_there_is_a_wrong_parameter() {
    let api = Api::with(&[], |hero| hero.set("redis.shards", "2"));
    let job = json!({ "script": "1", "script_type": "osis", "id": "s5-a" });
    let waits = json!({ "script": "1", "script_type": "osis", "prerequisites": ["s5-a"] });
    for (method, params) in [
        ("job.get", json!(["s5-a"])),
        ("job.submit", json!([job])),
        ("job.submit", json!([waits])),
        ("graph.get", json!(["s5-a"])),
        ("graph.submit", json!({ "jobs": [{ "name": "a", "job": osis("k") }], "id": "s5-a" })),
        ("graph.submit", json!({ "jobs": [{ "name": "a", "job": job }] })),
    ] {
        let (number, error) = api.fails(&admin(), method, params);
        assert_eq!(number, code::INVALID_PARAMS, "{method}: {error}");
        assert!(error.message.contains("s5-a is an id of shard 5"), "{error}");
    }
}
