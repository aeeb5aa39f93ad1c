//! The bounds of a token go with what it submits and corrects, to the run of each job.

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Value, json};

use super::{Api, caller, words};
use crate::support::owners::{OWNERS, reaches};
use crate::support::{keys, until, wait_until};

const FAR: &str = "2999-01-01T00:00:00Z";

/// A token that is bound to bash and to these groups.
fn bound_to(groups: &[&str]) -> Caller {
    let bounds = Bounds { types: words(&["bash"]), groups: words(groups), ..Bounds::default() };
    Caller { bounds, ..caller("sub", &[Scope::Read, Scope::Submit]) }
}

fn bash(id: &str, script: &str) -> Value {
    json!({ "id": id, "script": script, "script_type": "bash", "group": "g" })
}

/// The bounds that a job has.
fn bounds_of(api: &Api, id: &str) -> Value {
    let text = api.redis.field(&keys::job(id), "bounds").unwrap_or("null".to_owned());
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn everything_that_a_bound_token_submits_or_corrects_has_its_bounds() {
    let api = Api::start(&["bash-g-1"]);
    let settings = json!({ "script_type": "bash", "group": "g" });
    api.call(
        "script.publish",
        json!({ "name": "deploy", "script": "echo 1", "settings": settings }),
    );
    let (who, expected) = (bound_to(&["g"]), json!({ "types": ["bash"], "groups": ["g"] }));
    let ask = |method: &str, params: Value| api.call_as(&who, method, params).expect(method);
    let has_bounds = |what: &str, id: &str| assert_eq!(bounds_of(&api, id), expected, "{what}");

    ask("job.submit", json!([{ "id": "published", "uses": "deploy" }]));
    has_bounds("a job of a published script", "published");
    ask("job.run", json!([bash("first", "exit 1")]));
    ask("job.retry", json!(["first"]));
    has_bounds("a retry", "first");
    let copy = ask("job.clone", json!(["first"]));
    has_bounds("a copy", copy["id"].as_str().expect("an id"));

    let callback = || json!({ "script": "echo 1", "script_type": "bash", "group": "g" });
    let batch =
        json!({ "jobs": [bash("b", "exit 1")], "on_failure": callback(), "on_end": callback() });
    let batch = ask("batch.submit", batch)["id"].as_str().expect("an id").to_owned();
    let jobs = json!([{ "name": "a", "job": bash("a", "exit 0") }]);
    let graph = json!({ "id": "graph", "jobs": jobs, "on_success": callback() });
    ask("graph.submit", graph);
    for (graph, callback) in [(&*batch, "on_failure"), (&batch, "on_end"), ("graph", "on_success")]
    {
        let key = keys::keys().graph(&graph.parse().expect("legal"));
        let job = || api.redis.field(&key, &format!("{callback}_job"));
        wait_until(callback, || job().is_some());
        has_bounds(callback, &job().expect("a job"));
    }

    // A job that was submitted for it by a caller without bounds.
    for (id, method) in [("edited", "job.edit"), ("retried", "job.retry")] {
        let mut job = bash(id, "exit 1");
        job["caller_id"] = json!("sub");
        if method == "job.edit" {
            job["run_at"] = json!(FAR);
        }
        api.call("job.submit", json!([job]));
        until(&api.redis, id, if method == "job.edit" { "scheduled" } else { "error" });
        assert_eq!(bounds_of(&api, id), Value::Null);
        ask(method, json!({ "id": id, "changes": { "script": "echo 2" } }));
        has_bounds(method, id);
    }
}

#[test]
fn copy_for_every_machine_or_actor_has_the_bounds_of_its_token() {
    let api = Api::start(&["bash-g-1"]);
    let bounds = Bounds { types: words(&["bash"]), ..Bounds::default() };
    let who = Caller { bounds, ..caller("sub", &[Scope::Read, Scope::Submit, Scope::Operate]) };
    for every in ["machine", "actor"] {
        let job = json!({ "script": "echo 1", "script_type": "bash" });
        let batch = json!({ "jobs": [job], "every": every });
        let batch = api.call_as(&who, "batch.submit", batch).expect("submitted");
        let id = batch["ids"][0].as_str().expect("an id");
        assert_eq!(bounds_of(&api, id), json!({ "types": ["bash"] }), "{every}");
    }
    let who = caller("sub", &[Scope::Submit]);
    let batch = json!({ "jobs": [{ "script": "1", "script_type": "bash" }], "every": "machine" });
    let (refused, error) = api.fails(&who, "batch.submit", batch);
    assert_eq!(refused, code::NOT_PERMITTED, "{error}");
}

#[test]
fn copies_of_a_token_with_the_scope_fleet_stay_within_its_groups() {
    let api = Api::start(&["bash-g-1", "bash-h-1", "bash-h-2"]);
    let bound = |scopes: &[Scope]| {
        let bounds = Bounds { groups: words(&["h", "i"]), ..Bounds::default() };
        Caller { bounds, ..caller("sub", scopes) }
    };
    let who = bound(&[Scope::Read, Scope::Submit, Scope::Fleet]);
    let batch = |every: &str, more: Value| {
        let mut job = json!({ "script": "echo 1", "script_type": "bash" });
        job.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("one"));
        json!({ "jobs": [job], "every": every })
    };
    for (every, number) in [("machine", 1), ("actor", 2)] {
        let done = api.call_as(&who, "batch.submit", batch(every, json!({}))).expect("submitted");
        let ids = done["ids"].as_array().expect("ids");
        assert_eq!(ids.len(), number, "{done}");
        for id in ids.iter().filter_map(Value::as_str) {
            let job = api.call_as(&who, "job.get", json!([id])).expect("its own");
            assert_eq!((&job["group"], &job["fallback"]), (&json!("h"), &json!("none")), "{job}");
            assert_eq!(bounds_of(&api, id), json!({ "groups": ["h", "i"] }), "{every}");
        }
    }
    let beyond = batch("machine", json!({ "where": "group = g" }));
    assert_eq!(api.fails(&who, "batch.submit", beyond).0, code::NOT_FOUND);
    let fallback = batch("machine", json!({ "fallback": "type" }));
    assert_eq!(api.fails(&who, "batch.submit", fallback).0, code::NOT_PERMITTED);
    api.call(
        "job.submit",
        json!([{ "id": "foreign", "script": "1", "script_type": "bash", "group": "g" }]),
    );
    let waits = batch("machine", json!({ "prerequisites": ["foreign"] }));
    assert_eq!(api.fails(&who, "batch.submit", waits).0, code::NOT_FOUND);
    // The scope operate alone is as it was.
    let operator = bound(&[Scope::Read, Scope::Submit, Scope::Operate]);
    api.fails(&operator, "batch.submit", batch("machine", json!({})));
}

#[test]
fn corrected_job_has_what_the_bounds_of_both_tokens_allow() {
    let api = Api::start(&[]);
    let mut job = bash("j", "echo 1");
    job["run_at"] = json!(FAR);
    api.call_as(&bound_to(&["g", "h"]), "job.submit", json!([job])).expect("its own");
    let edit = json!({ "id": "j", "changes": { "script": "echo 2" } });
    api.call_as(&bound_to(&["g", "i"]), "job.edit", edit.clone()).expect("its own");
    assert_eq!(bounds_of(&api, "j"), json!({ "types": ["bash"], "groups": ["g"] }));
    // A caller without bounds takes none away.
    api.call("job.edit", json!({ "id": "j", "changes": { "script": "echo 3" } }));
    assert_eq!(bounds_of(&api, "j"), json!({ "types": ["bash"], "groups": ["g"] }));
}

#[test]
fn job_beyond_the_bounds_of_its_token_is_moved_nowhere_and_runs_nowhere() {
    let api = Api::start(&["bash-g-1", "bash-other-1"]);
    let who = bound_to(&["g"]);
    let mut job = bash("j", "echo 1");
    job["run_at"] = json!(FAR);
    api.call_as(&who, "job.submit", json!([job])).expect("its own");
    for group in ["other", ""] {
        let moved = json!({ "id": "j", "group": group });
        let (refused, error) = api.fails(&super::admin(), "job.edit", moved);
        assert_eq!(refused, code::INVALID_PARAMS, "{error}");
        assert!(error.message.contains("bounds of the token"), "{error}");
    }
    // A program that writes to Redis moves it.
    for (id, script_type, group) in [("m", "bash", "other"), ("n", "bash", "g")] {
        let bounds = if id == "m" { r#"{"groups":["g"]}"# } else { r#"{"types":["osis"]}"# };
        api.redis.set_field(&keys::job(id), "bounds", bounds);
        let fields =
            format!("id {id} status dispatched script_type {script_type} group {group} script ran");
        api.redis.set_job(id, &fields);
        api.redis.push(&keys::work(&format!("type:{script_type}:group:{group}")), &[id]);
        until(&api.redis, id, "error");
        let error = api.redis.field(&keys::job(id), "error").expect("a reason");
        assert!(error.contains("bounds") && error.contains("is not among"), "{error}");
    }
}

#[test]
fn log_file_of_a_bound_token_is_in_the_folder_of_its_caller() {
    let api = Api::start(&["bash-g-1"]);
    let who = bound_to(&["g"]);
    let with = |path: &str| {
        let job =
            json!({ "script": "echo 1", "script_type": "bash", "group": "g", "log_path": path });
        json!({ "job": job, "wait": 20 })
    };
    for path in ["other/a.log", "a.log", "/sub/a.log"] {
        let (refused, error) = api.fails(&who, "job.run", with(path));
        assert_eq!(refused, code::INVALID_PARAMS, "{path}: {error}");
    }
    let done = api.call_as(&who, "job.run", with("sub/a.log")).expect("its own");
    assert_eq!(done["status"], "finished", "{done}");
}

#[test]
fn script_reaches_the_objects_of_the_contexts_of_its_token_alone() {
    let api = Api::with(&["osis-g-1"], |hero| hero.set("osis.access.sub", "[\"home\"]"));
    let set = "osis_set(\"note\", #{id: \"n\", text: \"hush\"})";
    for context in ["", "home", "work"] {
        let job =
            json!({ "script": set, "script_type": "osis", "group": "g", "context_id": context });
        assert_eq!(api.call("job.run", json!([job]))["status"], "finished");
    }
    let get = "osis_get(\"note\", \"n\").text";
    let scopes = [Scope::Read, Scope::Submit, Scope::Operate];
    let token = |bounds| Caller { bounds, ..caller("sub", &scopes) };
    let free = Bounds::default;
    let (of_type, of_context) = (
        token(Bounds { types: words(&["osis"]), ..free() }),
        token(Bounds { contexts: words(&["work"]), ..free() }),
    );
    let other = format!("osis_use(\"home\"); {get}");
    for (who, script, context, is_done) in [
        (&of_type, get, "", false),
        (&of_type, &*other, "", false),
        (&of_type, "40 + 2", "", true),
        (&of_context, get, "work", true),
        (&of_context, &other, "work", false),
        (&token(free()), get, "", true),
        (&token(free()), &other, "work", true),
    ] {
        let job =
            json!({ "script": script, "script_type": "osis", "group": "g", "context_id": context });
        let ran = api.call_as(who, "job.run", json!({ "job": job, "wait": 30 })).expect("a job");
        let what = format!("{script} by {:?}: {ran}", who.bounds);
        assert_eq!(ran["status"] == "finished", is_done, "{what}");
        assert!(is_done || !ran.to_string().contains("hush"), "{what}");
        assert!(is_done || ran["error"].to_string().contains("contexts of the token"), "{what}");
    }
}

#[test]
fn wait_of_a_script_tells_states_of_jobs_that_its_token_may_know_alone() {
    let api = Api::start(&["bash-io-1"]);
    for (number, [caller, script_type, group, context]) in OWNERS.iter().enumerate() {
        let fields = format!(
            "script 1 status finished caller_id {caller} script_type {script_type} group {group} context_id {context}"
        );
        api.redis.set_job(&format!("ended-{number}"), &fields);
    }
    let ids: Vec<String> = (0..OWNERS.len()).map(|number| format!("ended-{number}")).collect();
    let wait = json!({ "wait": { "jobs": ids } });
    let script =
        format!("[ -n \"$HERO_EVENT\" ] && echo \"$HERO_EVENT\" || echo '{wait}' >&$HERO_FD");
    let mut tokens: Vec<Caller> = super::tokens().map(|(_, token)| token).into();
    // Those that may submit for bob, of whom one may read nothing, and one that may read nothing and change everything.
    let for_bob = || Bounds { callers: words(&["bob"]), ..Bounds::default() };
    let one = |scopes: &[Scope], bounds| Caller { bounds, ..caller("ann", scopes) };
    tokens.push(one(&[Scope::Submit], for_bob()));
    tokens.push(one(&[Scope::Submit, Scope::Read], for_bob()));
    tokens.push(one(&[Scope::Submit, Scope::Operate], Bounds::default()));
    for mut token in tokens {
        if let Some(types) = &mut token.bounds.types {
            types.insert("bash".to_owned());
        }
        let names_bob = token.bounds.callers.as_ref().is_some_and(|all| all.contains("bob"))
            || token.bounds == Bounds::default() && token.scopes.has(Scope::Operate);
        let of = if names_bob { vec!["ann", "bob"] } else { vec!["ann"] };
        for of in of {
            let job =
                json!({ "script": script, "script_type": "bash", "group": "io", "caller_id": of });
            let ran =
                api.call_as(&token, "job.run", json!({ "job": job, "wait": 30 })).expect("a job");
            let event: Value =
                serde_json::from_str(ran["output"].as_str().expect("an event")).expect("JSON");
            // A script knows the jobs of its caller; of a token that may not read, those of the token.
            let knows = if token.scopes.has(Scope::Read) { of } else { "ann" };
            for (id, owner) in ids.iter().zip(OWNERS) {
                let is_known = reaches(knows, false, &token.bounds, owner);
                let expected = if is_known { "finished" } else { "missing" };
                assert_eq!(event["jobs"][id], expected, "{owner:?} for {of} by {token:?}: {event}");
            }
        }
    }
}
