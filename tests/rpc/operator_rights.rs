//! Rights of operators and admins: types without a sandbox that are not named for the caller, bulk deletes, and lookups without the
//! scope `read`.

use hero::rpc::{Caller, Scope, code};
use serde_json::{Value, json};

use super::{Api, caller};

const ALL: [Scope; 4] = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];

/// An operator who may not read.
fn blind() -> Caller {
    caller("ann", &[Scope::Submit, Scope::Operate])
}

#[test]
fn periodic_job_and_script_of_a_type_are_changed_by_callers_alone_for_whom_it_is_named() {
    let api = Api::with(&[], |hero| hero.set("type.sal.who", "[\"boss\"]"));
    let (boss, other) = (caller("boss", &ALL), caller("ann", &ALL));
    let job = json!({ "script": "1", "script_type": "sal" });
    let added = json!({ "name": "nightly", "schedule": "@yearly", "job": job });
    api.call_as(&boss, "cron.add", added).expect("it is named");
    let script = json!({ "name": "tidy", "script": "1", "settings": { "script_type": "sal" } });
    api.call_as(&boss, "script.publish", script).expect("it is named");
    for (method, params) in [
        ("cron.edit", json!({ "name": "nightly", "schedule": "* * * * * *" })),
        ("cron.edit", json!({ "name": "nightly", "every": "actor" })),
        (
            "cron.edit",
            json!({ "name": "nightly", "job": { "script_type": "bash", "script": "echo" } }),
        ),
        ("cron.delete", json!({ "name": "nightly" })),
        ("script.delete", json!({ "name": "tidy" })),
    ] {
        let (refused, error) = api.fails(&other, method, params);
        assert_eq!(refused, code::NOT_PERMITTED, "{method}: {error}");
    }
    api.call_as(&boss, "cron.edit", json!({ "name": "nightly", "schedule": "@daily" }))
        .expect("it is named");
    api.call_as(&boss, "cron.delete", json!({ "name": "nightly" })).expect("it is named");
    api.call_as(&boss, "script.delete", json!({ "name": "tidy" })).expect("it is named");
}

#[test]
fn jobs_of_others_that_a_filter_finds_are_deleted_by_admins_alone() {
    let api = Api::start(&[]);
    let later = json!({ "script": "1", "script_type": "osis", "run_at": "2999-01-01T00:00:00Z" });
    api.call("job.submit", json!({ "job": later }));
    let all = json!({ "change": "delete", "filter": {}, "yes": true });
    let operator = caller("ann", &ALL[..3]);
    assert_eq!(api.fails(&operator, "job.change_many", all.clone()).0, code::NOT_PERMITTED);
    let looked = json!({ "change": "delete", "filter": {}, "dry_run": true });
    api.call_as(&operator, "job.change_many", looked).expect("it changes nothing");
    // Its own, by a caller who changes no others.
    let submitter = caller("bob", &ALL[..2]);
    api.call_as(&submitter, "job.submit", json!({ "job": later })).expect("submitted");
    let done = api.call_as(&submitter, "job.change_many", all.clone()).expect("its own");
    assert_eq!(done["done"], 1, "{done}");
    assert_eq!(api.call("job.change_many", all)["done"], 1);
}

#[test]
fn operator_who_may_not_read_finds_nothing_of_others_by_names_or_beginnings() {
    let api = Api::start(&[]);
    let later = json!({ "script": "1", "script_type": "osis", "run_at": "2999-01-01T00:00:00Z" });
    let id = api.call("job.submit", json!({ "job": later }))["id"].clone();
    let begin: String = id.as_str().expect("an id").chars().take(8).collect();
    api.call("batch.submit", json!({ "jobs": [later], "name": "payroll" }));
    for (method, params) in [
        ("graph.edit", json!({ "id": "payroll", "at_a_time": 9 })),
        ("graph.tell", json!({ "id": "payroll", "order": "go" })),
        ("job.edit", json!({ "id": begin, "run_at": "2998-01-01T00:00:00Z" })),
        ("job.stop", json!([begin])),
    ] {
        assert_eq!(api.fails(&blind(), method, params).0, code::NOT_FOUND, "{method}");
    }
    let sessions = api.call_as(&blind(), "session.list", Value::Null).expect("a list");
    assert_eq!(sessions["sessions"], json!([]));
    api.call_as(&blind(), "job.stop", json!([id])).expect("by its whole id");
}

#[test]
fn id_of_a_batch_in_place_of_a_job_is_named_as_such() {
    let api = Api::start(&[]);
    let job = json!({ "script": "1", "script_type": "osis" });
    let batch = api.call("batch.submit", json!({ "jobs": [job] }))["id"].clone();
    let (_, error) = api.fails(&caller("ann", &ALL), "job.get", json!([batch]));
    assert!(error.message.contains("but a graph or batch: "), "{error}");
    let (_, error) = api.fails(&caller("bob", &ALL[1..2]), "job.stop", json!([batch]));
    assert!(error.message.contains("no such job: "), "{error}");
}
