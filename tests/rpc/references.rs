//! References that several things answer to: ids that somebody chose, beginnings of ids, and names of graphs.

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Value, json};

use super::rights::{FAR, osis};
use super::{Api, admin, caller, words};
use crate::support::keys;

/// The id of a job of somebody, and the form in which lists show it.
const UUID: &str = "7f9c2ba4-0bec-47b0-a898-d190f9ebdacc";
const SHORT: &str = "7f9c2ba4";

fn submitter(name: &str) -> Caller {
    caller(name, &[Scope::Read, Scope::Submit])
}

fn far(id: &str) -> Value {
    osis(id, "1", json!({ "run_at": FAR }))
}

/// Submits a graph of one job.
fn graph(api: &Api, who: &Caller, head: Value, job: &str) {
    let mut params = head;
    params["jobs"] = json!([{ "name": "a", "job": far(job) }]);
    api.call_as(who, "graph.submit", params).expect("a graph");
}

#[test]
fn id_that_reads_as_the_short_form_of_another_is_refused() {
    let (api, who) = (Api::start(&[]), submitter("ann"));
    for id in [SHORT, &UUID[..9], &UUID[..35], "20261122", "s3-7f9c2ba4"] {
        let node = json!([{ "name": "a", "job": far("member") }]);
        for (method, params) in [
            ("job.submit", json!([far(id)])),
            ("graph.submit", json!({ "id": id, "jobs": node })),
            ("graph.submit", json!({ "jobs": [{ "name": "a", "job": far(id) }] })),
        ] {
            let (_, error) = api.fails(&who, method, params);
            assert!(error.message.contains("short form of an id"), "{method} {id}: {error}");
        }
        let done = api.call_as(&who, "batch.submit", json!([[far(id)]])).expect("a result");
        assert_eq!(done["ids"], json!([]), "{done}");
    }
    for id in ["7f9c2ba", "order-20261122", UUID] {
        api.call_as(&who, "job.submit", json!([far(id)])).expect("an id of its own");
    }
}

#[test]
fn window_of_a_graph_with_a_job_of_another_is_changed_by_neither() {
    let api = Api::start(&[]);
    let of = |id: &str, caller: &str| {
        osis(id, "1", json!({ "run_at": FAR, "caller_id": caller, "group": "io" }))
    };
    let batch = json!({ "id": "both", "jobs": [of("first", "ann"), of("second", "bob")],
        "pause_after": "1 tell" });
    api.call("batch.submit", batch);
    let batch = json!({ "id": "own", "jobs": [of("third", "ann"), of("fourth", "ann")] });
    api.call("batch.submit", batch);
    let edit = |who: &Caller, id: &str| {
        api.call_as(who, "graph.edit", json!({ "id": id, "stop_after": 1, "at_a_time": 1 }))
    };
    let bounds = Bounds { groups: words(&["far"]), ..Bounds::default() };
    for who in [submitter("ann"), Caller { bounds, ..submitter("ann") }] {
        assert!(edit(&who, "both").is_err());
        let go = json!({ "id": "both", "order": "go" });
        assert!(api.call_as(&who, "graph.tell", go).is_err());
        assert_eq!(
            api.redis.field(&keys::keys().graph(&"both".parse().expect("legal")), "stop_after"),
            None
        );
    }
    edit(&submitter("ann"), "own").expect("her own");
    edit(&admin(), "both").expect("an operator may");
}

#[test]
fn id_that_is_the_beginning_of_another_names_none_of_them_but_to_its_owner() {
    let api = Api::start(&[]);
    api.call_as(&submitter("ann"), "job.submit", json!([far(UUID)])).expect("her own");
    // As a program writes it by plain commands.
    api.redis.set_job(SHORT, "script 1 script_type osis status finished caller_id bob");
    for who in [admin(), submitter("ann")] {
        for method in ["job.get", "job.output", "job.wait", "job.delete"] {
            let (of, error) = api.fails(&who, method, json!([SHORT]));
            assert_eq!(of, code::INVALID_PARAMS, "{method}: {error}");
            assert!(error.message.contains(&format!("{SHORT}, {UUID}")), "{method}: {error}");
        }
    }
    let get =
        |who: &Caller| api.call_as(who, "job.get", json!([SHORT])).expect("one")["id"].clone();
    assert_eq!(get(&submitter("bob")), SHORT);
    // Whoever may not see the one knows nothing of it.
    let bounds = Bounds { callers: words(&["ann"]), ..Bounds::default() };
    assert_eq!(get(&Caller { bounds, ..submitter("ann") }), UUID);
}

#[test]
fn short_id_that_somebody_chose_hides_no_job_whose_id_begins_with_it() {
    let api = Api::start(&[]);
    let (ann, bob) = (submitter("ann"), submitter("bob"));
    api.call_as(&ann, "job.submit", json!([far(UUID)])).expect("her own");
    for length in 4..8 {
        let short = &UUID[..length];
        api.call_as(&bob, "job.submit", json!([far(short)])).expect("an id of its own");
        for who in [&admin(), &ann] {
            for method in ["job.get", "job.output", "job.wait", "job.delete"] {
                let (of, error) = api.fails(who, method, json!([short]));
                assert_eq!(of, code::INVALID_PARAMS, "{method}: {error}");
                assert!(error.message.contains(&format!("{short}, {UUID}")), "{method}: {error}");
                assert!(error.message.ends_with(&format!("or id:{short}")), "{method}: {error}");
            }
        }
        let get = |who: &Caller, id: &str| {
            api.call_as(who, "job.get", json!([id])).expect("one")["id"].clone()
        };
        // Its own, by `id:`, and where the other is hidden.
        let bounds = Bounds { callers: words(&["ann"]), ..Bounds::default() };
        assert_eq!(
            (get(&bob, short), get(&admin(), &format!("id:{short}"))),
            (json!(short), json!(short))
        );
        assert_eq!(get(&Caller { bounds, ..submitter("ann") }, short), UUID);
        // A program names prerequisites by whole ids.
        let mut after = far(&format!("after-{length}"));
        after["prerequisites"] = json!([short]);
        api.call("job.submit", json!([after]));
        assert_eq!(
            api.call("job.get", json!([format!("after-{length}")]))["prerequisites"],
            json!([short])
        );
        let hero = &api.site.hero;
        hero.run(&["job", "show", short]).code(65).says(&format!("{short}, {UUID}"));
        hero.run(&["job", "delete", &format!("id:{short}")]).code(0);
    }
    // One that no id of Hero begins with is a whole id, though it is the beginning of others.
    for id in ["run1", "run10", "beef"] {
        api.call("job.submit", json!([far(id)]));
        assert_eq!(api.call("job.get", json!([&id[..4]]))["id"], id[..4]);
    }
}

#[test]
fn text_that_is_the_id_of_one_graph_and_the_name_of_another_names_its_own_or_none() {
    let api = Api::start(&[]);
    let (ann, bob) = (submitter("ann"), submitter("bob"));
    graph(&api, &ann, json!({ "id": "of-ann", "name": "nightly" }), "a");
    graph(&api, &bob, json!({ "id": "nightly" }), "b");
    for who in [&admin(), &ann] {
        for method in ["graph.get", "graph.wait", "graph.stop", "graph.delete"] {
            let (of, error) = api.fails(who, method, json!(["nightly"]));
            assert_eq!(of, code::INVALID_PARAMS, "{method}: {error}");
            assert!(error.message.contains("nightly, of-ann; write `id:`"), "{method}: {error}");
        }
    }
    let get = |who: &Caller, id: &str| {
        api.call_as(who, "graph.get", json!([id])).expect("one")["graph"]["id"].clone()
    };
    assert_eq!((get(&bob, "nightly"), get(&ann, "of-ann")), (json!("nightly"), json!("of-ann")));
    assert_eq!(
        (get(&ann, "id:nightly"), get(&admin(), "id:of-a")),
        (json!("nightly"), json!("of-ann"))
    );
    let (of, _) = api.fails(&ann, "graph.get", json!(["id:none"]));
    assert_eq!(of, code::NOT_FOUND);
}

#[test]
fn taken_id_of_a_graph_is_answered_as_one_of_a_job() {
    let api = Api::start(&[]);
    graph(&api, &submitter("ann"), json!({ "id": "taken", "name": "hush" }), "a");
    let bob = submitter("bob");
    let jobs = json!([{ "name": "a", "job": far("b") }]);
    let (of_graph, graph) = api.fails(&bob, "graph.submit", json!({ "id": "taken", "jobs": jobs }));
    let (of_job, job) = api.fails(&bob, "job.submit", json!([far("a")]));
    assert_eq!(of_graph, of_job);
    let rest = |message: &str| message.replace("graph id taken", "ID").replace("job id a", "ID");
    assert_eq!(rest(&graph.message), rest(&job.message));
}
