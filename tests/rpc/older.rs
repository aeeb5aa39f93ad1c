//! The names and parameters of the older supervisor.

use hero::rpc::{Scope, code};
use serde_json::{Value, json};

use super::{Api, caller};
use crate::support::Monitor;

#[test]
fn job_is_created_started_and_asked_for_its_output() {
    let api = Api::start(&["osis-default-1"]);
    let job = json!({ "id": "a", "script": "40 + 2", "script_type": "osis" });
    assert_eq!(api.call("create_job", json!({ "job": job })), "a");
    assert_eq!(api.call("get_job_status", json!({ "job_id": "a" })), "created");
    assert_eq!(api.call("get_job_output", json!(["a"])), Value::Null);
    assert_eq!(api.call("start_job", json!({ "job_id": "a" })), json!({ "success": true }));
    api.call("job.wait", json!({ "id": "a" }));
    assert_eq!(api.call("get_job_status", json!(["a"])), "finished");
    assert_eq!(api.call("get_job_output", json!({ "job_id": "a" })), "42");
    assert_eq!(api.call("get_job_result", json!(["a"])), json!({ "success": "42" }));
    assert_eq!(api.call("list_jobs", Value::Null), json!(["a"]));
    assert_eq!(api.call("delete_job", json!(["a"])), json!({ "success": true }));
    let (code, _) = api.fails(&super::admin(), "get_job_status", json!(["a"]));
    assert_eq!(code, code::NOT_FOUND);
}

#[test]
fn job_is_run_and_its_result_awaited_by_name_and_by_position() {
    let api = Api::start(&["osis-default-1"]);
    assert_eq!(api.call("play", json!(["1 + 1"])), json!({ "output": "2" }));
    let by_script = json!({ "script": "2 + 1", "script_type": "osis", "prerequisites": [] });
    assert_eq!(api.call("run_job", by_script), json!({ "success": "3" }));
    assert_eq!(api.call("run_job", json!(["2 + 2", "osis"])), json!({ "success": "4" }));
    let job = json!({ "script": "2 + 3", "script_type": "osis" });
    assert_eq!(api.call("run_job_and_await_result", json!([job])), "5");
    let wrong = json!({ "script": "throw \"no luck\"", "script_type": "osis" });
    let error = api.call("run_job", json!({ "job": wrong }))["error"].to_string();
    assert!(error.contains("no luck"), "{error}");
    let (code, error) = api.fails(&super::admin(), "play", json!(["throw \"no luck\""]));
    assert!(code == code::JOB_FAILED && error.message.contains("no luck"), "{error}");
}

#[test]
fn logs_are_one_text_and_jobs_are_stopped_and_cleared() {
    let api = Api::start(&["osis-default-1"]);
    api.call("play", json!(["print(\"one\"); print(\"two\"); 0"]));
    let ids = api.call("list_jobs", json!({ "limit": 5 }));
    assert_eq!(api.call("get_job_logs", json!([ids[0]])), "one\ntwo");
    api.call("create_job", json!([{ "id": "b", "script": "1", "script_type": "osis" }]));
    assert_eq!(api.call("get_job_logs", json!(["b"])), Value::Null);
    assert_eq!(api.call("stop_job", json!(["b"])), json!({ "success": true }));
    assert_eq!(api.call("get_job_status", json!(["b"])), "error");
    let operator = caller("ann", &[Scope::Read, Scope::Operate]);
    assert_eq!(api.fails(&operator, "clear_all_jobs", json!([])).0, code::NOT_PERMITTED);
    let (code, error) = api.fails(&super::admin(), "clear_all_jobs", json!([]));
    assert!(code == code::INVALID_PARAMS && error.message.contains("yes = true"), "{error}");
    assert_eq!(api.call("clear_all_jobs", json!([true])), json!({ "success": true }));
    assert_eq!(api.call("list_jobs", json!([])), json!([]));
}

#[test]
fn every_method_that_waits_submits_a_job_that_replies() {
    let api = Api::start(&["osis-default-1"]);
    let job = json!({ "script": "1", "script_type": "osis" });
    let mut monitor = Monitor::of(&api.redis);
    for (method, params) in [
        ("job.run", json!({ "job": job })),
        ("run_job", json!({ "script": "1", "script_type": "osis" })),
        ("run_job_and_await_result", json!([job])),
        ("play", json!(["1"])),
    ] {
        api.call(method, params);
        let commands = monitor.commands();
        assert!(commands.iter().any(|command| command.starts_with("\"BLPOP\"")), "{method}");
        let said: Vec<_> = commands.iter().filter(|one| one.contains("\"reply\"")).collect();
        assert!(said.is_empty(), "{method}: {said:?}");
    }
}
