//! The `OpenRPC` document of the methods.

use std::fs;

use hero::rpc::Scope;
use serde_json::{Value, json};

use super::{Api, caller};
use crate::support::{Hero, fault_by_schema, needs_json_schema};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openrpc.json");
const PATHS_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json");
const META: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rpc/open-rpc.schema.json");

pub(super) fn committed() -> Value {
    let text = fs::read_to_string(FILE).expect("docs/openrpc.json");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_committed_document_is_that_of_the_methods() {
    let api = Api::start(&[]);
    // Any caller may ask for it.
    let asked = api.call_as(&caller("ann", &[Scope::Submit]), "rpc.discover", Value::Null);
    let is_same = committed() == asked.expect("any caller may");
    assert!(is_same, "docs/openrpc.json is stale: run make docs");
}

#[test]
fn the_committed_document_of_the_paths_is_that_of_the_program() {
    let api = Api::start(&[]);
    let served = api.site.tcp().get("/openapi.json", &[]).json();
    let text = fs::read_to_string(PATHS_FILE).expect("docs/openapi.json");
    let committed: Value = serde_json::from_str(&text).expect("JSON");
    assert!(committed == served, "docs/openapi.json is stale: run make docs");
    for (place, verbs) in served["paths"].as_object().expect("paths") {
        for (verb, operation) in verbs.as_object().expect("verbs") {
            assert!(operation["summary"].is_string(), "{verb} {place}");
            assert!(operation["responses"]["404"].is_object(), "{verb} {place}");
        }
    }
}

#[test]
fn each_method_has_a_summary_and_described_parameters() {
    for method in committed()["methods"].as_array().expect("methods") {
        let name = &method["name"];
        assert!(method["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
        for param in method["params"].as_array().expect("parameters") {
            assert!(param["description"].is_string(), "{name}: {param}");
        }
    }
}

#[test]
fn each_method_has_errors_and_each_title_is_of_one_schema() {
    fn titles(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("title").and_then(Value::as_str).map(str::to_owned));
                assert!(members.get("oneOf").is_none(), "no enumeration: {value}");
                members.values().for_each(|value| titles(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| titles(value, found)),
            _ => {}
        }
    }
    let document = committed();
    let mut found = Vec::new();
    titles(&document["components"]["schemas"], &mut found);
    for method in document["methods"].as_array().expect("methods") {
        let errors = method["errors"].as_array().expect("errors");
        assert!(!errors.is_empty(), "{}", method["name"]);
        titles(method, &mut found);
    }
    assert!(found.len() > 500 && found.contains(&"JobStatus".to_owned()));
    let all = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), all, "generated code would declare a type twice");
}

#[test]
fn each_schema_that_is_named_exists() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let (document, mut found) = (committed(), Vec::new());
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let place = reference.strip_prefix('#').expect("a reference within the document");
        assert!(document.pointer(place).is_some(), "{reference}");
    }
}

#[test]
fn the_document_follows_the_meta_schema_of_openrpc() {
    if !needs_json_schema() {
        return;
    }
    assert_eq!(fault_by_schema(META, &committed()), None);
    // The validator finds mistakes.
    let wrong = json!({ "openrpc": "1.3.2", "methods": 7 });
    assert!(fault_by_schema(META, &wrong).is_some());
}

#[test]
fn each_example_has_legal_parameters() {
    let set = |hero: Hero| {
        let hero = hero.set("osis.index.person", "[\"age\", \"name\"]");
        hero.add("[notify.ops]\njournal = true\n")
    };
    let api = Api::with(&[], set);
    for method in committed()["methods"].as_array().expect("methods") {
        let name = method["name"].as_str().expect("a name");
        let given = method["examples"][0]["params"].as_array().expect("an example");
        let pair = |of: &Value| Some((of["name"].as_str()?.to_owned(), of["value"].clone()));
        let params: serde_json::Map<String, Value> = given.iter().filter_map(pair).collect();
        let required = method["params"].as_array().expect("parameters").iter();
        let mut required = required.filter(|param| param["required"] == true);
        assert!(
            required.all(|param| params.contains_key(param["name"].as_str().expect("a name"))),
            "{name}"
        );
        // Nothing runs: a wait ends at once.
        let mut params = Value::Object(params);
        if !params["wait"].is_null() {
            params["wait"] = json!(0);
        }
        // No actor serves the queue.
        if !params["queue"].is_null() {
            params["force"] = json!(true);
        }
        if ["job.clear", "clear_all_jobs", "run_job", "run_job_and_await_result", "actor.ping"]
            .contains(&name)
        {
            continue;
        }
        if let Err(error) = api.call_as(&super::admin(), name, params) {
            assert!(error.code != hero::rpc::code::INVALID_PARAMS, "{name}: {error}");
        }
    }
}
