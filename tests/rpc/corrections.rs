//! A correction changes the job that it checked: an id may be used again between check and change.

use std::thread;

use hero::rpc::Scope;
use serde_json::json;

use super::rights::{FAR, fields, osis};
use super::{Api, caller};
use crate::support::{keys, wait_until};
use crate::web::requests::{send, signed_in};

/// Returns the answer to a call whose job is another one, with the same id, once the call has checked it and before it
/// writes: Redis holds all writes back meanwhile, and makes them in their order.
fn answer_meanwhile<R: Send>(
    api: &Api,
    (id, later, graph): (&str, &str, &str),
    call: impl FnOnce() -> R + Send,
) -> R {
    let held = |writes: &str| {
        let clients: String = api.redis.ask("CLIENT LIST");
        clients.lines().any(|line| {
            let word = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name));
            word("cmd=") == Some(writes) && word("flags=").is_some_and(|flags| flags.contains('b'))
        })
    };
    api.redis.run("CLIENT PAUSE 20000 WRITE");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut swap = redis::pipe();
            swap.atomic();
            swap.cmd("COPY").arg(keys::job(later)).arg(keys::job(id)).arg("REPLACE");
            swap.cmd("HSET").arg(keys::job(id)).arg("graph_id").arg(graph);
            swap.query::<redis::Value>(&mut api.redis.link()).expect("replaced");
        });
        wait_until("the other job waits", || held("copy"));
        let call = scope.spawn(call);
        wait_until("the change waits", || held("evalsha") || call.is_finished());
        api.redis.run("CLIENT UNPAUSE");
        call.join().expect("an answer")
    })
}

#[test]
fn correction_changes_the_job_that_was_checked_and_no_later_one_with_its_id() {
    let api = Api::start(&["osis-default-1"]);
    let settings = json!({ "script_type": "osis", "env_vars": { "TOKEN": "s3cret" } });
    api.call("script.publish", json!({ "name": "deploy", "script": "1", "settings": settings }));
    let who = caller("ann", &[Scope::Read, Scope::Submit]);
    let tells = json!({ "script": "ENV.TOKEN" });
    let edit = json!({ "changes": tells });
    for (number, (method, params)) in [
        ("job.retry", json!({ "changes": tells })),
        ("job.change_many", json!({ "change": "retry", "changes": tells })),
        ("graph.retry", json!({ "from": "a", "changes": { "a": tells } })),
        ("job.edit", edit.clone()),
        ("job.change_many", json!({ "change": "edit", "edit": edit })),
    ]
    .into_iter()
    .enumerate()
    {
        // A write of a daemon may be held in place of the call: then the call has checked the later job.
        let has_checked_the_first = (0..20).any(|attempt| {
            let name = format!("{number}-{attempt}");
            let (own, later, graph) =
                (format!("own{name}"), format!("later{name}"), format!("g{name}"));
            let mut params = params.clone();
            match method {
                "graph.retry" => params["id"] = json!(graph),
                "job.change_many" => params["ids"] = json!([own]),
                _ => params["id"] = json!(own),
            }
            let rest = if number > 2 { json!({ "run_at": FAR }) } else { json!({}) };
            let mut of_script = rest.clone();
            of_script["id"] = json!(later);
            of_script["uses"] = json!("deploy");
            let node = json!({ "name": "a", "job": osis(&own, "2", rest) });
            api.call_as(&who, "graph.submit", json!({ "id": graph, "jobs": [node] })).expect("own");
            api.call_as(&who, "job.submit", json!([of_script])).expect("its own");
            let state = if number > 2 { "status=scheduled" } else { "status=finished" };
            for id in [&own, &later] {
                wait_until("it rests", || fields(&api, id).contains(&state.to_owned()));
            }
            let call = || api.call_as(&who, method, params);
            let answer = format!("{:?}", answer_meanwhile(&api, (&own, &later, &graph), call));
            let stored = fields(&api, &own);
            assert!(stored.contains(&"uses=deploy@1".to_owned()), "{method}: {stored:?}");
            assert!(stored.contains(&"script=1".to_owned()), "{method}: {answer} {stored:?}");
            !answer.contains("the variables of a published script")
        });
        assert!(has_checked_the_first, "{method}");
    }
}

#[test]
fn page_changes_the_job_that_was_checked_and_no_later_one_of_another_caller() {
    let api = Api::start(&[]);
    let who = caller("ann", &[Scope::Read, Scope::Submit]);
    let words = super::of(&who);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let session = signed_in(&api.site, &words);
    let headers = format!("{session}Origin: http://{}\r\n", api.site.address());
    let has_checked_the_first = (0..20).any(|attempt| {
        let (own, later) = (format!("own{attempt}"), format!("later{attempt}"));
        let far = json!({ "run_at": FAR });
        api.call_as(&who, "job.submit", json!([osis(&own, "1", far.clone())])).expect("its own");
        let mut of_other = osis(&later, "1", far);
        of_other["caller_id"] = json!("victim");
        api.call("job.submit", json!([of_other]));
        let path = format!("/jobs/{own}");
        let csrf = send(&api.site, "GET", &path, &session, "").forgery();
        let stop = || send(&api.site, "POST", &path, &headers, &format!("do=stop&csrf={csrf}"));
        let answer = answer_meanwhile(&api, (&own, &later, "g"), stop);
        let stored = fields(&api, &own);
        assert!(stored.contains(&"caller_id=victim".to_owned()), "{stored:?}");
        assert!(stored.contains(&"status=scheduled".to_owned()), "{}: {stored:?}", answer.status);
        answer.status == 404
    });
    assert!(has_checked_the_first);
}
