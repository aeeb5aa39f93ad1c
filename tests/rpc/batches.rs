//! Batches that come in several calls, files of their jobs, and jobs that no actor claims.

use hero::rpc::{Scope, code};
use serde_json::{Value, json};

use super::rights::osis;
use super::{Api, admin, caller};
use crate::support::wait_until;

fn job(id: &str) -> Value {
    osis(id, "1", json!({}))
}

#[test]
fn batch_takes_jobs_in_several_calls_of_the_caller_that_opened_it_alone() {
    let api = Api::start(&["osis-default-1"]);
    let head = json!({ "id": "b", "name": "nightly", "on_end": job("end"), "more": true });
    let first = [json!({ "jobs": [job("a")] }), head.clone()];
    let merged = |parts: &[Value]| {
        let members = parts.iter().flat_map(|part| part.as_object().expect("an object").clone());
        Value::Object(members.collect())
    };
    let opened = api.call("batch.submit", merged(&first));
    assert_eq!((&opened["id"], &opened["ids"]), (&json!("b"), &json!(["a"])));
    api.call("job.wait", json!(["a"]));
    let next = |id: &str, opening: &Value, more: bool| json!({ "id": "b", "opening": opening, "jobs": [job(id)], "more": more });
    let opening = &opened["opening"];
    // With what the opener knows, and as a caller that may change all jobs.
    let other = caller("other", &[Scope::Submit, Scope::Read, Scope::Operate]);
    for (who, opening) in [(&other, opening), (&admin(), &json!("")), (&admin(), &json!("guess"))] {
        let (code, error) = api.fails(who, "batch.submit", next("strange", opening, false));
        assert_eq!(code, code::NOT_FOUND, "{error}");
    }
    let (code, error) = api.fails(&admin(), "batch.submit", merged(&first));
    assert_eq!(code, code::CONFLICT, "{error}");
    let again = api.call("batch.submit", next("a", opening, true));
    assert_eq!((&again["ids"], &again["refused"][0]["line"]), (&json!([]), &json!(1)), "{again}");
    let added = api.call("batch.submit", next("c", opening, true));
    assert_eq!(added["opening"], *opening);
    assert_eq!(api.call("graph.get", json!(["b"]))["graph"]["jobs"], 2);
    api.call("job.wait", json!(["c"]));
    assert!(api.redis.all("JOB").len() == 2, "its callback waits for the last call");
    let last = json!({ "id": "b", "opening": opening, "jobs": [] });
    let closed = api.call("batch.submit", last.clone());
    assert_eq!((&closed["id"], closed.get("opening")), (&json!("b"), None));
    wait_until("the callback has started", || api.redis.all("JOB").len() == 3);
    assert_eq!(api.fails(&admin(), "batch.submit", last).0, code::NOT_FOUND, "it is closed");
    assert_eq!(api.fails(&admin(), "job.get", json!(["strange"])).0, code::NOT_FOUND);
    let whole = json!({ "jobs": [job("w")], "all_or_none": true, "more": true });
    assert_eq!(api.fails(&admin(), "batch.submit", whole).0, code::INVALID_PARAMS);
}

#[test]
fn jobs_of_batches_and_graphs_get_files_and_unserved_ones_are_named() {
    let api = Api::start(&["bash-default-1"]);
    let bash = |id: &str, more: Value| {
        let mut of = osis(id, "cat", more);
        of["script_type"] = "bash".into();
        of
    };
    for (id, all_or_none) in [("each", false), ("whole", true)] {
        let jobs = json!([
            bash(&format!("io-{id}"), json!({ "group": "io" })),
            bash(id, json!({ "inputs": { "in.txt": "Z2l2ZW4=" } })),
        ]);
        let done = api.call("batch.submit", json!({ "jobs": jobs, "all_or_none": all_or_none }));
        assert_eq!((&done["refused"], &done["unserved"][0]["jobs"]), (&json!([]), &json!(1)));
        let reason = done["unserved"][0]["reason"].to_string();
        assert!(reason.contains("no live actor claims jobs of type:bash:group:io"), "{reason}");
        assert_eq!(api.call("job.files", json!([id]))["files"][0]["name"], "in.txt");
    }
    let node = json!({ "name": "n", "job": bash("node", json!({})), "stdin": "Z2l2ZW4=" });
    let done = api.call("graph.submit", json!({ "jobs": [node] }));
    assert_eq!(done["unserved"], json!([]));
    assert_eq!(api.call("job.files", json!(["node"]))["files"][0]["kind"], "stdin");
    let bad = json!({ "name": "n", "job": job("bad"), "inputs": { "a": "?" } });
    let (_, error) = api.fails(&admin(), "graph.submit", json!({ "jobs": [bad] }));
    assert!(error.message.starts_with("n: `inputs`: no Base64"), "{error}");
    let mut wrong = job("wrong");
    wrong["stdin"] = "?".into();
    let done = api.call("batch.submit", json!({ "jobs": [wrong, job("right")] }));
    assert_eq!((&done["ids"], &done["refused"][0]["line"]), (&json!(["right"]), &json!(1)));
}
