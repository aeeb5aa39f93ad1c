//! Unique keys among callers: a key belongs to a caller and context, unless the configuration shares it.

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Value, json};

use super::{Api, admin, caller, words};
use crate::support::{keys, wait_until};

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
        assert!(said.contains("is held by a job that the caller may not see"), "{method}: {said}");
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

#[test]
fn ids_of_callbacks_are_those_of_their_graph() {
    let api = Api::start(&[]);
    let digits = "0123456789abcdef".repeat(2);
    for id in [format!("callback-{digits}"), format!("s1-callback-{digits}")] {
        let given = json!({ "id": id, "script": "1", "script_type": "osis" });
        for (method, params) in [
            ("job.submit", json!([given])),
            ("job.create", json!([given])),
            ("job.run", json!([given])),
            ("graph.submit", json!([[{ "name": "a", "job": given }]])),
        ] {
            let (code, error) = api.fails(&submitter("ann"), method, params);
            assert_eq!(code, code::INVALID_PARAMS, "{method}: {error}");
            assert!(error.message.contains("callbacks of graphs"), "{method}: {error}");
        }
        let batch = api.call_as(&submitter("ann"), "batch.submit", json!([[given]]));
        assert_eq!(batch.expect("a result")["ids"], json!([]));
    }
}

#[test]
fn id_that_a_command_takes_for_an_option_is_refused() {
    let api = Api::start(&[]);
    let far = |id: &str| {
        let mut job =
            json!({ "script": "1", "script_type": "osis", "run_at": "9999-12-31T23:59:59Z" });
        if !id.is_empty() {
            job["id"] = json!(id);
        }
        job
    };
    for id in ["--yes", "-"] {
        for (method, params) in [
            ("job.submit", json!({ "job": far(id) })),
            ("job.create", json!({ "job": far(id) })),
            ("job.run", json!({ "job": far(id) })),
            ("graph.submit", json!({ "jobs": [{ "name": "a", "job": far(id) }] })),
            ("graph.submit", json!({ "id": id, "jobs": [{ "name": "a", "job": far("") }] })),
            ("batch.submit", json!({ "id": id, "jobs": [far("")] })),
            ("batch.submit", json!({ "id": id, "jobs": [far("")], "all_or_none": true })),
        ] {
            let (code, error) = api.fails(&submitter("ann"), method, params);
            assert_eq!(code, code::INVALID_PARAMS, "{method}: {error}");
            assert!(error.message.contains("take for an option"), "{method}: {error}");
        }
    }
    assert_eq!(api.call("job.list", json!({}))["jobs"], json!([]));
}

#[test]
fn job_whose_time_other_programs_write_for_never_is_shown() {
    let api = Api::start(&[]);
    let job = json!({ "id": "never", "script": "1", "script_type": "osis", "run_at": "9999-12-31T23:59:59Z" });
    api.call("job.submit", json!([job]));
    let fields = "script 1 script_type osis status scheduled run_at 9999-12-31T23:59:59.999Z";
    api.redis.set_job("foreign", fields);
    let bearer = format!("Bearer {}", api.site.token(&["pages", "--scope", "read"]));
    for id in ["never", "foreign"] {
        let shown = api.call("job.get", json!([id]));
        assert!(shown["run_at"].to_string().contains("9999-12-30"), "{shown}");
        let headers = [("authorization", bearer.as_str()), ("accept", "text/html")];
        let page = api.site.tcp().get(&format!("/jobs/{id}"), &headers);
        assert_eq!(page.status, 200, "{}", page.text());
    }
}

/// A token of bob that reads, and sees its own jobs alone.
fn reader_of_bob() -> Caller {
    let bounds = Bounds { callers: words(&["bob"]), ..Bounds::default() };
    Caller { bounds, ..caller("bob", &[Scope::Read, Scope::Submit]) }
}

#[test]
fn no_answer_names_a_holder_of_a_key_that_its_caller_may_not_see() {
    let api =
        Api::with(&["osis-default-1"], |hero| hero.set("api.shared_unique_keys", "[\"deploy-*\"]"));
    let bob = reader_of_bob();
    let ask = |method: &str, params: Value| api.call_as(&bob, method, params).expect(method);
    let failing = |id: &str, key: &str| job(key, json!({ "id": id, "script": "throw 1" }));
    ask("job.run", json!([failing("mine", "deploy-1")]));
    let graph = json!([{ "name": "a", "job": failing("member", "deploy-2") }]);
    ask("graph.submit", json!({ "id": "graph", "jobs": graph }));
    ask("graph.wait", json!(["graph"]));
    for number in 1..=3 {
        let more = json!({ "id": format!("held-{number}"), "run_at": "2999-01-01T00:00:00Z" });
        let held = job(&format!("deploy-{number}"), more);
        api.call_as(&submitter("ann"), "job.submit", json!([held])).expect("a job");
    }
    let jobs = json!([{ "name": "a", "job": { "script": "1", "script_type": "osis" } }]);
    let with_callback =
        json!({ "id": "called", "jobs": jobs, "on_end": job("deploy-3", json!({})) });
    ask("graph.submit", with_callback);
    ask("graph.wait", json!(["called"]));
    let settling = keys::keys().settling();
    wait_until("it is settled", || api.redis.ask::<u64>(&format!("LLEN {settling}")) == 0);
    let (_, error) = api.fails(&bob, "job.retry", json!(["mine"]));
    let changed = json!({ "change": "retry", "ids": ["mine"] });
    for (what, said) in [
        ("job.retry", format!("{error} {:?}", error.data)),
        ("job.change_many", ask("job.change_many", changed).to_string()),
        ("graph.retry", ask("graph.retry", json!(["graph"])).to_string()),
    ] {
        assert!(
            said.contains("a job that the caller may not see holds its unique key"),
            "{what}: {said}"
        );
        assert!(!said.contains("held-"), "{what}: {said}");
    }
    for method in ["graph.get", "graph.wait"] {
        let said = ask(method, json!(["called"])).to_string();
        assert!(!said.contains("held-"), "{method}: {said}");
    }
    // Who may see it learns it.
    let (_, error) = api.fails(&admin(), "job.retry", json!(["mine"]));
    assert!(error.message.contains("held-1"), "{error}");
    let retried = api.call("graph.retry", json!(["graph"])).to_string();
    assert!(retried.contains("job held-2 holds its unique key"), "{retried}");
}

#[test]
fn script_learns_no_holder_of_its_key_beyond_the_bounds_of_its_token() {
    let api = Api::with(&["bash-g-1"], |hero| hero.set("type.bash.may_submit", "[\"bash\"]"));
    let bounds = Bounds { types: words(&["bash"]), ..Bounds::default() };
    let bound = Caller { bounds, ..caller("sub", &[Scope::Read, Scope::Submit]) };
    for (id, script_type, is_named) in [("held-1", "osis", false), ("held-2", "bash", true)] {
        let more = json!({
            "id": id, "run_at": "2999-01-01T00:00:00Z", "caller_id": "sub", "script_type": script_type,
        });
        api.call("job.submit", json!([job(id, more)]));
        let child = json!({
            "submit": { "type": "bash", "group": "g", "script": "1", "unique_key": id, "name": "c" },
        });
        let script = format!(
            "printf '%s\\n' '{child}' >&$HERO_FD; read -r answer <&$HERO_FD_IN; echo \"${{answer//held-/HELD-}}\""
        );
        let parent = json!({ "script": script, "script_type": "bash", "group": "g" });
        let ran =
            api.call_as(&bound, "job.run", json!({ "job": parent, "wait": 30 })).expect("a job");
        let said = ran["output"].as_str().expect("an output");
        assert!(said.contains("holds its unique key"), "{said}");
        assert_eq!(said.contains("HELD-"), is_named, "{said}");
    }
}

#[test]
fn history_of_a_periodic_job_names_no_key_holder_beyond_the_bounds() {
    let api = Api::start(&[]);
    let job = json!({ "script": "1", "script_type": "osis" });
    api.call("cron.add", json!({ "name": "c", "schedule": "@yearly", "job": job }));
    let at = "2026-01-01T00:00:00Z";
    let firing =
        json!([{ "due": at, "at": at, "did": "left_out", "id": "held-1", "why": "unique_key" }]);
    api.redis.set_field(&keys::cron("c"), "history", firing.to_string());
    let bounds = Bounds { types: words(&["osis"]), ..Bounds::default() };
    let bound = Caller { bounds, ..caller("sub", &[Scope::Read]) };
    for method in ["cron.history", "cron.get"] {
        let name = json!({ "name": "c" });
        let shown = api.call_as(&bound, method, name.clone()).expect(method).to_string();
        assert!(shown.contains("unique_key") && !shown.contains("held-1"), "{method}: {shown}");
        assert!(api.call(method, name).to_string().contains("held-1"), "{method}");
    }
}
