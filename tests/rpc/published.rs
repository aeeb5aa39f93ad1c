//! Published scripts: their methods, and attacks on them, each beside the same call without what makes it hostile.

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Map, Value, json};

use super::{Api, admin, caller, words};

const ALL: [Scope; 4] = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];

/// A script with parameters; it returns them.
fn deploy() -> Value {
    json!({
        "name": "deploy", "script": "params.host + params.count", "description": "<script>alert(1)</script>",
        "settings": { "script_type": "osis", "env_vars": { "TOKEN": "s3cret" } },
        "params": {
            "host": { "required": true, "pattern": "^[a-z]+$" },
            "count": { "type": "integer", "minimum": 1, "maximum": 5, "default": 1 },
        },
    })
}

fn uses(used: &str, more: Value) -> Value {
    let mut job = json!({ "uses": used });
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    json!({ "job": job })
}

fn with(mut of: Value, changes: Value) -> Value {
    if let (Some(of), Value::Object(changes)) = (of.as_object_mut(), changes) {
        of.extend(changes);
    }
    of
}

fn of_types(name: &str, types: &[&str]) -> Caller {
    Caller { bounds: Bounds { types: words(types), ..Bounds::default() }, ..caller(name, &ALL) }
}

#[test]
fn script_is_published_run_rolled_back_and_deleted() {
    let api = Api::start(&["osis-default-1"]);
    let published = api.call("script.publish", deploy());
    assert_eq!(published, json!({ "name": "deploy", "version": 1, "created": true }));
    assert_eq!(api.call("script.publish", deploy())["created"], false);
    let done = api.call("job.run", uses("deploy", json!({ "params": { "host": "web" } })));
    assert_eq!((&done["output"], &done["uses"]), (&json!("web1"), &json!("deploy@1")));
    let listed = api.call("script.list", Value::Null)["scripts"][0].clone();
    assert_eq!((&listed["name"], &listed["digest"]), (&json!("deploy"), &done["script_digest"]));
    assert_eq!(listed["parameters"]["required"], json!(["host"]));
    api.call("script.publish", with(deploy(), json!({ "script": "2" })));
    let back = api.call("script.rollback", json!({ "name": "deploy", "version": 1 }));
    assert_eq!(back["version"], 3);
    let versions = api.call("script.history", json!(["deploy"]))["versions"].clone();
    assert_eq!(versions.as_array().map(Vec::len), Some(3));
    assert_eq!(
        (&versions[0]["rolled_back_to"], &versions[0]["published_by"]),
        (&json!(1), &json!("root"))
    );
    let text = api.call("script.get", json!(["deploy@2"]));
    assert_eq!((&text["script"], &text["version"]), (&json!("2"), &json!(2)));
    let graph = json!({ "jobs": [{ "name": "a", "job": { "uses": "deploy@2", "params": { "host": "a" } } }] });
    api.call("graph.submit", graph);
    let batch = api.call("batch.submit", json!([[
        { "uses": "deploy", "params": { "host": "a" } }, { "uses": "deploy", "params": { "host": 1 } },
    ]]));
    assert_eq!(
        (batch["ids"].as_array().map(Vec::len), &batch["refused"][0]["line"]),
        (Some(1), &json!(2))
    );
    api.call("script.delete", json!(["deploy"]));
    assert_eq!(api.fails(&admin(), "script.get", json!(["deploy"])).0, code::NOT_FOUND);
}

#[test]
fn hostile_definitions_are_rejected() {
    let api = Api::start(&[]);
    let many = |number: usize| -> Map<String, Value> {
        (0..number).map(|of| (format!("p{of}"), json!({}))).collect()
    };
    let params = |params: Value| with(deploy(), json!({ "params": params }));
    let settings = |more: Value| {
        let all = with(json!({ "script_type": "osis" }), more);
        with(deploy(), json!({ "settings": all }))
    };
    let text = "x".repeat(1 << 20);
    for (what, hostile, control) in [
        ("too many parameters", params(Value::Object(many(65))), params(Value::Object(many(64)))),
        (
            "a giant description of a parameter",
            params(json!({ "a": { "description": "x".repeat(501) } })),
            params(json!({ "a": { "description": "x".repeat(500) } })),
        ),
        (
            "a giant definition",
            params(json!({ "a": { "enum": ["x".repeat(17_000)] } })),
            params(json!({ "a": { "enum": ["x".repeat(10_000)] } })),
        ),
        (
            "a pattern that becomes a giant program",
            params(json!({ "a": { "pattern": "((a{0,255}){0,255}){0,255}" } })),
            params(json!({ "a": { "pattern": "^(a+)+$" } })),
        ),
        (
            "a pattern that needs backtracking",
            params(json!({ "a": { "pattern": "(a)\\1" } })),
            params(json!({ "a": { "pattern": "(a)\\w" } })),
        ),
        (
            "a name of a parameter that is HTML",
            params(json!({ "<b>": {} })),
            params(json!({ "b": {} })),
        ),
        (
            "a default out of its bounds",
            params(json!({ "a": { "type": "integer", "maximum": 1, "default": 2 } })),
            params(json!({ "a": { "type": "integer", "maximum": 2, "default": 2 } })),
        ),
        (
            "an unknown word of a schema",
            params(json!({ "a": { "$ref": "file:///etc/passwd" } })),
            params(json!({ "a": {} })),
        ),
        ("the caller of each job", settings(json!({ "caller_id": "root" })), settings(json!({}))),
        (
            "the id of each job",
            settings(json!({ "id": "one" })),
            settings(json!({ "name": "one" })),
        ),
        ("a script within", settings(json!({ "uses": "other" })), settings(json!({}))),
        (
            "the time of each job",
            settings(json!({ "run_at": "2100-01-01T00:00:00Z" })),
            settings(json!({})),
        ),
        (
            "a limit beyond the configuration",
            settings(json!({ "timeout": 9_999_999 })),
            settings(json!({ "timeout": 9 })),
        ),
        (
            "a type that is not there",
            settings(json!({ "script_type": "ruby" })),
            settings(json!({})),
        ),
        (
            "a giant text",
            with(deploy(), json!({ "script": format!("{text}x") })),
            with(deploy(), json!({ "script": "1" })),
        ),
        ("no text", with(deploy(), json!({ "script": "" })), deploy()),
        (
            "a head that names a file",
            with(deploy(), json!({ "script": "# /// hero\n# file = \"/etc/shadow\"\n# ///\n1" })),
            with(deploy(), json!({ "script": "# /// hero\n# timeout = \"5s\"\n# ///\n1" })),
        ),
    ] {
        let (refused, error) = api.fails(&admin(), "script.publish", hostile);
        assert_eq!(refused, code::INVALID_PARAMS, "{what}: {error}");
        assert!(error.message.len() < 1000, "{what}: {error}");
        api.call("script.publish", control);
    }
    let long = "a".repeat(49);
    for name in
        ["", "A", "9a", "a b", "a:b", "../a", "a/b", "a\n", "a\u{0}", "é", "#", "*", "a@1", &long]
    {
        let hostile = with(deploy(), json!({ "name": name }));
        assert_eq!(
            api.fails(&admin(), "script.publish", hostile).0,
            code::INVALID_PARAMS,
            "{name:?}"
        );
    }
    api.call("script.publish", with(deploy(), json!({ "name": "a-b_9" })));
}

#[test]
fn hostile_jobs_of_a_script_are_rejected() {
    let api = Api::start(&[]);
    api.call("script.publish", deploy());
    let good = json!({ "params": { "host": "web" } });
    let params = |params: Value| json!({ "params": params });
    let digest = api.call("script.get", json!(["deploy"]))["digest"].clone();
    // The SHA-256 of `evil`.
    let lie = "b5c1fb2efc6d6b4674c2fdcc48ce01b43a3b7c03763c0c3355de0099ee0f8c73";
    for (what, used, hostile) in [
        ("nothing that is required", "deploy", params(json!({}))),
        ("a number for a text", "deploy", params(json!({ "host": 1 }))),
        ("a list for a text", "deploy", params(json!({ "host": ["web"] }))),
        ("a text for a number", "deploy", params(json!({ "host": "web", "count": "1" }))),
        ("a fraction for a whole number", "deploy", params(json!({ "host": "web", "count": 1.5 }))),
        ("a number out of its bounds", "deploy", params(json!({ "host": "web", "count": 6 }))),
        ("a line behind the pattern", "deploy", params(json!({ "host": "web\nrm" }))),
        ("an unknown parameter", "deploy", params(json!({ "host": "web", "__proto__": 1 }))),
        ("a text of its own", "deploy", with(good.clone(), json!({ "script": "evil" }))),
        (
            "a lie about the digest",
            "deploy",
            with(good.clone(), json!({ "script": "evil", "script_digest": lie })),
        ),
        ("another digest", "deploy", with(good.clone(), json!({ "script_digest": lie }))),
        ("a digest that is none", "deploy", with(good.clone(), json!({ "script_digest": "x" }))),
        ("another type", "deploy", with(good.clone(), json!({ "script_type": "python" }))),
        ("version 0", "deploy@0", good.clone()),
        ("a later version", "deploy@2", good.clone()),
        ("a version that is no number", "deploy@x", good.clone()),
        ("a giant version", "deploy@99999999999999999999", good.clone()),
        ("two versions", "deploy@1@1", good.clone()),
        ("a path", "../index", good.clone()),
    ] {
        let (refused, error) = api.fails(&admin(), "job.submit", uses(used, hostile));
        assert!([code::INVALID_PARAMS, code::NOT_FOUND].contains(&refused), "{what}: {error}");
    }
    let id =
        api.call("job.submit", uses("deploy@1", with(good, json!({ "script_digest": digest }))));
    // A digest without a script says nothing that is checked.
    let lonely =
        json!({ "job": { "script": "evil", "script_type": "osis", "script_digest": lie } });
    assert_eq!(api.fails(&admin(), "job.submit", lonely).0, code::INVALID_PARAMS);
    // A waiting job cannot become one of another script, nor take other parameters than declared.
    for changes in [
        json!({ "uses": "other" }),
        json!({ "script_digest": lie }),
        json!({ "params": { "host": 1 } }),
    ] {
        let params = json!({ "id": id["id"], "changes": changes });
        let (refused, error) = api.fails(&admin(), "job.edit", params);
        assert_eq!(refused, code::INVALID_PARAMS, "{changes}: {error}");
    }
    let listed = api.call("job.list", Value::Null);
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn tokens_reach_the_scripts_of_their_types_alone() {
    let api = Api::with(&["osis-default-1"], |hero| {
        hero.add("[type.other]\nengine = \"osis\"\n").set("type.sal.who", "[\"boss\"]")
    });
    for (name, script_type) in [("own", "osis"), ("foreign", "other")] {
        let settings = json!({ "script_type": script_type });
        api.call("script.publish", json!({ "name": name, "script": "1", "settings": settings }));
    }
    let ann = of_types("ann", &["osis"]);
    let listed = api.call_as(&ann, "script.list", Value::Null).expect("a list");
    assert_eq!(listed["scripts"].as_array().map(Vec::len), Some(1), "{listed}");
    api.call_as(&ann, "job.submit", uses("own", json!({}))).expect("its own");
    // What it may not see looks like what is not there.
    for (method, params) in [
        ("script.get", |used: &str| json!({ "name": used })),
        ("script.history", |used: &str| json!({ "name": used })),
        ("job.submit", |used: &str| uses(used, json!({}))),
        ("job.submit", |used: &str| uses(used, json!({ "script_type": "osis" }))),
        ("job.run", |used: &str| uses(used, json!({}))),
        (
            "graph.submit",
            |used: &str| json!({ "jobs": [{ "name": "a", "job": { "uses": used } }] }),
        ),
    ] as [(&str, fn(&str) -> Value); 6]
    {
        let (foreign, said) = api.fails(&ann, method, params("foreign"));
        let (missing, of_missing) = api.fails(&ann, method, params("nothing"));
        assert_eq!((foreign, missing), (code::NOT_FOUND, code::NOT_FOUND), "{method}: {said}");
        assert_eq!(said.message.replace("foreign", "nothing"), of_missing.message);
        assert!(!of_missing.message.contains("own"), "{of_missing}");
    }
    let batch =
        api.call_as(&ann, "batch.submit", json!([[{ "uses": "foreign" }, { "uses": "own" }]]));
    let batch = batch.expect("a part of it");
    assert_eq!(
        (&batch["refused"][0]["line"], batch["ids"].as_array().map(Vec::len)),
        (&json!(1), Some(1))
    );

    // Publishing is for administrators without bounds.
    let operator = caller("op", &ALL[..3]);
    for who in [&operator, &ann] {
        for (method, params) in [
            ("script.publish", deploy()),
            ("script.rollback", json!({ "name": "own", "version": 1 })),
            ("script.delete", json!({ "name": "own" })),
        ] {
            assert_eq!(api.fails(who, method, params).0, code::NOT_PERMITTED, "{method}");
        }
    }
    // A group of the script does not lead out of the bounds.
    let settings = json!({ "script_type": "osis", "group": "far" });
    api.call("script.publish", json!({ "name": "far", "script": "1", "settings": settings }));
    let bounds = Bounds { groups: words(&["default"]), ..Bounds::default() };
    let near = Caller { bounds, ..caller("near", &ALL) };
    assert_eq!(api.fails(&near, "job.submit", uses("far", json!({}))).0, code::NOT_PERMITTED);
    api.call_as(&near, "job.submit", uses("own", json!({}))).expect("within its bounds");
    // A type without a sandbox is for those who are named.
    let sal = json!({ "name": "open", "script": "1", "settings": { "script_type": "sal" } });
    assert_eq!(api.fails(&admin(), "script.publish", sal.clone()).0, code::NOT_PERMITTED);
    api.call_as(&caller("boss", &ALL), "script.publish", sal).expect("it is named");
    let cron = json!({ "name": "c", "schedule": "@daily", "job": { "uses": "open" } });
    for (method, params) in [
        ("job.submit", uses("open", json!({}))),
        ("cron.add", cron),
        ("script.rollback", json!({ "name": "open", "version": 1 })),
    ] {
        assert_eq!(api.fails(&admin(), method, params).0, code::NOT_PERMITTED, "{method}");
    }
}

#[test]
fn variables_of_a_script_are_masked_for_those_who_only_read() {
    let api = Api::start(&[]);
    api.call("script.publish", deploy());
    let reader = caller("ann", &[Scope::Read]);
    for (method, place) in
        [("script.get", ""), ("script.history", "/versions/0"), ("script.list", "/scripts/0")]
    {
        let params = if method == "script.list" { Value::Null } else { json!(["deploy"]) };
        let variable =
            |found: &Value| found.pointer(&format!("{place}/settings/env_vars/TOKEN")).cloned();
        let seen = api.call_as(&reader, method, params.clone()).expect("may read");
        assert_eq!(variable(&seen), Some(json!("***")), "{method}");
        assert_eq!(variable(&api.call(method, params)), Some(json!("s3cret")), "{method}");
    }
}

#[test]
fn tools_of_agents_are_the_scripts_that_they_may_run() {
    let api = Api::with(&["osis-default-1"], |hero| hero.add("[type.other]\nengine = \"osis\"\n"));
    api.call("script.publish", deploy());
    // Names of tools that are there already.
    for name in ["run_script", "call_deploy", "types"] {
        let settings = json!({ "script_type": "osis" });
        api.call("script.publish", json!({ "name": name, "script": "7", "settings": settings }));
    }
    let settings = json!({ "script_type": "other" });
    api.call("script.publish", json!({ "name": "foreign", "script": "1", "settings": settings }));
    let ask = |token: &[&str], method: &str, params: Value| -> Value {
        let bearer = format!("Bearer {}", api.site.token(token));
        let headers = [("authorization", bearer.as_str()), ("accept", "application/json")];
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        api.site.tcp().post("/mcp", &headers, &request.to_string()).json()["result"].clone()
    };
    let own = ["agent", "--scope", "read,submit", "--type", "osis"];
    let listed = ask(&own, "tools/list", json!({}));
    let tools = listed["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let unique: std::collections::BTreeSet<&&str> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 64
        && !name.contains(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c))));
    assert!(names.contains(&"call_deploy") && names.contains(&"call_run_script"), "{names:?}");
    assert!(!names.contains(&"call_foreign"), "{names:?}");
    let tool = tools.iter().find(|tool| tool["name"] == "call_deploy").expect("a tool");
    assert_eq!(tool["inputSchema"]["required"], json!(["host"]));
    let call = |name: &str, arguments: Value| {
        ask(&own, "tools/call", json!({ "name": name, "arguments": arguments }))
    };
    assert_eq!(call("call_deploy", json!({ "host": "web" }))["content"][0]["text"], "web1");
    assert_eq!(call("call_run_script", json!({}))["content"][0]["text"], "7");
    let wrong = call("call_deploy", json!({ "host": "web", "count": 9 }));
    assert!(
        wrong["isError"] == true && wrong.to_string().contains("count: 9 is too large"),
        "{wrong}"
    );
    let (foreign, missing) = (call("call_foreign", json!({})), call("call_nothing", json!({})));
    assert_eq!(foreign.to_string().replace("foreign", "nothing"), missing.to_string());
    assert_eq!(foreign["isError"], true);
    // An agent that may only read has none of them.
    let reads = ask(&["reader", "--scope", "read"], "tools/list", json!({}));
    assert!(!reads.to_string().contains("call_"), "{reads}");
    // The list is bounded.
    for number in 0..70 {
        let settings = json!({ "script_type": "osis" });
        api.call(
            "script.publish",
            json!({ "name": format!("x{number}"), "script": "1", "settings": settings }),
        );
    }
    let listed = ask(&own, "tools/list", json!({}));
    let of_scripts = listed["tools"].as_array().expect("tools").iter();
    let of_scripts = of_scripts
        .filter(|tool| tool["name"].as_str().is_some_and(|name| name.starts_with("call_")));
    assert_eq!(of_scripts.count(), 64);
}
