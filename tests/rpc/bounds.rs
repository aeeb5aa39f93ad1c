//! The reach of callers with bounds, and of callers without the scope `read`: corrections, contexts, lists and numbers.

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Value, json};

use super::{Api, Refusal, admin, caller, words};

const ALL: [Scope; 4] = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];

/// A caller with all scopes and these bounds.
fn bound(bounds: Bounds) -> Caller {
    Caller { bounds, ..caller("ann", &ALL) }
}

fn of_group() -> Caller {
    bound(Bounds { groups: words(&["io"]), ..Bounds::default() })
}

fn job(id: &str, more: Value) -> Value {
    let mut job = json!({ "id": id, "script": "1", "script_type": "osis" });
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    json!({ "job": job })
}

/// Returns the bound that refused a call.
#[track_caller]
fn bound_of((code, error): (i32, Refusal)) -> String {
    assert_eq!(code, code::NOT_PERMITTED, "{error}");
    error.data.expect("data")["bound"].as_str().expect("a bound").to_owned()
}

#[test]
fn caller_with_bounds_submits_no_job_of_another_caller() {
    let api = Api::with(&[], |hero| hero);
    let other = json!({ "caller_id": "victim", "unique_key": "k" });
    for caller in [
        of_group(),
        bound(Bounds { types: words(&["osis"]), ..Bounds::default() }),
        bound(Bounds { contexts: words(&["c"]), ..Bounds::default() }),
    ] {
        let (code, error) = api.fails(&caller, "job.submit", job("a", other.clone()));
        assert_eq!(code, code::NOT_PERMITTED, "{error}");
        assert!(error.message.contains("caller_id `victim`"), "{error}");
    }
    let named = bound(Bounds { callers: words(&["victim"]), ..Bounds::default() });
    api.call_as(&named, "job.submit", job("b", other.clone())).expect("it may name this caller");
    api.call_as(&admin(), "job.submit", job("c", json!({ "caller_id": "victim" })))
        .expect("no bounds");
}

#[test]
fn correction_leads_no_job_out_of_its_group() {
    let api =
        Api::with(&[], |hero| hero.add("[type.roam]\nengine = \"osis\"\nfallback = \"type\"\n"));
    let ann = of_group();
    let fallback = |id: &str| api.call("job.get", json!([id]))["fallback"].clone();
    api.call_as(&ann, "job.submit", job("a", json!({ "script_type": "roam" }))).expect("its own");
    let by_type = json!({ "fallback": "type" });
    let by_null = |text: &str| json!({ "fallback": null, "script": format!("{text:?}") });
    let edit = |changes: Value| json!({ "id": "a", "changes": changes });
    let many = |change: &str, changes: &Value| match change {
        "edit" => json!({ "change": "edit", "ids": ["a"], "edit": { "changes": changes } }),
        _ => json!({ "change": "retry", "ids": ["a"], "changes": changes }),
    };
    for (method, change) in [("job.edit", "edit"), ("job.retry", "retry")] {
        if change == "retry" {
            api.call("job.stop", json!(["a"]));
        }
        assert_eq!(bound_of(api.fails(&ann, method, edit(by_type.clone()))), "groups", "{method}");
        let left = api.call_as(&ann, "job.change_many", many(change, &by_type)).expect("a result");
        assert_eq!((&left["done"], &left["left"]), (&json!(0), &json!(1)), "{left}");
        assert_eq!(fallback("a"), "none", "{method}");
        api.call_as(&ann, method, edit(by_null(method))).expect("none is within its group");
        assert_eq!(fallback("a"), "none", "{method}");
        if change == "retry" {
            api.call("job.stop", json!(["a"]));
        }
        let done = api.call_as(&ann, "job.change_many", many(change, &by_null(change)));
        assert_eq!(done.expect("a result")["done"], 1, "{change}");
        assert_eq!(fallback("a"), "none", "{change}");
    }
    // A job of another caller in the group, which has no fallback but that of its type.
    api.call("job.submit", job("b", json!({ "script_type": "roam", "group": "io" })));
    let with = |changes: Value| json!({ "id": "b", "changes": changes });
    let refused = api.fails(&ann, "job.edit", with(json!({ "script": "2" })));
    assert_eq!(bound_of(refused), "groups");
    let changes = json!({ "script": "2", "fallback": "group" });
    api.call_as(&ann, "job.edit", with(changes)).expect("it stays in the group");
    assert_eq!(fallback("b"), "group");
}

#[test]
fn refusal_names_the_bound_that_a_job_leaves_and_by_what() {
    let api = Api::start(&[]);
    let bounds = Bounds { groups: words(&["io", "gpu"]), ..Bounds::default() };
    let ann = Caller { bounds, ..caller("ann", &[Scope::Read, Scope::Submit]) };
    for (settings, why) in [
        (
            json!({ "where": "group = io" }),
            "ann may not use `where`, which reaches actors of every group: ",
        ),
        (json!({}), "ann may not leave out the group: "),
        (json!({ "group": "other" }), "ann may not use `other`: "),
        (json!({ "instance": 1 }), "ann may not use `default`: "),
    ] {
        let (of, error) = api.fails(&ann, "job.submit", job("refused", settings));
        assert_eq!(of, code::NOT_PERMITTED, "{error}");
        assert_eq!(error.message, format!("{why}the groups of this caller are gpu, io"));
    }
}

#[test]
fn correction_of_a_graph_leads_no_job_out_of_its_group() {
    let api =
        Api::with(&[], |hero| hero.add("[type.roam]\nengine = \"osis\"\nfallback = \"type\"\n"));
    let ann = of_group();
    let step = json!({ "name": "x", "job": { "script": "1", "script_type": "roam" } });
    let graph = api.call_as(&ann, "graph.submit", json!({ "id": "g", "jobs": [step] }));
    let id = graph.expect("its own")["jobs"]["x"].clone();
    api.call_as(&ann, "graph.stop", json!(["g"])).expect("its own");
    let retry = |changes: Value| json!({ "id": "g", "changes": { "x": changes } });
    let refused = api.fails(&ann, "graph.retry", retry(json!({ "fallback": "type" })));
    assert_eq!(bound_of(refused), "groups");
    let changes = json!({ "fallback": null, "script": "2" });
    api.call_as(&ann, "graph.retry", retry(changes)).expect("none is within its group");
    let retried = api.call("job.get", json!([id]));
    assert_eq!((&retried["script"], &retried["fallback"]), (&json!("2"), &json!("none")));
}

#[test]
fn caller_without_the_scope_read_finds_its_own_jobs_alone() {
    let api = Api::start(&[]);
    let sub = caller("sub", &[Scope::Submit]);
    api.call("job.submit", job("hidden-job-1", json!({})));
    api.call_as(&sub, "job.submit", job("own", json!({}))).expect("may submit");
    let many = |who: &Caller, params: Value| {
        api.call_as(who, "job.change_many", params).expect("a result")
    };
    let ids = |found: &Value| {
        let jobs = found["jobs"].as_array().expect("jobs").iter();
        jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    let by_filter = json!({ "change": "stop", "filter": {}, "dry_run": true });
    let by_ids = json!({ "change": "stop", "ids": ["hidden-job-1", "own"], "dry_run": true });
    for dry in [by_filter.clone(), by_ids] {
        assert_eq!(ids(&many(&sub, dry)), ["own"]);
    }
    assert_eq!(ids(&many(&caller("eve", &[Scope::Read, Scope::Submit]), by_filter)).len(), 2);
    let problem = |id: &str| {
        let left = many(&sub, json!({ "change": "stop", "ids": [id] }));
        assert_eq!((&left["done"], &left["left"]), (&json!(0), &json!(1)), "{left}");
        left["problems"][0]["problem"].as_str().expect("a reason").replace(id, "ID")
    };
    assert_eq!(problem("hidden-job-1"), problem("hidden-job-9"), "as if there were none");
    assert!(!problem("hidden-").contains("job-1"), "the beginning of an id tells no whole one");
    let all = json!({ "change": "stop", "filter": {}, "yes": true });
    let stopped = many(&sub, all);
    assert_eq!((&stopped["done"], &stopped["problems"]), (&json!(1), &json!([])), "{stopped}");
    assert_eq!(api.call("job.get", json!(["hidden-job-1"]))["status"], "dispatched");
    let operator = caller("op", &[Scope::Submit, Scope::Operate]);
    let named = json!({ "change": "stop", "ids": ["hidden-job-1"] });
    assert_eq!(many(&operator, named)["done"], 1, "an operator may");
}

#[test]
fn bounds_without_contexts_reach_the_objects_of_no_named_context() {
    let api = Api::start(&[]);
    let finance = json!({ "context_id": "finance" });
    let settings = json!({ "script_type": "osis", "context_id": "finance" });
    api.call("script.publish", json!({ "name": "books", "script": "1", "settings": settings }));
    let free = Bounds::default;
    for bounds in [
        Bounds { types: words(&["osis"]), ..free() },
        Bounds { groups: words(&["io"]), ..free() },
        Bounds { callers: words(&["ann"]), ..free() },
    ] {
        let ann = bound(bounds.clone());
        let (code, error) = api.fails(&ann, "job.submit", job("x", finance.clone()));
        assert!(error.message.contains("`finance`") && error.message.contains("--context"));
        assert_eq!(bound_of((code, error)), "contexts");
        let one = job("x", finance.clone())["job"].clone();
        let batch = api.call_as(&ann, "batch.submit", json!({ "jobs": [one] })).expect("none");
        assert_eq!((&batch["ids"], &batch["refused"][0]["line"]), (&json!([]), &json!(1)));
        let mut step = one.clone();
        step.as_object_mut().expect("an object").remove("id");
        let steps = json!({ "jobs": [{ "name": "x", "job": &step }] });
        assert_eq!(bound_of(api.fails(&ann, "graph.submit", steps)), "contexts");
        let uses = json!({ "job": { "uses": "books" } });
        assert_eq!(bound_of(api.fails(&ann, "job.submit", uses)), "contexts");
        let plain = json!({ "job": { "script": "1", "script_type": "osis" } });
        let id = api.call_as(&ann, "job.submit", plain).expect("without a context")["id"].clone();
        let copy = json!({ "id": id, "changes": finance });
        assert_eq!(bound_of(api.fails(&ann, "job.clone", copy)), "contexts");
        let bounds = Bounds { contexts: words(&["finance"]), ..bounds };
        api.call_as(&bound(bounds), "job.submit", json!({ "job": step })).expect("its context");
    }
    // The script of a job of another caller would run in the context of that job.
    let others = json!({ "group": "io", "context_id": "finance" });
    api.call("job.submit", job("others", others));
    let edit = json!({ "id": "others", "changes": { "script": "2" } });
    assert_eq!(bound_of(api.fails(&of_group(), "job.edit", edit)), "contexts");
}

#[test]
fn numbers_and_pages_count_only_what_a_caller_sees() {
    let api = Api::start(&[]);
    let ann = of_group();
    for id in ["a", "b"] {
        api.call("job.submit", job(id, json!({})));
        api.call("job.stop", json!([id]));
    }
    let looked = |who: &Caller| {
        api.call_as(who, "job.errors", json!({ "cancelled": true })).expect("may read")["searched"]
            .clone()
    };
    assert_eq!((looked(&admin()), looked(&ann)), (json!(2), json!(0)));
    api.call_as(&ann, "job.submit", job("c", json!({}))).expect("its own");
    api.call_as(&ann, "job.stop", json!(["c"])).expect("its own");
    assert_eq!((looked(&admin()), looked(&ann)), (json!(3), json!(1)));

    let submit = |who: &Caller, id: &str| {
        let step = json!({ "name": "x", "job": { "script": "1", "script_type": "osis" } });
        api.call_as(who, "graph.submit", json!({ "id": id, "jobs": [step] })).expect("a graph");
    };
    let page = |who: &Caller, cursor: &Value| {
        let asked = json!({ "limit": 1, "cursor": cursor });
        let page = api.call_as(who, "graph.list", asked).expect("a page");
        let ids = page["graphs"].as_array().expect("graphs").iter();
        let ids: Vec<String> =
            ids.map(|graph| graph["id"].as_str().expect("an id").to_owned()).collect();
        (ids, page["next"].clone())
    };
    for id in ["g1", "g2", "g3"] {
        submit(&admin(), id);
    }
    assert_eq!(page(&ann, &Value::Null), (vec![], Value::Null), "no page of hidden graphs");
    for (who, id) in [(&ann, "mine"), (&admin(), "g4"), (&ann, "latest")] {
        submit(who, id);
    }
    let (first, next) = page(&ann, &Value::Null);
    assert_eq!(first, ["latest"]);
    let (second, next) = page(&ann, &next);
    assert_eq!(second, ["mine"], "the hidden one between them is passed over");
    assert_eq!(page(&ann, &next), (vec![], Value::Null));
    let (first, next) = page(&admin(), &Value::Null);
    assert_eq!((first, page(&admin(), &next).0), (vec!["latest".into()], vec!["g4".into()]));
}

#[test]
fn log_file_whose_name_has_control_characters_is_refused() {
    let api = Api::start(&[]);
    for path in ["x\ny", "\u{1b}[31mred", "a\u{7f}"] {
        let refused = api.fails(&admin(), "job.submit", job("l", json!({ "log_path": path })));
        assert_eq!(refused.0, code::INVALID_PARAMS, "{path:?}: {}", refused.1);
        assert!(refused.1.message.contains("log_path"), "{}", refused.1);
    }
    api.call("job.submit", job("l", json!({ "log_path": "täglich/job 1.log" })));
}
