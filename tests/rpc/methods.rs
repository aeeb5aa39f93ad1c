//! Each method by name and by position, and its errors.

use hero::rpc::code;
use serde_json::{Value, json};

use super::{Api, admin};
use crate::support::Hero;

/// The document that a command prints.
#[track_caller]
fn printed(api: &Api, args: &[&str]) -> Value {
    let done = api.site.hero.run(&[args, &["--json"]].concat());
    serde_json::from_str(&done.stdout).expect("JSON")
}

#[test]
fn job_is_submitted_awaited_read_and_deleted_as_by_the_command_line() {
    let api = Api::start(&["osis-default-1"]);
    let job = json!({ "id": "a", "script": "print(\"hi\"); 40 + 2", "script_type": "osis", "timeout": 5 });
    let stored = json!({ "id": "a", "created": true });
    assert_eq!(api.call("job.submit", json!({ "job": job })), stored);
    let ended = api.call("job.wait", json!({ "id": "a", "wait": 30 }));
    assert_eq!((&ended["status"], &ended["output"]), (&json!("finished"), &json!("42")));
    assert_eq!(api.call("job.get", json!(["a"])), printed(&api, &["job", "show", "a"]));
    assert_eq!(api.call("job.output", json!(["a"])), printed(&api, &["job", "output", "a"]));
    let list = api.call("job.list", json!({ "status": "finished", "script_type": "osis" }));
    assert_eq!(list, printed(&api, &["job", "list"]));
    let found = |filter: Value| api.call("job.list", filter)["jobs"].as_array().map(Vec::len);
    let queue = "type:osis";
    assert_eq!(found(json!({ "text": "A", "caller": "root", "queue": queue })), Some(1));
    assert_eq!(found(json!({ "since": "2100-01-01T00:00:00Z" })), Some(0));
    assert_eq!(found(json!({ "cancelled": true })), Some(0));
    for (name, value, jobs) in [
        ("since", "1h", 1),
        ("ended_since", "yesterday", 1),
        ("ended_since", "2100-01-01T00:00:00Z", 0),
        ("ended_until", "2100-01-01T00:00:00Z", 1),
        ("ended_until", "yesterday", 0),
    ] {
        assert_eq!(found(json!({ name: value })), Some(jobs), "{name} = {value}");
    }
    let log = api.call("job.log", json!({ "id": "a" }));
    assert_eq!(log["lines"], printed(&api, &["job", "logs", "a"])["lines"]);
    assert_eq!(log["next"], Value::Null);
    let first = api.call("job.log", json!({ "id": "a", "limit": 1 }));
    assert_eq!(first["next"], first["lines"][0]["id"]);
    let rest = json!({ "id": "a", "after": first["next"], "limit": 1 });
    assert_eq!(api.call("job.log", rest)["lines"], json!([]));
    assert_eq!(api.call("job.retry", json!(["a"]))["jobs"][0]["result"], "dispatched");
    api.call("job.wait", json!(["a"]));
    assert_eq!(api.call("job.delete", json!(["a"])), json!({ "id": "a", "result": "deleted" }));
}

#[test]
fn dependents_beyond_those_in_the_hash_come_page_by_page() {
    let api = Api::start(&[]);
    let submit = |job: Value| api.call("job.submit", json!({ "job": job }));
    submit(json!({ "id": "root", "script": "1", "script_type": "osis", "group": "nobody" }));
    let ids: Vec<String> = (0..1500).map(|n| format!("{n:04}-{}", "x".repeat(40))).collect();
    let jobs: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "id": id, "script": "1", "script_type": "osis", "prerequisites": ["root"] }))
        .collect();
    for some in jobs.chunks(500) {
        api.call("batch.submit", json!({ "jobs": some }));
    }
    let root = api.call("job.get", json!(["root"]));
    assert_eq!(root["dependents"].as_array().map(Vec::len), Some(1000));
    assert_eq!(root["dependents_more"], 500);
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = json!({ "id": "root", "limit": 700, "cursor": cursor });
        let page = api.call("job.dependents", params);
        let ids = page["dependents"].as_array().expect("ids").iter();
        all.extend(ids.filter_map(Value::as_str).map(str::to_owned));
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(all, ids);
}

#[test]
fn many_jobs_are_changed_by_ids_or_by_a_filter_that_is_confirmed() {
    let api = Api::start(&[]);
    let submit = |id: &str, tag: &str| {
        let job = json!({ "id": id, "script": "1", "script_type": "osis", "tags": [tag] });
        api.call("job.submit", json!({ "job": job }));
    };
    for (id, tag) in [("a", "one"), ("b", "two"), ("c", "two")] {
        submit(id, tag);
    }
    let two = json!({ "tags": ["two"] });
    let edit = json!({ "change": "edit", "filter": two, "edit": { "priority": 0 } });
    assert_eq!(api.call("job.change_many", edit)["done"], 2);
    let priority = |id: &str| api.call("job.get", json!([id]))["priority"].clone();
    assert_eq!([priority("a"), priority("b"), priority("c")], [json!(1), json!(0), json!(0)]);
    let asked = json!({ "change": "stop", "filter": two });
    let refused = api.call_as(&admin(), "job.change_many", asked).expect_err("it asks first");
    assert_eq!(
        (refused.code, refused.data.expect("data")["field"].clone()),
        (code::INVALID_PARAMS, json!("yes"))
    );
    let dry = json!({ "change": "stop", "filter": two, "dry_run": true });
    let dry = api.call("job.change_many", dry);
    assert_eq!((&dry["done"], dry["jobs"].as_array().map(Vec::len)), (&json!(0), Some(2)));
    let sure = json!({ "change": "stop", "filter": two, "yes": true });
    assert_eq!(api.call("job.change_many", sure)["done"], 2);
    let again = json!({ "change": "stop", "ids": ["a", "b"] });
    let again = api.call("job.change_many", again);
    assert_eq!((&again["done"], &again["left"]), (&json!(1), &json!(1)));
    assert!(again["reason"].as_str().is_some_and(|of| of.contains("job b")), "{again}");
    let retry =
        |filter| api.call("job.change_many", json!({ "change": "retry", "filter": filter }));
    assert_eq!(retry(json!({}))["done"], 0, "a stopped job has not failed");
    assert_eq!(retry(json!({ "failed_because": "stopped" }))["done"], 3);
}

#[test]
fn run_returns_the_job_also_if_it_fails_or_the_wait_ends() {
    let api = Api::start(&["osis-default-1"]);
    let run = |script: &str, wait: f64| {
        let job = json!({ "script": script, "script_type": "osis" });
        api.call("job.run", json!({ "job": job, "wait": wait }))
    };
    assert_eq!(run("1 + 1", 30.0)["output"], "2");
    let failed = run("throw \"no luck\"", 30.0);
    assert_eq!(failed["status"], "error");
    assert!(failed["error"].to_string().contains("no luck"), "{failed}");
    let goes_on = run("loop {}", 0.0);
    let is_over = ["finished", "error"].iter().any(|status| goes_on["status"] == *status);
    assert!(!is_over, "{goes_on}");
    let id = &goes_on["id"];
    let told = api.call("job.stop", json!([id]));
    assert!(["stopped", "told to stop"].iter().any(|done| told["result"] == *done), "{told}");
    assert_eq!(api.call("job.wait", json!([id]))["status"], "error");
}

#[test]
fn created_job_runs_once_it_is_started() {
    let api = Api::start(&[]);
    let job = json!({ "id": "a", "script": "1", "script_type": "osis" });
    let stored = json!({ "id": "a", "created": true });
    assert_eq!(api.call("job.create", json!([job])), stored);
    assert_eq!(api.call("job.get", json!(["a"]))["status"], "created");
    assert_eq!(api.call("job.start", json!(["a"]))["result"], "dispatched");
    assert_eq!(api.call("job.clear", json!({ "yes": true })), json!({ "deleted": 1 }));
}

#[test]
fn errors_have_a_kind_for_programs() {
    let api = Api::start(&[]);
    let job = json!({ "id": "a", "script": "1", "script_type": "osis" });
    api.call("job.submit", json!([job]));
    let with = |name: &str, value: Value| {
        let mut job = json!({ "script": "1", "script_type": "osis" });
        job[name] = value;
        json!({ "job": job })
    };
    for (method, params, code, field) in [
        ("job.get", json!(["none"]), code::NOT_FOUND, ""),
        ("job.get", json!({ "id": "a:b" }), code::INVALID_PARAMS, "id"),
        ("job.get", json!({ "id": "a", "x": 1 }), code::INVALID_PARAMS, "x"),
        ("job.get", json!([]), code::INVALID_PARAMS, ""),
        ("job.get", json!(["a", "b"]), code::INVALID_PARAMS, "trees"),
        ("job.get", json!(["a", true, false, 1]), code::INVALID_PARAMS, ""),
        ("job.get", json!("a"), code::INVALID_REQUEST, ""),
        ("job.output", json!(["a"]), code::CONFLICT, ""),
        ("job.log", json!({ "id": "a", "after": "x" }), code::INVALID_PARAMS, "after"),
        ("job.wait", json!({ "id": "a", "wait": -1 }), code::INVALID_PARAMS, "wait"),
        ("job.list", json!({ "limit": 1001 }), code::INVALID_PARAMS, "limit"),
        ("job.list", json!({ "status": "over" }), code::INVALID_PARAMS, "status"),
        ("job.list", json!({ "ended_since": "soon" }), code::INVALID_PARAMS, "ended_since"),
        ("job.submit", with("timeout", json!("soon")), code::INVALID_PARAMS, "timeout"),
        ("job.submit", with("timeout", json!(1e9)), code::INVALID_PARAMS, "timeout"),
        ("job.submit", with("script_type", json!("ruby")), code::INVALID_PARAMS, "script_type"),
        (
            "job.submit",
            json!([{ "id": "a", "script": "2", "script_type": "osis" }]),
            code::CONFLICT,
            "",
        ),
        ("job.submit", with("prerequisites", json!(["no"])), code::INVALID_PARAMS, "prerequisites"),
        ("job.retry", json!(["a"]), code::CONFLICT, ""),
        ("job.clear", json!([false]), code::INVALID_PARAMS, "yes"),
        ("dead.retry", json!({}), code::INVALID_PARAMS, "ids"),
        ("object.get", json!(["person", "ann"]), code::NOT_FOUND, ""),
        ("object.find", json!(["person", "age >"]), code::INVALID_PARAMS, "query"),
        ("no.method", Value::Null, code::METHOD_NOT_FOUND, ""),
    ] {
        let (found, error) = api.fails(&admin(), method, params.clone());
        assert_eq!(found, code, "{method} {params}: {error}");
        let data = error.data.unwrap_or_default();
        assert_eq!(data["field"].as_str().unwrap_or_default(), field, "{method} {params}");
    }
}

#[test]
fn repeated_submission_of_the_same_content_returns_the_job() {
    let api = Api::start(&["osis-default-1"]);
    let job = json!({
        "id": "a", "script": "40 + 2", "script_type": "osis", "timeout": 5, "retries": 2, "tags": ["x"],
        "env_vars": { "KEY": "value" }, "params": { "n": 1 },
    });
    for (method, created) in [("job.submit", true), ("job.submit", false), ("job.create", false)] {
        let answer = json!({ "id": "a", "created": created });
        assert_eq!(api.call(method, json!([job])), answer, "{method}");
    }
    assert_eq!(api.call("job.run", json!({ "job": job, "wait": 30 }))["output"], "42");
    assert_eq!(api.call("job.get", json!(["a"]))["attempt"], 1, "it ran once");
    for (name, value) in [("script", json!("1")), ("retries", json!(3)), ("tags", json!([]))] {
        let mut other = job.clone();
        other[name] = value;
        assert_eq!(api.fails(&admin(), "job.submit", json!([other])).0, code::CONFLICT, "{name}");
    }
    let ann = super::caller("ann", &[hero::rpc::Scope::Submit]);
    assert_eq!(api.fails(&ann, "job.submit", json!([job])).0, code::CONFLICT, "of another caller");
}

#[test]
fn redis_that_cannot_be_reached_is_an_error_that_can_be_retried() {
    let mut api = Api::start(&[]);
    // The token is known while Redis is away.
    api.call("whoami", Value::Null);
    api.redis.kill();
    let (code, error) = api.fails(&admin(), "job.list", Value::Null);
    assert_eq!((code, &error.data.expect("data")["retryable"]), (code::INTERNAL, &json!(true)));
}

#[test]
fn batch_is_submitted_in_parts_or_as_a_whole() {
    let api = Api::start(&[]);
    let job = |id: &str, after: &[&str]| json!({ "id": id, "script": "1", "script_type": "osis", "prerequisites": after });
    let parts = json!({ "jobs": [job("a", &[]), { "script_type": "osis" }, job("a", &[])] });
    let done = api.call("batch.submit", parts);
    assert_eq!(done["ids"], json!(["a"]));
    let lines: Vec<&Value> =
        done["refused"].as_array().expect("a list").iter().map(|job| &job["line"]).collect();
    assert_eq!(lines, [2, 3]);
    let whole =
        |jobs: Value| api.call("batch.submit", json!({ "jobs": jobs, "all_or_none": true }));
    assert_eq!(whole(json!([job("c", &["b"]), job("b", &[])]))["ids"], json!(["c", "b"]));
    let refused = whole(json!([job("d", &[]), job("a", &[])]));
    assert_eq!((&refused["ids"], &refused["refused"][0]["line"]), (&json!([]), &json!(2)));
    assert_eq!(api.fails(&admin(), "job.get", json!(["d"])).0, code::NOT_FOUND);
    for method in ["batch.submit", "graph.submit"] {
        assert_eq!(api.fails(&admin(), method, json!({ "jobs": [] })).0, code::INVALID_PARAMS);
    }
}

#[test]
fn batch_that_is_repeated_with_ids_and_content_answers_with_its_jobs() {
    let api = Api::start(&[]);
    let job = |id: &str, script: &str| json!({ "id": id, "script": script, "script_type": "osis" });
    for (all_or_none, [first, second]) in [(false, ["a", "b"]), (true, ["c", "d"])] {
        let submit = |jobs: Value| {
            api.call("batch.submit", json!({ "jobs": jobs, "all_or_none": all_or_none }))
        };
        let both = json!([job(first, "1"), job(second, "1")]);
        let batch = submit(both.clone())["id"].clone();
        let again = submit(both);
        assert_eq!((&again["ids"], &again["refused"]), (&json!([first, second]), &json!([])));
        // All or none, it is the batch before; else none of its jobs is new.
        let known = if all_or_none { batch.clone() } else { Value::Null };
        assert_eq!((&again["id"], &again["repeated"]), (&known, &json!(2)));
        let other = submit(json!([job(first, "2")]));
        assert_eq!((&other["ids"], &other["refused"][0]["line"]), (&json!([]), &json!(1)));
        assert_eq!(api.call("graph.get", json!([batch]))["graph"]["jobs"], 2);
    }
}

#[test]
fn dead_letters_are_listed_retried_and_deleted() {
    let all_dead = |hero: Hero| hero.add("[type.osis]\ndead_letters = \"all\"\n");
    let api = Api::with(&["osis-default-1"], all_dead);
    for id in ["a", "b", "c"] {
        let job = json!({ "id": id, "script": "throw \"no luck\"", "script_type": "osis" });
        api.call("job.run", json!([job]));
    }
    let list = api.call("dead.list", json!({ "error": "no luck" }));
    assert_eq!(list, printed(&api, &["dead", "list"]));
    let same = json!({ "dead": true, "kind": "no luck…", "limit": 3 });
    assert_eq!(api.call("job.list", same)["jobs"], list["jobs"], "{list}");
    let groups = api.call("job.errors", json!({ "dead": true }));
    assert_eq!(groups["groups"][0]["jobs"], 3, "{groups}");
    let all = json!({ "all": true, "kind": groups["groups"][0]["kind"], "dry_run": true });
    let would = api.call("dead.delete", all);
    assert_eq!((&would["done"], &would["jobs"]), (&json!(0), &list["jobs"]));
    let half = json!({ "ids": ["a"], "error": "no luck" });
    assert_eq!(api.fails(&admin(), "dead.retry", half).0, code::INVALID_PARAMS);
    assert_eq!(api.call("dead.retry", json!({ "ids": ["a"] }))["done"], 1);
    api.call("job.wait", json!(["a"]));
    let named = api.call("dead.delete", json!({ "ids": ["a", "none"] }));
    assert_eq!((&named["done"], &named["problems"][0]["id"]), (&json!(1), &json!("none")));
    let all = json!({ "all": true, "script_type": "osis" });
    assert_eq!(api.call("dead.delete", all)["done"], 2);
    assert_eq!(api.call("dead.list", Value::Null)["jobs"], json!([]));
}

#[test]
fn objects_are_counted_listed_found_and_deleted() {
    let api = Api::with(&["osis-default-1"], |hero| hero.add("[osis.index]\nperson = [\"age\"]\n"));
    let script = "osis_set(\"person\", #{ id: \"ann\", age: 30 }); osis_set(\"person\", #{ id: \"bob\", age: 20 }); 0";
    let job = json!({ "script": script, "script_type": "osis", "context_id": "work" });
    let done = api.call("job.run", json!([job]));
    assert_eq!(done["status"], "finished", "{done}");
    let types = json!([{ "context": "work", "type": "person", "objects": 2 }]);
    assert_eq!(api.call("object.types", Value::Null)["types"], types);
    let of = |more: Value| {
        let mut params = json!({ "type": "person", "context": "work" });
        params.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("one"));
        params
    };
    let first = api.call("object.list", of(json!({ "limit": 1 })));
    assert_eq!((&first["objects"][0]["id"], &first["next"]), (&json!("ann"), &json!("ann")));
    let all = printed(&api, &["osis", "list", "person", "--context", "work"]);
    assert_eq!(api.call("object.list", of(json!({}))), all);
    let found = api.call("object.find", of(json!({ "query": "age < 25" })));
    assert_eq!(found["objects"][0]["id"], "bob");
    assert_eq!(api.call("object.get", of(json!({ "id": "ann" })))["age"], 30);
    let deleted = api.call("object.delete", of(json!({ "ids": ["ann", "eve"] })));
    assert_eq!(deleted, json!({ "deleted": 1 }));
}

#[test]
fn caller_and_daemon_report_who_they_are() {
    let api = Api::start(&[]);
    let who = api.call("whoami", json!([]));
    let scopes = ["read", "submit", "operate", "admin", "fleet"];
    assert_eq!(who, json!({ "name": "root", "scopes": scopes, "bounds": {} }));
    let info = api.call("system.info", Value::Null);
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert!(info["types"].as_array().expect("types").contains(&json!("osis")), "{info}");
}
