//! The reach of a job that a caller with bounds corrects, or waits for: nothing beyond these bounds, and nothing that belongs to the
//! caller of the job alone.

use hero::rpc::{Bounds, Caller, Scope, code};
use serde_json::{Value, json};

use super::{Api, caller, of, words};
use crate::support::until;
use crate::support::websocket::Socket;

const ALL: [Scope; 4] = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];

/// A caller with all scopes that is bound to the group `g`.
fn of_group() -> Caller {
    let bounds = Bounds { groups: words(&["g"]), ..Bounds::default() };
    Caller { bounds, ..caller("ann", &ALL) }
}

fn bash(id: &str, group: &str, script: &str, more: Value) -> Value {
    let mut job = json!({ "id": id, "script": script, "script_type": "bash", "group": group, "caller_id": "victim" });
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    json!({ "job": job })
}

/// Prints all that a script has of other jobs.
const ALL_INPUTS: &str = r#"cat "$HERO_INPUTS"; cat "$HERO_INPUT_DIR"/* 2> /dev/null; echo '{"inputs":"secret"}' >&$HERO_FD; \
    read -t 5 -r line <&$HERO_FD_IN; echo "$line""#;

#[test]
fn script_that_a_caller_with_bounds_corrects_gets_no_output_beyond_them() {
    let api = Api::start(&["bash-g-1", "bash-etl-1"]);
    api.call(
        "job.run",
        bash("secret", "etl", "echo hidden; echo hidden > $HERO_OUTPUT_DIR/f", json!({})),
    );
    api.call("job.submit", bash("step", "g", "exit 1", json!({ "after_any": ["secret"] })));
    until(&api.redis, "step", "error");
    let retry = json!({ "id": "step", "changes": { "script": ALL_INPUTS } });
    api.call_as(&of_group(), "job.retry", retry).expect("a job of its group");
    let ended = api.call("job.wait", json!(["step"]));
    assert_eq!(ended["status"], "finished", "{ended}");
    assert!(!ended.to_string().contains("hidden"), "{ended}");
    // A caller without bounds gives none.
    api.call("job.submit", bash("other", "g", ALL_INPUTS, json!({ "after_any": ["secret"] })));
    assert!(api.call("job.wait", json!(["other"])).to_string().contains("hidden"));
}

#[test]
fn job_that_left_the_bounds_of_a_token_gives_its_script_no_output() {
    let api = Api::start(&["bash-g-1", "bash-etl-1"]);
    let later = json!({ "run_at": "2999-01-01T00:00:00Z" });
    api.call("job.submit", bash("moved", "g", "echo hidden", later));
    let job = json!({ "id": "own", "script": "cat \"$HERO_INPUTS\"", "script_type": "bash", "group": "g", "prerequisites": ["moved"] });
    api.call_as(&of_group(), "job.submit", json!({ "job": job })).expect("it sees the other");
    api.call(
        "job.edit",
        json!({ "id": "moved", "group": "etl", "run_at": "2000-01-01T00:00:00Z" }),
    );
    let ended = api.call("job.wait", json!(["own"]));
    assert_eq!(ended["status"], "error", "{ended}");
    assert!(!ended.to_string().contains("hidden"), "{ended}");
}

#[test]
fn correction_by_a_caller_with_bounds_takes_no_secret_and_no_log_file_of_another_caller() {
    let api = Api::start(&[]);
    let later = json!({ "run_at": "2999-01-01T00:00:00Z" });
    api.call("job.submit", bash("a", "g", "echo 1", later));
    for (field, changes) in [
        ("secrets", json!({ "secrets": ["vs"] })),
        ("log_path", json!({ "log_path": "victim/file" })),
    ] {
        let edit = json!({ "id": "a", "changes": changes });
        let (refused, error) = api.fails(&of_group(), "job.edit", edit);
        assert_eq!(refused, code::NOT_PERMITTED, "{error}");
        assert_eq!(error.data.expect("data")["field"], field);
    }
    let edit = json!({ "id": "a", "changes": { "script": "echo 2" } });
    api.call_as(&of_group(), "job.edit", edit).expect("it takes nothing");
    let named = Bounds { callers: words(&["victim"]), ..of_group().bounds };
    let edit = json!({ "id": "a", "changes": { "secrets": ["vs"] } });
    api.call_as(&Caller { bounds: named, ..of_group() }, "job.edit", edit)
        .expect("it may submit for this caller");
}

#[test]
fn cursor_of_object_types_names_no_context_beyond_the_bounds() {
    let api = Api::start(&["osis-default-1"]);
    for n in 0..101 {
        let script =
            format!("osis_use(\"hidden-{n:03}\"); osis_set(\"person\", #{{ id: \"a\" }}); 1");
        let job = json!({ "id": format!("o{n}"), "script": script, "script_type": "osis" });
        api.call("job.submit", json!({ "job": job }));
    }
    api.call("job.wait", json!(["o100"]));
    let bounds = Bounds { contexts: words(&["c"]), ..Bounds::default() };
    let ann = Caller { bounds, ..caller("ann", &[Scope::Read]) };
    let answer = api.call_as(&ann, "object.types", json!({ "after": "a" })).expect("its own");
    assert_eq!(answer, json!({ "types": [], "next": null }));
}

#[test]
fn firings_of_before_a_periodic_job_moved_name_no_job_beyond_the_bounds() {
    let api = Api::start(&["bash-etl-1"]);
    let job = json!({ "script": "exit 1", "script_type": "bash", "group": "etl" });
    api.call("cron.add", json!({ "name": "nightly", "schedule": "0 3 * * *", "job": job }));
    let id = api.call("cron.run", json!({ "name": "nightly" }))["id"].clone();
    api.call("job.wait", json!([id]));
    let moved = json!({ "group": "g" });
    api.call("cron.edit", json!({ "name": "nightly", "job": moved }));
    for (method, params) in [
        ("cron.list", json!({})),
        ("cron.get", json!({ "name": "nightly" })),
        ("cron.history", json!({ "name": "nightly" })),
    ] {
        let answer = api.call_as(&of_group(), method, params).expect("its own").to_string();
        assert!(!answer.contains(id.as_str().expect("an id")), "{method}: {answer}");
        assert!(!answer.contains("exit code"), "{method}: {answer}");
    }
}

#[test]
fn subscription_to_a_job_ends_when_the_job_leaves_the_bounds_of_its_follower() {
    let api = Api::start(&["bash-etl-1"]);
    let later = json!({ "run_at": "2999-01-01T00:00:00Z" });
    api.call("job.submit", bash("a", "g", "echo hidden", later));
    let words = of(&of_group());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let bearer = format!("Bearer {}", api.site.token(&words));
    let mut socket = Socket::open(api.site.tcp(), &[("authorization", bearer.as_str())]);
    socket.follow("job.follow", &json!({ "id": "a" }));
    assert_eq!(socket.notice()["status"], "scheduled");
    api.call("job.edit", json!({ "id": "a", "group": "etl", "run_at": "2000-01-01T00:00:00Z" }));
    let rest = json!(socket.rest_of_job()).to_string();
    assert!(!rest.contains("hidden") && rest.contains("no such job"), "{rest}");
}
