//! Script types without a sandbox are for the callers that they are named for.

use serde_json::{Value, json};

use super::error;
use crate::support::http::Answer;
use crate::support::{Hero, Redis, Served, request};

/// Calls with a token, or over the socket as root.
fn call(api: &Served, token: Option<&str>, method: &str, params: &Value) -> Answer {
    let request = request(method, params);
    match token {
        None => api.unix().post("/rpc", &[], &request),
        Some(token) => {
            let bearer = format!("Bearer {token}");
            api.tcp().post("/rpc", &[("authorization", &bearer)], &request)
        }
    }
}

/// Every way for a caller to submit a script of the type `sal`.
fn ways() -> [(&'static str, Value); 11] {
    let sal = json!({ "script": "1", "script_type": "sal" });
    let osis = json!({ "script": "1", "script_type": "osis" });
    [
        ("job.submit", json!({ "job": sal })),
        ("job.create", json!({ "job": sal })),
        ("job.run", json!({ "job": sal, "wait": 0 })),
        ("job.clone", json!({ "id": "osis", "changes": { "script_type": "sal" } })),
        ("graph.submit", json!({ "jobs": [{ "name": "a", "job": sal }] })),
        ("graph.submit", json!({ "jobs": [{ "name": "a", "job": osis }], "on_end": sal })),
        ("batch.submit", json!({ "jobs": [sal], "all_or_none": true })),
        ("create_job", json!({ "job": sal })),
        ("run_job", json!({ "script": "1", "script_type": "sal", "timeout": 0 })),
        ("play", json!({ "script": "1", "script_type": "sal", "wait": 0 })),
        ("script.check", json!({ "script": "1", "script_type": "sal" })),
    ]
}

fn is_refused(answer: &Answer) -> bool {
    answer.text().contains("its scripts are not sandboxed")
}

#[test]
fn unsandboxed_type_is_refused_to_every_caller_for_whom_it_is_not_named() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let job = json!({ "id": "osis", "script": "1", "script_type": "osis" });
    api.call("job.submit", &json!({ "job": job }));
    let submitter = api.token(&["ann", "--scope", "read,submit"]);
    let admin = api.token(&["boss", "--scope", "read,submit,operate,admin"]);
    for token in [Some(submitter.as_str()), Some(admin.as_str()), None] {
        for (method, params) in ways() {
            let answer = call(&api, token, method, &params);
            assert!(is_refused(&answer), "{method} {params}: {}", answer.text());
        }
        let info = call(&api, token, "system.info", &json!({})).json()["result"].take();
        assert!(!info["types"].as_array().expect("types").contains(&json!("sal")), "{info}");
        assert_eq!(info["not_sandboxed"], json!([]));
        let unknown = json!({ "job": { "script": "1", "script_type": "ruby" } });
        let unknown = call(&api, token, "job.submit", &unknown);
        assert_eq!(error(&unknown), -32602);
        assert!(!unknown.text().contains("sal"), "{}", unknown.text());
    }
    let cron = json!({ "name": "n", "schedule": "@daily", "job": { "script": "1", "script_type": "sal" } });
    assert!(is_refused(&call(&api, Some(&admin), "cron.add", &cron)));
    let osis = json!({ "name": "n", "schedule": "@daily", "job": { "script": "1", "script_type": "osis" } });
    assert_eq!(call(&api, Some(&admin), "cron.add", &osis).json()["result"]["name"], "n");
    let edit = json!({ "name": "n", "job": { "script_type": "sal" } });
    assert!(is_refused(&call(&api, Some(&admin), "cron.edit", &edit)));
    assert_eq!(redis.all("JOB").len(), 1, "nothing was submitted");
}

#[test]
fn unsandboxed_type_is_for_the_token_and_the_callers_that_name_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.sal.who", "[\"carl\", \"root\"]");
    let api = Served::with(hero, &redis);
    let of_type = api.token(&["ann", "--scope", "read,submit", "--type", "sal"]);
    let named = api.token(&["carl", "--scope", "read,submit"]);
    let other = api.token(&["bob", "--scope", "read,submit"]);
    let submit = json!({ "job": { "script": "1", "script_type": "sal" } });
    for (token, types) in [(Some(of_type.as_str()), 1), (Some(named.as_str()), 7), (None, 7)] {
        let answer = call(&api, token, "job.submit", &submit).json();
        assert!(answer["result"]["id"].is_string(), "{answer}");
        let info = call(&api, token, "system.info", &json!({})).json()["result"].take();
        assert_eq!(info["not_sandboxed"], json!(["sal"]), "{info}");
        assert_eq!(info["types"].as_array().map(Vec::len), Some(types), "{info}");
    }
    assert!(is_refused(&call(&api, Some(&other), "job.submit", &submit)));
}
