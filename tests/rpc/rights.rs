//! Rights are decided on the job that has an id when it is changed or read: ids that are taken, that were used again, and
//! jobs that are written by another name.

use std::thread;

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Value, json};

use super::{Api, admin, caller, words};
use crate::support::{keys, wait_until};

pub(super) const FAR: &str = "2999-01-01T00:00:00Z";

fn submitter() -> Caller {
    caller("sub", &[Scope::Submit])
}

/// The callers that may not see the job of the victim.
fn strangers() -> [Caller; 2] {
    let bounds = Bounds { callers: words(&["sub"]), ..Bounds::default() };
    [submitter(), Caller { bounds, ..caller("sub", &[Scope::Read, Scope::Submit]) }]
}

pub(super) fn osis(id: &str, script: &str, more: Value) -> Value {
    let mut job = json!({ "id": id, "script": script, "script_type": "osis" });
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    job
}

/// The job of somebody else, whose output is `hush`.
fn victim(id: &str, more: Value) -> Value {
    let mut job = osis(id, "\"hush\"", json!({ "caller_id": "victim", "context_id": "home" }));
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    job
}

pub(super) fn fields(api: &Api, id: &str) -> Vec<String> {
    let mut fields: Vec<String> = api
        .redis
        .ask::<Vec<String>>(&format!("HGETALL {}", keys::job(id)))
        .chunks(2)
        .map(|pair| pair.join("="))
        .collect();
    fields.sort();
    fields
}

#[test]
fn refused_job_of_a_batch_is_no_known_prerequisite_of_the_others() {
    let api = Api::start(&["osis-default-1"]);
    api.call("job.run", json!([victim("v", json!({}))]));
    for (number, who) in strangers().iter().enumerate() {
        let own = format!("own-{number}");
        for waits in ["prerequisites", "after_any"] {
            let dependent = osis(&own, "1", json!({ waits: ["v"] }));
            let batch = json!([[osis("v", "1", json!({})), dependent]]);
            let done = api.call_as(who, "batch.submit", batch).expect("a result");
            assert_eq!(done["ids"], json!([]), "{done}");
            assert_eq!(done["refused"].as_array().map(Vec::len), Some(2), "{done}");
            assert_eq!(fields(&api, &own), [""; 0]);
        }
        // A job of the batch that was stored is one.
        let first = format!("first-{number}");
        let dependent = osis(&own, "1", json!({ "prerequisites": [first] }));
        let batch = json!([[osis(&first, "1", json!({})), dependent]]);
        let done = api.call_as(who, "batch.submit", batch).expect("a result");
        assert_eq!(done["ids"].as_array().map(Vec::len), Some(2), "{done}");
    }
}

#[test]
fn graph_changes_no_later_job_with_the_id_of_a_deleted_member() {
    let api = Api::start(&["osis-default-1"]);
    let far = json!({ "run_at": FAR });
    for (number, who) in [submitter(), admin()].iter().enumerate() {
        for (method, member, later) in [
            ("graph.delete", far.clone(), victim("", far.clone())),
            ("graph.stop", far.clone(), victim("", far.clone())),
            (
                "graph.retry",
                json!({ "script": "throw 1" }),
                victim("", json!({ "script": "throw 2" })),
            ),
        ] {
            let (id, graph) =
                (format!("m-{number}-{}", &method[6..]), format!("g-{number}-{}", &method[6..]));
            let of_b = format!("b-{id}");
            let other = json!({ "name": "b", "job": osis(&of_b, "1", json!({})) });
            let jobs = json!([{ "name": "a", "job": osis(&id, "1", member) }, other]);
            api.call_as(who, "graph.submit", json!({ "id": graph, "jobs": jobs }))
                .expect("a graph");
            let is_over = method == "graph.retry";
            let at_rest = |id: &str, state: &str| {
                let state = format!("status={state}");
                wait_until("the job rests", || fields(&api, id).contains(&state));
            };
            at_rest(&id, if is_over { "error" } else { "scheduled" });
            at_rest(&of_b, "finished");
            api.call_as(who, "job.delete", json!([id])).expect("its own");
            let mut later = later;
            later["id"] = json!(id);
            api.call("job.submit", json!([later]));
            at_rest(&id, if is_over { "error" } else { "scheduled" });
            let before = fields(&api, &id);
            api.call_as(who, method, json!([graph])).expect("its own graph");
            assert_eq!(fields(&api, &id), before, "{method}");
        }
    }
}

#[test]
fn graph_names_no_later_job_with_the_id_of_a_deleted_member_as_its_step() {
    let api = Api::start(&[]);
    let far = |id: &str| osis(id, "1", json!({ "run_at": FAR }));
    let jobs = json!([{ "name": "a", "job": far("m") }, { "name": "b", "job": far("n") }]);
    let who = submitter();
    api.call_as(&who, "graph.submit", json!({ "id": "g", "jobs": jobs })).expect("a graph");
    api.call_as(&who, "job.delete", json!(["m"])).expect("its own");
    api.call("job.submit", json!([victim("m", json!({ "name": "hush", "run_at": FAR }))]));
    let (_, error) = api.fails(&who, "graph.retry", json!({ "id": "g", "from": "c" }));
    assert!(error.message.contains("jobs: b") && !error.message.contains("hush"), "{error}");
}

#[test]
fn periodic_job_is_judged_by_the_type_that_it_is_read_with() {
    let api = Api::with(&[], |hero| hero.add("[type.wild]\nengine = \"sal\"\n"));
    let all = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];
    let other = caller("other", &all);
    let add = |name: &str, field: &str, kind: &str| json!({ "name": name, "schedule": "@yearly", "job": { "script": "1", field: kind } });
    for field in ["script_type", "type"] {
        let (code, error) = api.fails(&other, "cron.add", add("c", field, "wild"));
        assert_eq!(code, code::NOT_PERMITTED, "{field}: {error}");
        api.call_as(&other, "cron.add", add(field, field, "osis")).expect("it has a sandbox");
        // Of a job in Redis.
        let edit = json!({ "name": field, "job": { field: "wild" } });
        let (code, error) = api.fails(&other, "cron.edit", edit);
        assert_eq!(code, code::NOT_PERMITTED, "{field}: {error}");
    }
    api.site
        .hero
        .run(&["cron", "add", "own", "--schedule", "@yearly", "-t", "wild", "-e", "1"])
        .code(0);
    let edit = |job: Value| json!({ "name": "own", "schedule": "@daily", "job": job });
    // The schedule alone, too.
    for job in [json!({ "script": "2" }), json!({}), json!({ "script_type": "osis" })] {
        let (code, error) = api.fails(&other, "cron.edit", edit(job));
        assert_eq!(code, code::NOT_PERMITTED, "{error}");
    }
}

#[test]
fn periodic_graph_is_judged_by_the_type_of_each_of_its_jobs() {
    let api = Api::with(&[], |hero| hero.add("[type.wild]\nengine = \"sal\"\n"));
    let all = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];
    let other = caller("other", &all);
    let job = |kind: &str| json!({ "script": "1", "script_type": kind, "env_vars": { "A": "b" } });
    let graph = |kind: &str, of_end: &str| {
        let jobs = [
            json!({ "name": "a", "job": job("osis") }),
            json!({ "name": "b", "job": job(kind), "after": ["a"] }),
        ];
        json!({ "jobs": jobs, "on_end": job(of_end) })
    };
    let add =
        |name: &str, graph: Value| json!({ "name": name, "schedule": "@yearly", "graph": graph });
    for refused in [graph("wild", "osis"), graph("osis", "wild")] {
        let (code, error) = api.fails(&other, "cron.add", add("c", refused.clone()));
        assert_eq!(code, code::NOT_PERMITTED, "{error}");
        api.call_as(&other, "cron.add", add("pipe", graph("osis", "osis"))).expect("sandboxed");
        let edit = json!({ "name": "pipe", "graph": refused });
        let (code, error) = api.fails(&other, "cron.edit", edit);
        assert_eq!(code, code::NOT_PERMITTED, "{error}");
        api.call_as(&other, "cron.delete", json!({ "name": "pipe" })).expect("its own");
    }
    for (params, why) in [
        (json!({ "graph": graph("ruby", "osis") }), "graph: b: type: `ruby` is not a configured"),
        (json!({ "graph": graph("osis", "osis"), "job": job("osis") }), "graph: cannot be set"),
        (json!({ "graph": graph("osis", "osis"), "every": "machine" }), "every: cannot be set"),
        (json!({ "graph": { "jobs": [] } }), "the graph has no job"),
        (json!({}), "needs a job or a graph"),
    ] {
        let mut params = params;
        (params["name"], params["schedule"]) = ("c".into(), "@yearly".into());
        let (code, error) = api.fails(&other, "cron.add", params);
        assert!(code == code::INVALID_PARAMS && error.message.contains(why), "{code} {error}");
    }
    api.call_as(&other, "cron.add", add("pipe", graph("osis", "osis"))).expect("sandboxed");
    let reader = caller("reader", &[Scope::Read]);
    let seen =
        |who: &_| api.call_as(who, "cron.get", json!({ "name": "pipe" })).expect("it exists");
    let variable = |of: Value| of["graph"]["jobs"][1]["job"]["env_vars"]["A"].clone();
    assert_eq!((variable(seen(&reader)), variable(seen(&other))), ("***".into(), "b".into()));
}

#[test]
fn wait_returns_no_later_job_that_has_the_id() {
    let api = Api::start(&["osis-default-1"]);
    for (number, who) in strangers().iter().enumerate() {
        for method in ["job.run", "run_job", "run_job_and_await_result", "job.wait"] {
            if method == "job.wait" && !who.scopes.has(Scope::Read) {
                continue;
            }
            let id = format!("w-{number}-{method}");
            let id = id.replace('.', "-");
            let own = osis(&id, "\"own\"", json!({ "run_at": FAR }));
            let asked = if method == "job.wait" {
                api.call_as(who, "job.submit", json!([own])).expect("its own");
                json!({ "id": id, "wait": 20 })
            } else {
                json!({ "job": own, "wait": 20 })
            };
            let answer = thread::scope(|scope| {
                let waiting = scope.spawn(|| api.call_as(who, method, asked));
                wait_until("it is stored", || !fields(&api, &id).is_empty());
                api.call_as(who, "job.delete", json!([id])).expect("its own");
                api.call("job.submit", json!([victim(&id, json!({}))]));
                waiting.join().expect("an answer")
            });
            let told = match &answer {
                Ok(job) => job.to_string(),
                Err(error) => format!("{error} {:?}", error.data),
            };
            assert!(!told.contains("hush"), "{method}: {told}");
        }
    }
}

#[test]
fn variables_of_a_published_script_are_masked_for_those_who_run_it() {
    let api = Api::start(&["osis-default-1"]);
    let settings = json!({ "script_type": "osis", "env_vars": { "TOKEN": "s3cret" } });
    api.call("script.publish", json!({ "name": "deploy", "script": "1", "settings": settings }));
    let who = caller("ann", &[Scope::Read, Scope::Submit]);
    let done = api.call_as(&who, "job.run", json!([{ "uses": "deploy" }])).expect("a job");
    assert_eq!(done["env_vars"]["TOKEN"], "***", "{done}");
    let id = &done["id"];
    let shown = api.call_as(&who, "job.get", json!([id])).expect("its own");
    assert_eq!(shown["env_vars"]["TOKEN"], "***");
    assert_eq!(api.call("job.get", json!([id]))["env_vars"]["TOKEN"], "s3cret");
    // With a script of its own the caller has no variables that it may not read.
    let retry = |changes: Value| json!({ "id": id, "changes": changes });
    let (refused, error) = api.fails(&who, "job.retry", retry(json!({ "script": "ENV.TOKEN" })));
    assert_eq!(refused, code::NOT_PERMITTED, "{error}");
    let changes = json!({ "script": "ENV.TOKEN", "uses": null, "script_type": "osis" });
    let copied = api.call_as(&who, "job.clone", json!({ "id": id, "changes": changes }));
    let copied = copied.expect("without the variables")["id"].clone();
    assert_eq!(api.call("job.wait", json!([copied]))["env_vars"], Value::Null);
    let bare = api.call_as(&who, "job.clone", json!({ "id": id, "changes": { "uses": null } }));
    let bare = bare.expect("without the variables")["id"].clone();
    assert_eq!(api.call("job.wait", json!([bare]))["env_vars"], Value::Null, "the same script");
}

#[test]
fn copy_takes_the_caller_and_the_variables_by_each_of_their_names() {
    let api = Api::start(&[]);
    let more = json!({ "env_vars": { "KEY": "hush" }, "run_at": FAR });
    api.call("job.submit", json!([victim("v", more)]));
    let who = caller("ann", &[Scope::Read, Scope::Submit]);
    for (who, changes, caller_id, variables) in [
        (&admin(), json!({ "caller": null, "env": null }), "root", Value::Null),
        (&admin(), json!({ "caller_id": null, "env_vars": null }), "root", Value::Null),
        (&admin(), json!({}), "victim", json!({ "KEY": "hush" })),
        (&who, json!({ "env": { "OWN": "1" } }), "ann", json!({ "OWN": "1" })),
        (&who, json!({ "env": null, "caller": null }), "ann", Value::Null),
    ] {
        let params = json!({ "id": "v", "changes": changes });
        let copied = api.call_as(who, "job.clone", params).expect("a copy")["id"].clone();
        let copy = api.call("job.get", json!([copied]));
        assert_eq!((&copy["caller_id"], &copy["env_vars"]), (&json!(caller_id), &variables));
    }
    let other = json!({ "id": "v", "changes": { "caller": "victim" } });
    assert_eq!(api.fails(&who, "job.clone", other).0, code::NOT_PERMITTED);
}

#[test]
fn dependents_of_a_job_are_those_that_its_caller_may_see() {
    let api = Api::start(&[]);
    let bounds = Bounds { callers: words(&["sub"]), ..Bounds::default() };
    let bound = Caller { bounds, ..caller("sub", &[Scope::Read, Scope::Submit]) };
    let far = json!({ "run_at": FAR });
    api.call_as(&bound, "job.submit", json!([osis("own", "1", far)])).expect("its own");
    let after = json!({ "prerequisites": ["own"] });
    api.call_as(&bound, "job.submit", json!([osis("mine", "1", after.clone())])).expect("its own");
    api.call("job.submit", json!([victim("hushed", after)]));
    let dependents = |who: &Caller, method: &str, params: Value| {
        api.call_as(who, method, params).expect("may see it")["dependents"].clone()
    };
    let get = |who: &Caller| dependents(who, "job.get", json!(["own"]));
    assert_eq!(get(&admin()), json!(["mine", "hushed"]));
    assert_eq!(get(&bound), json!(["mine"]));
    let page = |who: &Caller| dependents(who, "job.dependents", json!(["own"]));
    assert_eq!((page(&admin()), page(&bound)), (json!(["mine", "hushed"]), json!(["mine"])));
    api.redis.set_field(&keys::job("own"), "dependents_more", "7");
    let wait = json!({ "id": "own", "wait": 0 });
    assert_eq!(dependents(&bound, "job.wait", wait), json!(["mine"]));
    let job = api.call_as(&bound, "job.get", json!(["own"])).expect("its own");
    assert_eq!(job["dependents_more"], Value::Null, "it counts those of others");
    // A caller who may only submit gets the same job again.
    let run = json!({ "job": osis("own", "1", json!({ "run_at": FAR })), "wait": 0 });
    assert_eq!(dependents(&submitter(), "job.run", run), json!(["mine"]));
}

#[test]
fn page_of_dependents_counts_none_that_its_caller_may_not_see() {
    let api = Api::start(&[]);
    let bounds = Bounds { callers: words(&["sub"]), ..Bounds::default() };
    let bound = Caller { bounds, ..caller("sub", &[Scope::Read, Scope::Submit]) };
    api.call_as(&bound, "job.submit", json!([osis("own", "1", json!({ "run_at": FAR }))]))
        .expect("its own");
    let after = json!({ "prerequisites": ["own"] });
    for number in 0..6 {
        let hidden = victim(&format!("hushed-{number}"), after.clone());
        api.call("job.submit", json!([hidden]));
        if number % 2 == 0 {
            let mine = osis(&format!("mine-{number}"), "1", after.clone());
            api.call_as(&bound, "job.submit", json!([mine])).expect("its own");
        }
    }
    let page = |cursor: u32| {
        let params = json!({ "id": "own", "limit": 2, "cursor": cursor });
        let page = api.call_as(&bound, "job.dependents", params).expect("may see it");
        (page["dependents"].clone(), page["next"].clone())
    };
    assert_eq!(page(0), (json!(["mine-0", "mine-2"]), json!(2)));
    assert_eq!(page(2), (json!(["mine-4"]), Value::Null));
}

#[test]
fn child_stays_within_the_bounds_of_the_token_that_submitted_its_parent() {
    let api = Api::with(&["bash-g-1", "bash-default-1", "osis-g-1"], |hero| {
        hero.set("type.bash.may_submit", "[\"bash\", \"osis\"]")
    });
    let bounds = Bounds { types: words(&["bash"]), groups: words(&["g"]), ..Bounds::default() };
    let who = Caller { bounds, ..caller("sub", &[Scope::Read, Scope::Submit]) };
    let script = |child: &Value| {
        let asked = json!({ "submit": child }).to_string();
        format!(
            "printf '%s\\n' '{asked}' >&$HERO_FD; read -r answer <&$HERO_FD_IN; echo \"$answer\""
        )
    };
    let answer = |who: &Caller, child: Value| {
        let job = json!({ "script": script(&child), "script_type": "bash", "group": "g" });
        let ran = api.call_as(who, "job.run", json!({ "job": job, "wait": 30 })).expect("a job");
        serde_json::from_str::<Value>(ran["output"].as_str().expect("an answer")).expect("JSON")
    };
    let child = |more: Value| {
        let mut child = json!({ "type": "bash", "script": "echo 1", "name": "c" });
        child
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        child
    };
    for beyond in [
        json!({ "group": "default" }),
        json!({ "instance": 1 }),
        json!({ "fallback": "type" }),
        json!({ "type": "osis" }),
    ] {
        let told = answer(&who, child(beyond.clone()));
        assert!(
            told["error"].as_str().is_some_and(|why| why.contains("token")),
            "{beyond}: {told}"
        );
        // The operator has allowed it to the type: other callers may.
        let told = answer(&admin(), child(beyond.clone()));
        assert!(told["ok"]["id"].is_string(), "{beyond}: {told}");
    }
    let told = answer(&who, child(json!({})));
    let id = &told["ok"]["id"];
    let done = api.call_as(&who, "job.wait", json!([id])).expect("within its bounds");
    assert_eq!((&done["group"], &done["fallback"]), (&json!("g"), &json!("none")), "{done}");
    assert_eq!(done["bounds"], json!({ "types": ["bash"], "groups": ["g"] }), "{done}");
}

#[test]
fn id_that_a_command_would_take_for_an_option_is_refused() {
    let api = Api::start(&[]);
    for id in ["--dead", "-y"] {
        let (_, error) = api.fails(&submitter(), "job.submit", json!([osis(id, "1", json!({}))]));
        assert!(error.message.contains("for an option"), "{error}");
        let batch = json!([[osis(id, "1", json!({}))]]);
        let done = api.call_as(&submitter(), "batch.submit", batch).expect("a result");
        assert_eq!(done["ids"], json!([]), "{done}");
    }
}
