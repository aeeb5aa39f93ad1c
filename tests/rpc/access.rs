//! Scopes and bounds of callers.

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Value, json};

use super::discover::committed;
use super::{Api, caller, words};

fn osis(id: &str, more: Value) -> Value {
    let mut job = json!({ "id": id, "script": "1", "script_type": "osis" });
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    json!({ "job": job })
}

#[test]
fn each_method_refuses_a_caller_without_its_scope() {
    let api = Api::start(&[]);
    let all = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin, Scope::Fleet];
    for method in committed()["methods"].as_array().expect("methods") {
        let name = method["name"].as_str().expect("a name");
        let Some(needed) = method.get("x-scope") else { continue };
        let needed: Scope = serde_json::from_value(needed.clone()).expect("a scope");
        let others: Vec<Scope> = all.into_iter().filter(|scope| *scope != needed).collect();
        let (code, error) = api.fails(&caller("ann", &others), name, Value::Null);
        assert_eq!(code, code::NOT_PERMITTED, "{name}");
        assert_eq!(error.data.expect("data")["scope"], json!(needed), "{name}");
    }
}

#[test]
fn submitter_changes_its_own_jobs_only() {
    let api = Api::start(&[]);
    let scopes = [Scope::Read, Scope::Submit];
    let (ann, bob) = (caller("ann", &scopes), caller("bob", &scopes));
    let operator = caller("op", &[Scope::Submit, Scope::Operate]);
    for id in ["a", "b"] {
        api.call_as(&ann, "job.submit", osis(id, json!({}))).expect("may submit");
    }
    assert_eq!(api.call("job.get", json!(["a"]))["caller_id"], "ann");
    let id = json!({ "id": "a" });
    for method in ["job.stop", "job.retry", "job.delete"] {
        assert_eq!(api.fails(&bob, method, id.clone()).0, code::NOT_PERMITTED, "{method}");
    }
    api.call_as(&ann, "job.stop", id.clone()).expect("its own");
    api.call_as(&ann, "job.retry", id.clone()).expect("its own");
    assert_eq!(api.fails(&ann, "job.start", id.clone()).0, code::CONFLICT);
    api.call_as(&ann, "job.delete", id).expect("its own");
    api.call_as(&operator, "job.stop", json!(["b"])).expect("an operator may");
}

#[test]
fn caller_id_is_the_name_of_the_caller_unless_it_may_name_others() {
    let api = Api::start(&[]);
    let ann = caller("ann", &[Scope::Submit]);
    let other = |id| osis(id, json!({ "caller_id": "web" }));
    let (code, error) = api.fails(&ann, "job.submit", other("a"));
    assert_eq!(
        (code, &error.data.expect("data")["field"]),
        (code::NOT_PERMITTED, &json!("caller_id"))
    );
    let bounds = Bounds { callers: words(&["web"]), ..Bounds::default() };
    let allowed = Caller { bounds, ..ann.clone() };
    api.call_as(&allowed, "job.submit", other("b")).expect("its bounds name it");
    let foreign = osis("c", json!({ "caller_id": "root" }));
    assert_eq!(api.fails(&allowed, "job.submit", foreign).0, code::NOT_PERMITTED);
    let operator = caller("op", &[Scope::Submit, Scope::Operate]);
    api.call_as(&operator, "job.submit", other("d")).expect("an operator may");
    for id in ["b", "d"] {
        assert_eq!(api.call("job.get", json!([id]))["caller_id"], "web");
    }
}

#[test]
fn bounds_hold_for_new_jobs_and_hide_others() {
    let api = Api::start(&[]);
    let bounds = Bounds {
        types: words(&["osis"]),
        groups: words(&["io"]),
        contexts: words(&["work"]),
        ..Bounds::default()
    };
    let scopes = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];
    let ann = Caller { bounds, ..caller("ann", &scopes) };
    api.call("job.submit", osis("outside", json!({ "context_id": "home" })));
    // An omitted setting becomes the only allowed value.
    api.call_as(&ann, "job.submit", osis("inside", json!({}))).expect("within its bounds");
    let job = api.call_as(&ann, "job.get", json!(["inside"])).expect("its own");
    assert_eq!((&job["group"], &job["context_id"]), (&json!("io"), &json!("work")));
    for beyond in [
        json!({ "script_type": "python" }),
        json!({ "group": "other" }),
        json!({ "context_id": "home" }),
        json!({ "instance": 1 }),
        json!({ "fallback": "type" }),
        json!({ "where": "group = io" }),
    ] {
        let (code, error) = api.fails(&ann, "job.submit", osis("x", beyond.clone()));
        assert_eq!(code, code::NOT_PERMITTED, "{beyond}: {error}");
        assert!(error.data.expect("data")["bound"].is_string(), "{beyond}");
    }
    let waits = osis("x", json!({ "prerequisites": ["outside"] }));
    assert_eq!(api.fails(&ann, "job.submit", waits).0, code::NOT_FOUND);
    for method in ["job.get", "job.wait", "job.output", "job.log", "job.stop", "job.delete"] {
        assert_eq!(api.fails(&ann, method, json!(["outside"])).0, code::NOT_FOUND, "{method}");
    }
    let listed = api.call_as(&ann, "job.list", Value::Null).expect("a list");
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1), "{listed}");
    for (method, params) in [
        ("job.clear", json!([true])),
        ("object.list", json!({ "type": "person", "context": "home" })),
    ] {
        assert_eq!(api.fails(&ann, method, params).0, code::NOT_PERMITTED, "{method}");
    }
    let batch = json!({ "jobs": [osis("y", json!({}))["job"], osis("z", json!({ "group": "no" }))["job"]] });
    let batch = api.call_as(&ann, "batch.submit", batch).expect("a part of it");
    assert_eq!((&batch["ids"], &batch["refused"][0]["line"]), (&json!(["y"]), &json!(2)));
}

#[test]
fn variables_of_others_are_masked_for_readers() {
    let api = Api::start(&[]);
    let ann = caller("ann", &[Scope::Read, Scope::Submit]);
    let secret = osis("a", json!({ "env_vars": { "KEY": "secret" } }));
    api.call_as(&ann, "job.submit", secret).expect("may submit");
    let seen = |caller| {
        let job = api.call_as(&caller, "job.get", json!(["a"])).expect("may read");
        job["env_vars"]["KEY"].clone()
    };
    assert_eq!(seen(caller("eve", &[Scope::Read])), "***");
    assert_eq!(seen(caller("bob", &[Scope::Read, Scope::Submit])), "***");
    assert_eq!(seen(ann), "secret");
    assert_eq!(seen(caller("op", &[Scope::Read, Scope::Operate])), "secret");
}
