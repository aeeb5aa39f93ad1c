//! The record of changes: who, what, to what, from where.

use std::collections::BTreeSet;

use hero::rpc::{Scope, code};
use serde_json::{Value, json};

use super::{Api, admin, caller};
use crate::support::{Frozen, Hero, request, wait_until};

/// Methods that leave no record: their results name their maker, or belong to the caller.
const MAKE_NEW: [&str; 17] = [
    "batch.submit",
    "create_job",
    "graph.submit",
    "job.clone",
    "job.create",
    "job.run",
    "job.start",
    "job.submit",
    "play",
    "run_job",
    "run_job_and_await_result",
    "script.check",
    "script.functions",
    "session.list",
    "session.run",
    "session.start",
    "start_job",
];

/// Prepares a call of each other method with a scope above `read`. Returns the method, its parameters and the name of
/// its record.
fn changes(api: &Api) -> Vec<(&'static str, Value, &'static str)> {
    let submit = |id: &str, script: &str, more: Value| {
        let mut job = json!({ "id": id, "script": script, "script_type": "osis" });
        job.as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        api.call("job.submit", json!({ "job": job }));
    };
    let later = json!({ "run_at": "2100-01-01T00:00:00Z" });
    for id in ["edited", "stopped", "many", "old-stop", "old-delete", "gone"] {
        submit(id, "1", later.clone());
    }
    // Those that are retried may not have failed again when the others are deleted.
    for (id, luck) in [("dead-1", "no luck"), ("dead-2", "worse"), ("again", "worst")] {
        submit(id, &format!("throw \"{luck}\""), json!({}));
        api.call("job.wait", json!({ "id": id, "wait": 30 }));
    }
    let graph = |id: &str| {
        let job = json!({ "script": "1", "script_type": "osis", "run_at": "2100-01-01T00:00:00Z" });
        api.call("graph.submit", json!({ "id": id, "jobs": [{ "name": "a", "job": job }] }));
    };
    graph("g");
    graph("gone-graph");
    let cron = json!({ "name": "more", "schedule": "0 3 * * *", "job": { "script": "1", "script_type": "osis" } });
    let script_of =
        |name: &str| json!({ "name": name, "script": "1", "settings": { "script_type": "osis" } });
    api.call("script.publish", script_of("kept"));
    api.call(
        "script.publish",
        json!({ "name": "kept", "script": "2", "settings": { "script_type": "osis" } }),
    );
    let script = "osis_set(\"thing\", #{ id: \"one\" }); 0";
    let job = json!({ "script": script, "script_type": "osis", "context_id": "c" });
    api.call("job.run", json!([job]));
    let session = api.call("session.start", json!({ "script_type": "bash", "wait": 0 }));
    let object = json!({ "type": "thing", "ids": ["one"], "context": "c" });
    let machine =
        json!({ "machine": api.call("machine.list", json!({}))["machines"][0]["machine"] });
    let (queue, actor) = (json!({ "queue": "type:osis" }), json!({ "actor": "osis:default:1" }));
    vec![
        ("job.edit", json!({ "id": "edited", "priority": 0 }), "job.edit"),
        ("job.tell", json!({ "id": "edited", "event": "approved" }), "job.tell"),
        ("job.stop", json!({ "id": "stopped" }), "job.stop"),
        ("job.retry", json!({ "id": "again" }), "job.retry"),
        ("job.change_many", json!({ "change": "stop", "ids": ["many"] }), "job.stop"),
        ("job.delete", json!({ "id": "gone" }), "job.delete"),
        ("stop_job", json!(["old-stop"]), "job.stop"),
        ("delete_job", json!(["old-delete"]), "job.delete"),
        ("session.end", json!({ "id": session["id"] }), "session.end"),
        ("object.delete", object, "object.delete"),
        ("graph.edit", json!({ "id": "g", "at_a_time": 2 }), "graph.edit"),
        ("graph.edit", json!({ "id": "g", "pause_after": "1 tell" }), "graph.edit"),
        ("graph.tell", json!({ "id": "g", "order": "go" }), "graph.tell"),
        ("graph.stop", json!({ "id": "g" }), "graph.stop"),
        ("graph.retry", json!({ "id": "g" }), "graph.retry"),
        ("graph.delete", json!({ "id": "gone-graph" }), "graph.delete"),
        ("dead.retry", json!({ "all": true, "error": "no luck" }), "job.retry"),
        ("dead.delete", json!({ "all": true }), "job.delete"),
        ("queue.pause", queue.clone(), "queue.pause"),
        ("queue.resume", queue.clone(), "queue.resume"),
        ("queue.drain", queue.clone(), "queue.pause"),
        ("queue.purge", queue, "queue.purge"),
        ("cron.add", cron, "cron.add"),
        ("cron.edit", json!({ "name": "more", "schedule": "0 4 * * *" }), "cron.edit"),
        ("cron.disable", json!({ "name": "more" }), "cron.disable"),
        ("cron.enable", json!({ "name": "more" }), "cron.enable"),
        ("cron.run", json!({ "name": "more" }), "cron.run"),
        ("cron.backfill", json!({ "name": "more", "since": "2d" }), "cron.backfill"),
        ("cron.delete", json!({ "name": "more" }), "cron.delete"),
        ("script.publish", script_of("more"), "script.publish"),
        ("script.rollback", json!({ "name": "kept", "version": 1 }), "script.rollback"),
        ("script.delete", json!({ "name": "more" }), "script.delete"),
        ("notify.test", json!({ "name": "ops" }), "notify.test"),
        ("actor.drain", actor.clone(), "actor.drain"),
        ("actor.resume", actor.clone(), "actor.resume"),
        ("machine.drain", machine.clone(), "machine.drain"),
        ("machine.resume", machine, "machine.resume"),
        ("job.clear", json!({ "yes": true }), "job.clear"),
        ("clear_all_jobs", json!({ "yes": true }), "job.clear"),
        ("actor.stop", actor, "actor.stop"),
    ]
}

#[test]
fn every_method_that_changes_something_leaves_a_record() {
    let all_dead = |hero: Hero| {
        hero.add("[type.osis]\ndead_letters = \"all\"\n[notify.ops]\njournal = true\n")
    };
    let api = Api::with(&["osis-default-1"], all_dead);
    let document = api.call("rpc.discover", json!({}));
    let changes = changes(&api);
    let covered: BTreeSet<&str> = changes
        .iter()
        .map(|(method, ..)| *method)
        .chain(MAKE_NEW)
        // It has one where a machine is absent: tests/e2e/machines.rs.
        .chain(["audit.list", "notify.list", "hook.list", "hook.test", "machine.forget"])
        .collect();
    for method in document["methods"].as_array().expect("methods") {
        let name = method["name"].as_str().expect("a name");
        let changes = method.get("x-scope").is_some_and(|scope| scope != "read");
        assert!(!changes || covered.contains(name), "{name} has no record in this test");
    }
    let latest =
        || api.call("audit.list", json!({ "limit": 1000, "who": "root" }))["records"].clone();
    let number = |records: &Value| records.as_array().map_or(0, Vec::len);
    for (method, params, what) in changes {
        let before = number(&latest());
        api.call(method, params);
        let after = latest();
        // A queue without a priority stands for the queues of all priorities, each with a record.
        let new = number(&after) - before;
        assert!(new > 0, "{method} leaves no record: {after}");
        for record in after.as_array().into_iter().flatten().take(new) {
            let named = (&record["what"], &record["through"], &record["from"]);
            assert_eq!(named, (&json!(what), &json!("API"), &json!("127.0.0.1")), "{method}");
        }
    }
}

#[test]
fn change_whose_answer_was_lost_is_recorded_once_redis_answers() {
    let api = Api::start(&[]);
    let job = json!({ "id": "a", "script": "1", "script_type": "osis" });
    api.call("job.submit", json!({ "job": job }));
    let frozen = Frozen::new(api.redis.pid());
    let asked = request("job.stop", &json!({ "id": "a" }));
    let answer = api.site.unix().post("/rpc", &[], &asked).json();
    assert!(answer["error"]["message"].to_string().contains("cannot be reached"), "{answer}");
    // A read changes nothing.
    let read = request("job.get", &json!({ "id": "a" }));
    assert!(!api.site.unix().post("/rpc", &[], &read).json()["error"].is_null());
    drop(frozen);
    let records = || api.call("audit.list", json!({ "what": "job" }))["records"].clone();
    wait_until("it is recorded", || records()[0]["what"] == "job.stop");
    let records = records();
    let to = records[0]["to"].as_str().expect("a text");
    assert!(to.starts_with("a: it is not known whether this was done: redis at "), "{to}");
    assert_eq!(records.as_array().map(Vec::len), Some(1), "{records}");
    assert_eq!(records[0]["through"], "API");
}

#[test]
fn record_of_changes_is_for_admins_and_has_filters() {
    let api = Api::start(&[]);
    for id in ["a", "b"] {
        let job = json!({ "id": id, "script": "1", "script_type": "osis" });
        api.call("job.submit", json!({ "job": job }));
    }
    api.call("job.stop", json!(["a"]));
    let done = api.site.hero.run(&["job", "stop", "b"]).code(0);
    assert_eq!(done.stdout, "b stopped\n");
    api.call("queue.pause", json!(["type:osis:prio:0"]));
    let found = |filter: Value| -> Vec<String> {
        let records = api.call("audit.list", filter);
        let to = records["records"].as_array().expect("records").iter().map(|of| of["to"].clone());
        to.map(|to| to.as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(found(json!({ "what": "job.stop" })), ["b", "a"]);
    assert_eq!(found(json!({ "what": "queue" })), ["type:osis:prio:0"]);
    assert_eq!(found(json!({ "what": "jo" })), [""; 0]);
    assert_eq!(found(json!({ "what": "job", "who": "uid" })), ["b"]);
    assert_eq!(found(json!({ "since": "2100-01-01T00:00:00Z" })), [""; 0]);
    let turned = json!({ "since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z" });
    assert_eq!(api.fails(&admin(), "audit.list", turned).0, code::INVALID_PARAMS);
    let operator = caller("op", &[Scope::Read, Scope::Submit, Scope::Operate]);
    assert_eq!(api.fails(&operator, "audit.list", json!({})).0, code::NOT_PERMITTED);
    let by_command = api.site.hero.run(&["audit", "--what", "job.stop", "--json"]).code(0).stdout;
    let by_command: Value = serde_json::from_str(&by_command).expect("JSON");
    let by_api =
        api.call_as(&admin(), "audit.list", json!({ "what": "job.stop" })).expect("permitted");
    assert_eq!(by_command["records"], by_api["records"]);
    let shown = api.call("job.get", json!(["a"]));
    assert_eq!(shown["stopped_by"], "root from 127.0.0.1");
    api.site.hero.run(&["audit", "--who", "nobody at all"]).code(0).says("no change is recorded");
    let page = api.site.hero.run(&["job", "show", "b"]).code(0).stdout;
    let said = page.lines().find(|line| line.starts_with("status ")).expect("a state");
    assert!(said.contains("cancelled, stopped by ") && said.contains("(uid "), "{page}");
}

#[test]
fn period_of_changes_is_written_as_on_the_command_line() {
    let api = Api::start(&["osis-default-1"]);
    api.call("queue.pause", json!({ "queue": "type:osis" }));
    let records =
        |since: &str| api.call("audit.list", json!({ "since": since }))["records"].clone();
    for since in ["1h", "2020-01-01T00:00:00Z", "yesterday"] {
        assert_eq!(records(since)[0]["what"], "queue.pause", "{since}");
    }
    let (code, error) = api.fails(&admin(), "audit.list", json!({ "since": "soon" }));
    assert_eq!(code, code::INVALID_PARAMS, "{error}");
}
