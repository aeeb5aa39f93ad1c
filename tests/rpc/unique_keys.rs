//! Unique keys among callers: a key belongs to a caller and context, unless the configuration shares it.

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Value, json};

use super::{Api, admin, caller, words};
use crate::support::keys;

fn job(key: &str, more: Value) -> Value {
    let mut job = json!({ "script": "\"hush\"", "script_type": "osis", "unique_key": key });
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    job
}

fn submitter(name: &str) -> Caller {
    caller(name, &[Scope::Submit])
}

#[test]
fn key_of_another_caller_is_neither_read_nor_replaced_nor_taken_first() {
    let api = Api::start(&["osis-default-1"]);
    let (ann, bob) = (submitter("ann"), submitter("bob"));
    let later = json!({ "run_at": "2999-01-01T00:00:00Z" });
    let ids = [&ann, &bob, &admin()].map(|who| {
        let done = api.call_as(who, "job.submit", json!([job("deploy", later.clone())]));
        let done = done.expect("a key of its own");
        assert_eq!(done["created"], true, "{done}");
        done["id"].as_str().expect("an id").to_owned()
    });
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    // Each finds its own again.
    for (who, id) in [&ann, &bob, &admin()].into_iter().zip(&ids) {
        let again =
            api.call_as(who, "job.submit", json!([job("deploy", json!({}))])).expect("its own");
        assert_eq!((&again["id"], &again["created"]), (&json!(id), &json!(false)));
    }
    let replacing = json!({ "on_duplicate": "replace", "run_at": "2999-01-01T00:00:00Z" });
    api.call_as(&bob, "job.submit", json!([job("deploy", replacing)])).expect("its own");
    let states: Vec<Value> =
        ids.iter().map(|id| api.call("job.get", json!([id]))["status"].clone()).collect();
    assert_eq!(states, ["scheduled", "error", "scheduled"]);
    // So do batches, graphs, copies of content and the older names.
    let kept = job("kept", json!({ "unique_for": 3600 }));
    assert_eq!(api.call("job.run", json!([kept]))["status"], "finished");
    let own = job("kept", json!({ "script": "\"mine\"" }));
    let ran = api.call_as(&bob, "run_job", json!([own])).expect("a job of its own");
    assert_eq!(ran["success"], "mine");
    let batch = api.call_as(&ann, "batch.submit", json!([[own], true])).expect("a batch");
    assert_eq!(batch["ids"].as_array().map(Vec::len), Some(1), "{batch}");
    let by_script =
        json!({ "script": "3", "script_type": "osis", "unique_by": "script", "unique_for": 3600 });
    let first = api.call("job.run", json!([by_script]))["id"].clone();
    let other = api.call_as(&bob, "job.run", json!([by_script])).expect("its own")["id"].clone();
    assert_ne!(first, other);
}

#[test]
fn key_belongs_to_a_context_and_outlives_a_retry() {
    let api = Api::start(&["osis-default-1"]);
    let bounds = Bounds { contexts: words(&["a", "b"]), ..Bounds::default() };
    let ann = Caller { bounds, ..caller("ann", &[Scope::Read, Scope::Submit, Scope::Operate]) };
    let run = |context: &str| {
        let job = job("k", json!({ "context_id": context, "unique_for": 3600 }));
        api.call_as(&ann, "job.run", json!([job])).expect("a job")["id"].clone()
    };
    let (one, two) = (run("a"), run("b"));
    assert_ne!(one, two);
    assert_eq!(run("a"), one);
    api.call_as(&ann, "job.retry", json!([one])).expect("its own");
    api.call_as(&ann, "job.wait", json!([one])).expect("its own");
    assert_eq!(run("a"), one);
    assert_eq!(api.call("job.get", json!([one]))["unique_scope"], "ann/a");
    api.call_as(&ann, "job.delete", json!([one])).expect("its own");
    assert_ne!(run("a"), one);
}

#[test]
fn shared_key_is_taken_without_its_content() {
    let api =
        Api::with(&["osis-default-1"], |hero| hero.set("api.shared_unique_keys", "[\"deploy-*\"]"));
    let (ann, bob) = (submitter("ann"), submitter("bob"));
    let held = job("deploy-1", json!({ "unique_for": 3600 }));
    let first = api.call_as(&ann, "job.run", json!([held])).expect("a job");
    assert_eq!(first["output"], "hush");
    for (method, params) in [
        ("job.submit", json!([held])),
        ("job.run", json!([held])),
        ("job.create", json!([held])),
        ("run_job", json!([held])),
        ("job.submit", json!([job("deploy-1", json!({ "on_duplicate": "reject" }))])),
        ("graph.submit", json!([[{ "name": "a", "job": held }]])),
    ] {
        let (code, error) = api.fails(&bob, method, params);
        assert_eq!(code, code::CONFLICT, "{method}: {error}");
        let said = format!("{error} {:?}", error.data);
        assert!(said.contains("is taken by a job of another caller"), "{method}: {said}");
        assert!(!said.contains(first["id"].as_str().expect("an id")), "{method}: {said}");
    }
    let batch = api.call_as(&bob, "batch.submit", json!([[held]])).expect("a batch");
    assert_eq!((&batch["ids"], &batch["batch_id"]), (&json!([]), &Value::Null), "{batch}");
    let replacing = job("deploy-1", json!({ "on_duplicate": "replace" }));
    assert_eq!(api.fails(&bob, "job.submit", json!([replacing])).0, code::NOT_PERMITTED);
    let again = api.call_as(&ann, "job.submit", json!([held])).expect("its own");
    assert_eq!(again["id"], first["id"]);
    assert_eq!(api.call("job.submit", json!([held]))["id"], first["id"]);
}

#[test]
fn job_of_the_version_before_holds_its_key_for_its_caller() {
    let api = Api::start(&[]);
    api.redis
        .set_job("old", "script 1 script_type osis status scheduled unique_key k caller_id ann");
    api.redis.run(&format!("SET {}k old", keys::prefix("UNIQUE")));
    let submit = |who: &str| {
        let who = submitter(who);
        api.call_as(&who, "job.submit", json!([job("k", json!({}))])).expect("a job")["id"].clone()
    };
    assert_eq!(submit("ann"), "old");
    assert_ne!(submit("bob"), "old");
    assert_eq!(api.call("job.submit", json!([job("k", json!({}))]))["id"], "old");
    api.call("job.stop", json!(["old"]));
    assert_ne!(submit("ann"), "old");
}

#[test]
fn ids_of_periodic_jobs_are_those_of_a_supervisor() {
    let api = Api::start(&[]);
    let id = "cron-report-20990101T000000Z";
    for who in [admin(), submitter("ann")] {
        let given = json!({ "id": id, "script": "1", "script_type": "osis" });
        let (code, error) = api.fails(&who, "job.submit", json!([given]));
        assert_eq!(
            (code, &error.data.expect("data")["field"]),
            (code::INVALID_PARAMS, &json!("id"))
        );
    }
    for free in ["cron-report", "cron-report-20990101", "report-20990101T000000Z"] {
        api.call("job.submit", json!([{ "id": free, "script": "1", "script_type": "osis" }]));
    }
}
