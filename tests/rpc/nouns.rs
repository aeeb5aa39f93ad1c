//! The methods about everything but single jobs: graphs, queues, actors, periodic jobs, limits, numbers and
//! scripts.

use hero::rpc::{Bounds, Caller, Scope, code};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Api, admin, caller, words};
use crate::support::{keys, wait_until};

fn osis(script: &str) -> Value {
    json!({ "script": script, "script_type": "osis" })
}

#[test]
fn graph_is_submitted_as_a_whole_and_its_mistakes_are_named() {
    let api = Api::start(&["osis-default-1"]);
    let node = |name: &str, script: &str, after: &[&str]| json!({ "name": name, "job": osis(script), "after": after });
    let jobs = json!([node("sum", "INPUTS.one + 1", &["one"]), node("one", "41", &[])]);
    let ids = api.call("graph.submit", json!([jobs]))["jobs"].clone();
    let done = api.call("job.wait", json!([ids["sum"]]));
    assert_eq!((&done["name"], &done["status"]), (&json!("sum"), &json!("finished")), "{done}");
    for (jobs, field) in [
        (json!([node("a", "1", &["b"]), node("b", "1", &["a"])]), "cycle"),
        (json!([node("a", "1", &["none"])]), "prerequisite"),
        (json!([node("a", "", &[])]), "name"),
    ] {
        let (code, error) = api.fails(&admin(), "graph.submit", json!([jobs]));
        assert_eq!(code, code::INVALID_PARAMS, "{error}");
        let data = error.data.clone().unwrap_or_default();
        assert!(!data[field].is_null(), "{error}");
    }
    let bounds = Bounds { types: words(&["python"]), ..Bounds::default() };
    let bound = Caller { bounds, ..admin() };
    let (code, _) = api.fails(&bound, "graph.submit", json!([[node("a", "1", &[])]]));
    assert_eq!(code, code::NOT_PERMITTED);
}

#[test]
fn graph_is_listed_read_awaited_and_changed_by_its_caller_alone() {
    let api = Api::start(&["osis-default-1"]);
    let node = |name: &str, script: &str, after: &[&str]| json!({ "name": name, "job": osis(script), "after": after });
    let jobs = json!([node("a", "1", &[]), node("b", "throw 1", &["a"])]);
    let given = json!({ "jobs": jobs, "name": "nightly", "id": "g", "stop_after": "100%" });
    assert_eq!(api.call("graph.submit", given.clone())["graph_id"], "g");
    assert_eq!(api.fails(&admin(), "graph.submit", given).0, code::CONFLICT);
    let ended = api.call("graph.wait", json!(["g"]));
    assert_eq!((&ended["state"], &ended["failed"]), (&json!("failed"), &json!(1)), "{ended}");
    assert_eq!(ended["stop_after"], "100%");
    let shown = api.call("graph.get", json!({ "id": "g", "outcome": "failed" }));
    assert_eq!((&shown["jobs"][0]["name"], &shown["jobs"][1]), (&json!("b"), &Value::Null));
    let listed = api.call("graph.list", Value::Null);
    assert_eq!(listed["graphs"][0]["name"], "nightly");
    let bounds = Bounds { types: words(&["python"]), ..Bounds::default() };
    let bound = Caller { bounds, name: "other".to_owned(), ..admin() };
    assert_eq!(api.fails(&bound, "graph.get", json!(["g"])).0, code::NOT_FOUND);
    let seen = api.call_as(&bound, "graph.list", Value::Null).expect("may list");
    assert_eq!(seen, json!({ "graphs": [], "next": null }));
    let go = json!({ "id": "g", "order": "go" });
    assert_eq!(api.fails(&admin(), "graph.tell", go).0, code::CONFLICT, "it has no pause");
    let other = caller("other", &[Scope::Submit, Scope::Read]);
    for method in ["graph.retry", "graph.stop", "graph.delete"] {
        assert_eq!(api.fails(&other, method, json!(["g"])).0, code::NOT_PERMITTED, "{method}");
    }
    let window = json!({ "id": "g", "at_a_time": 2, "stop_after": "5%" });
    assert_eq!(api.fails(&other, "graph.edit", window.clone()).0, code::NOT_PERMITTED);
    assert_eq!(api.fails(&admin(), "graph.edit", json!(["g"])).0, code::INVALID_PARAMS);
    let edited = api.call("graph.edit", window);
    assert_eq!((&edited["at_a_time"], &edited["stop_after"]), (&json!(2), &json!("5%")));
    let edited = api.call("graph.edit", json!({ "id": "g", "at_a_time": 0, "stop_after": 2 }));
    assert_eq!((&edited["at_a_time"], &edited["stop_after"]), (&Value::Null, &json!(2)));
    assert_eq!(api.call("graph.retry", json!(["g"]))["done"], 1);
    api.call("graph.wait", json!(["g"]));
    assert_eq!(api.call("graph.stop", json!(["g"]))["done"], 0);
    assert_eq!(api.call("graph.delete", json!(["g"]))["done"], 2);
    assert_eq!(api.fails(&admin(), "graph.get", json!(["g"])).0, code::NOT_FOUND);
    let batch = json!({ "jobs": [osis("1"), osis("2")], "id": "b", "all_or_none": true, "at_a_time": 1,
        "stop_after": 2, "pause_after": "1 tell" });
    assert_eq!(api.call("batch.submit", batch)["batch_id"], "b");
    let go = json!({ "id": "b", "order": "go" });
    assert_eq!(api.fails(&other, "graph.tell", go.clone()).0, code::NOT_PERMITTED);
    let told = api.call("graph.tell", go);
    assert_eq!((&told["pause_after"], &told["paused"]), (&json!("1 tell"), &json!(false)));
    let bad = json!({ "id": "b", "pause_after": "1" });
    assert_eq!(api.fails(&admin(), "graph.edit", bad).0, code::INVALID_PARAMS);
    let ended = api.call("graph.wait", json!(["b"]));
    assert_eq!(
        (&ended["finished"], &ended["at_a_time"], &ended["stop_after"]),
        (&json!(2), &json!(1), &json!(2))
    );
}

#[test]
fn queues_are_listed_paused_resumed_and_purged_within_bounds() {
    let api = Api::start(&[]);
    for script in ["1", "2"] {
        api.call("job.submit", json!([osis(script)]));
    }
    let list = api.call("queue.list", Value::Null);
    assert_eq!(
        (&list["queues"][0]["queue"], &list["queues"][0]["depth"]),
        (&json!("type:osis"), &json!(2))
    );
    let one = json!(["type:osis:prio:1"]);
    assert_eq!(api.call("queue.pause", one.clone()), json!({ "paused": ["type:osis"] }));
    assert_eq!(api.call("queue.pause", one.clone()), json!({ "paused": [] }));
    assert_eq!(api.call("queue.list", Value::Null)["queues"][0]["paused"], true);
    assert_eq!(api.call("queue.resume", one), json!({ "resumed": ["type:osis"] }));
    let (code, _) = api.fails(&admin(), "queue.pause", json!(["type:osys"]));
    assert_eq!(code, code::INVALID_PARAMS);
    let bounds = Bounds { types: words(&["python"]), ..Bounds::default() };
    let bound = Caller { bounds, ..admin() };
    for method in ["queue.pause", "queue.resume", "queue.purge"] {
        let (code, _) = api.fails(&bound, method, json!(["type:osis"]));
        assert_eq!(code, code::NOT_PERMITTED, "{method}");
    }
    let seen = api.call_as(&bound, "queue.list", Value::Null).expect("may list");
    assert_eq!(seen, json!({ "queues": [], "pauses": [], "unserved": [] }));
    let all = json!({ "queue": "*" });
    for method in ["queue.pause", "queue.resume"] {
        let (code, error) = api.fails(&bound, method, all.clone());
        assert_eq!(code, code::NOT_PERMITTED, "{method}: {error}");
    }
    assert_eq!(api.call("queue.pause", all.clone()), json!({ "paused": ["*"] }));
    assert_eq!(api.call("queue.resume", all), json!({ "resumed": ["*"] }));
    assert_eq!(api.call("queue.purge", json!(["type:osis"])), json!({ "purged": 2 }));
}

#[test]
fn actors_answer_and_are_drained_and_resumed() {
    let api = Api::start(&["osis-default-1"]);
    let pong = api.call("actor.ping", json!(["osis-default-1"]));
    assert_eq!(pong["actor"], "osis:default:1");
    let list = api.call("actor.list", json!({ "script_type": "osis" }));
    assert_eq!(list["actors"][0]["actor"], "osis:default:1");
    assert_eq!(api.call("actor.list", json!(["python"])), json!({ "actors": [] }));
    let told = json!({ "told": ["osis:default:1"] });
    assert_eq!(api.call("actor.drain", json!(["osis:default:1"])), told);
    assert_eq!(api.call("actor.resume", json!(["osis-default-1"])), told);
    assert_eq!(api.call("job.run", json!([osis("40 + 2")]))["output"], "42");
    assert_eq!(api.fails(&admin(), "actor.drain", json!(["osis-default-9"])).0, code::NOT_FOUND);
    assert_eq!(api.fails(&admin(), "actor.stop", json!(["osis"])).0, code::INVALID_PARAMS);
}

#[test]
fn periodic_jobs_are_listed_run_and_switched() {
    let folder = tempfile::tempdir().expect("a folder");
    let cron = "[cron.nightly]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"7\"\n";
    std::fs::write(folder.path().join("a.toml"), cron).expect("a file");
    let place = format!("{:?}", folder.path());
    let api = Api::with(&[], |hero| hero.set("supervisor.cron_dir", &place));
    let list = api.call("cron.list", Value::Null);
    assert_eq!((&list["cron"][0]["name"], &list["problems"]), (&json!("nightly"), &json!([])));
    wait_until("the supervisor has told what is in force", || {
        api.call("cron.get", json!(["nightly"]))["not_in_force"].is_null()
    });
    let one = api.call("cron.get", json!(["nightly"]));
    assert_eq!((&one["name"], &one["history"]), (&json!("nightly"), &json!([])), "{one}");
    assert_eq!(one["upcoming"].as_array().map(Vec::len), Some(5), "{one}");
    assert_eq!(api.fails(&admin(), "cron.get", json!(["none"])).0, code::NOT_FOUND);
    let id = api.call("cron.run", json!(["nightly"]))["id"].clone();
    assert_eq!(api.call("job.get", json!([id]))["script"], "7");
    let switched = api.call("cron.disable", json!(["nightly"]));
    assert_eq!(switched, json!({ "name": "nightly", "enabled": false, "changed": true }));
    let disabled = &api.call("cron.list", Value::Null)["cron"][0];
    assert_eq!((&disabled["enabled"], &disabled["disabled_by"]), (&json!(false), &json!("root")));
    assert_eq!(api.call("cron.enable", json!(["nightly"]))["changed"], true);
    assert_eq!(api.fails(&admin(), "cron.run", json!(["none"])).0, code::NOT_FOUND);
    let job = json!({ "script_type": "osis", "script": "8", "retries": 2 });
    let new = json!({ "name": "more", "schedule": "@hourly", "job": job });
    assert_eq!(api.call("cron.add", new.clone()), json!({ "name": "more" }));
    assert_eq!(api.fails(&admin(), "cron.add", new).0, code::INVALID_PARAMS);
    let change = json!({ "name": "more", "overlap": "allow", "job": { "script": "9" } });
    api.call("cron.edit", change);
    let one = api.call("cron.get", json!(["more"]));
    assert_eq!(
        (&one["overlap"], &one["schedule"], &one["added_by"]),
        (&json!("allow"), &json!("@hourly"), &json!("root")),
        "{one}"
    );
    let id = api.call("cron.run", json!(["more"]))["id"].clone();
    let job = api.call("job.get", json!([id]));
    assert_eq!((&job["script"], &job["retries"]), (&json!("9"), &json!(2)));
    assert_eq!(api.call("cron.delete", json!(["more"])), json!({ "name": "more" }));
    assert_eq!(api.fails(&admin(), "cron.get", json!(["more"])).0, code::NOT_FOUND);
}

#[test]
fn limits_and_numbers_are_reported() {
    let api = Api::with(&["osis-default-1"], |hero| {
        hero.add("[limit.few]\nrunning = 3\ntype = \"osis\"\n")
    });
    api.call("job.run", json!([osis("1")]));
    let limits = api.call("limit.list", Value::Null);
    assert_eq!(limits["limits"][0]["name"], "few", "{limits}");
    let stats = api.call("stats.get", Value::Null);
    assert_eq!(
        (&stats["types"][0]["script_type"], &stats["types"][0]["finished"]),
        (&json!("osis"), &json!(1))
    );
}

#[test]
fn numbers_of_a_period_and_the_jobs_of_an_actor_are_reported() {
    let api = Api::start(&["osis-default-1"]);
    let hours = keys::prefix("HOURS");
    wait_until("a sample is kept", || !api.redis.list(&hours).is_empty());
    let id = api.call("job.run", json!([osis("1")]))["id"].clone();
    let stats = api.call("stats.get", json!({ "since": "1h" }));
    let osis = &stats["types"][0];
    assert_eq!((&osis["script_type"], &osis["finished"]), (&json!("osis"), &json!(1)), "{stats}");
    let begin = api.redis.list(&hours)[0].clone();
    let begin: Value = serde_json::from_str(&begin).expect("JSON");
    let begin = Timestamp::from_microsecond(begin["at_us"].as_i64().expect("a time"));
    assert_eq!(stats["from"], format!("{:.3}", begin.expect("a time")));
    assert!(stats["seconds"].as_f64() > Some(0.0) && stats["to"].is_string(), "{stats}");
    let old = json!({ "since": "2020-01-01", "until": "2020-01-02" });
    assert_eq!(api.fails(&admin(), "stats.get", old).0, code::NOT_FOUND);
    let open = json!({ "until": "1h" });
    assert_eq!(api.fails(&admin(), "stats.get", open).0, code::INVALID_PARAMS);
    for by in [json!("host"), Value::Null] {
        let turned = json!({ "since": "1h", "until": "2h", "by": by });
        assert_eq!(api.fails(&admin(), "stats.get", turned).0, code::INVALID_PARAMS);
    }

    let host = api.call("job.get", json!([id]))["hostname"].clone();
    let found =
        |filter: Value| api.call("job.list", filter)["jobs"].as_array().expect("jobs").len();
    assert_eq!(found(json!({ "actor": "osis:default:1", "host": host })), 1);
    assert_eq!(found(json!({ "actor": "osis:default:2" })), 0);
    assert_eq!(found(json!({ "host": "another", "ended_since": "1h" })), 0);
}

#[test]
fn scripts_are_checked_and_functions_documented() {
    let api = Api::start(&[]);
    let check = |script: &str| api.call("script.check", json!([script, "osis"]))["errors"].clone();
    assert_eq!(check("40 + 2"), json!([]));
    assert!(check("let a = ;")[0]["message"].is_string());
    let functions =
        api.call("script.functions", json!({ "script_type": "osis", "name": "osis_get" }));
    assert_eq!(functions["functions"][0]["name"], "osis_get");
    assert_eq!(api.fails(&admin(), "script.functions", json!(["python"])).0, code::INVALID_PARAMS);
}

#[test]
fn waiting_job_is_found_by_a_tag_and_a_short_id_and_changed_by_its_caller_alone() {
    let api = Api::start(&[]);
    let ann = caller("ann", &[Scope::Read, Scope::Submit]);
    let job = json!({ "id": "abcd-1", "script": "1", "script_type": "osis", "tags": ["x"] });
    api.call_as(&ann, "job.submit", json!({ "job": job })).expect("may submit");
    let listed = api.call("job.list", json!({ "tags": ["x"] }));
    assert_eq!(listed["jobs"][0]["id"], "abcd-1");
    let edited = api.call_as(&ann, "job.edit", json!({ "id": "abcd", "priority": 0 }));
    assert_eq!(edited.expect("her own"), json!({ "id": "abcd-1", "result": "dispatched" }));
    assert_eq!(api.call("job.get", json!(["abcd"]))["priority"], 0);
    assert_eq!(api.call("job.files", json!(["abcd"])), json!({ "id": "abcd-1", "files": [] }));
    let other = caller("bob", &[Scope::Read, Scope::Submit]);
    let wish = json!({ "id": "abcd", "priority": 2 });
    assert_eq!(api.fails(&other, "job.edit", wish).0, code::NOT_PERMITTED);
}

#[test]
fn job_is_cloned_with_changes_as_one_of_the_callers_own() {
    let api = Api::start(&[]);
    let job =
        json!({ "id": "a", "script": "1", "script_type": "osis", "env_vars": { "KEY": "secret" } });
    api.call("job.submit", json!([job]));
    let id =
        api.call("job.clone", json!({ "id": "a", "changes": { "script": "2" } }))["id"].clone();
    let copy = api.call("job.get", json!([id]));
    assert_eq!((&copy["script"], &copy["env_vars"]["KEY"]), (&json!("2"), &json!("secret")));
    // The variables of others stay theirs.
    let ann = caller("ann", &[Scope::Read, Scope::Submit]);
    let own = api.call_as(&ann, "job.clone", json!(["a"])).expect("may submit");
    let own = api.call_as(&ann, "job.get", json!([own["id"]])).expect("may read");
    assert_eq!((&own["caller_id"], &own["env_vars"]), (&json!("ann"), &Value::Null));
}

#[test]
fn unique_beginning_of_an_id_names_graphs_dead_letters_and_jobs_of_older_programs() {
    let api = Api::start(&[]);
    for id in ["7f9c2ba4-x", "7f9c2ba4-y", "1234abcd-x"] {
        let job = json!({ "script": "1", "script_type": "osis", "id": format!("job-{id}") });
        api.call("batch.submit", json!({ "jobs": [job], "id": id }));
    }
    assert_eq!(api.call("graph.get", json!(["1234"]))["graph"]["id"], "1234abcd-x");
    let (code, error) = api.fails(&admin(), "graph.stop", json!(["7f9c"]));
    assert_eq!(code, code::INVALID_PARAMS);
    assert!(error.message.contains("several graphs have ids that begin with 7f9c: 7f9c2ba4-"));
    assert_eq!(error.data.expect("data")["graphs"].as_array().map(Vec::len), Some(2));
    assert_eq!(api.fails(&admin(), "graph.get", json!(["7f9d"])).0, code::NOT_FOUND);
    let bounds = Bounds { types: words(&["osis"]), ..Bounds::default() };
    let bound = Caller { bounds, name: "other".to_owned(), ..admin() };
    assert_eq!(api.fails(&bound, "graph.get", json!(["1234"])).0, code::NOT_FOUND);
    assert_eq!(api.call("graph.stop", json!(["1234"]))["done"], 1);

    assert_eq!(api.call("get_job_status", json!(["job-1234"])), "error");
    let (code, error) = api.fails(&admin(), "stop_job", json!(["job-7f9c"]));
    assert_eq!(code, code::INVALID_PARAMS, "{error}");
    assert!(error.message.contains("several jobs have ids that begin with job-7f9c"), "{error}");
    let dead = api.call("dead.retry", json!({ "ids": ["job-7f9c2ba4-", "job-1234"] }));
    let problem = |place: usize| dead["problems"][place]["problem"].to_string();
    assert!(problem(0).contains("several jobs have ids"), "{dead}");
    assert!(problem(1).contains("job-1234abcd-x"), "the whole id is named: {dead}");
}

#[test]
fn bounds_beyond_those_of_the_type_are_refused_at_the_submission() {
    let api = Api::start(&[]);
    let greedy = json!({ "script": "1", "script_type": "python", "memory": "5GiB" });
    let refused = |method: &str, params: Value| {
        let (code, error) = api.fails(&admin(), method, params);
        assert_eq!(code, code::INVALID_PARAMS, "{method}: {error}");
        assert!(error.message.contains("the limit type.python.sandbox.memory_max"), "{error}");
    };
    for method in ["job.submit", "job.create", "job.run", "create_job"] {
        refused(method, json!({ "job": greedy }));
    }
    refused("graph.submit", json!([[{ "name": "a", "job": greedy }]]));
    let modest = json!({ "script": "1", "script_type": "python", "memory": "1GiB", "id": "a" });
    let batch = api.call("batch.submit", json!({ "jobs": [modest, greedy] }));
    assert_eq!(batch["ids"], json!(["a"]));
    let error = batch["refused"][0]["error"].to_string();
    assert!(error.contains("sandbox.memory_max"), "{batch}");
    refused("job.clone", json!({ "id": "a", "changes": { "memory": "5GiB" } }));
    let cron = json!({ "name": "c", "schedule": "@daily", "job": greedy });
    let (_, error) = api.fails(&admin(), "cron.add", cron);
    assert!(error.message.contains("sandbox.memory_max"), "{error}");
    assert_eq!(api.redis.all("JOB").len(), 1);
}
