//! The place of jobs in a trace: how it comes in, and what gets it.

use super::{field, until};
use crate::support::{Hero, Redis, Served, keys, wait_until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A place in the trace, with this digit as the span.
fn place(span: u8) -> String {
    format!("00-{TRACE}-000000000000000{span}-01")
}

/// Returns the place that the hash of a job has.
#[track_caller]
fn of(redis: &Redis, id: &str) -> Option<String> {
    field(redis, id, "traceparent")
}

#[test]
fn option_reaches_the_script_and_an_invalid_one_is_an_error() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let actor = hero.actor("python-default-1").start();
    let script = "import os; print(os.environ.get('TRACEPARENT'))";
    let exec = ["exec", "-t", "python", "--id", "a", "--traceparent", &place(1), "-e", script];
    hero.run(&exec).code(0).stdout(&format!("{}\n", place(1)));
    hero.run(&["exec", "-t", "python", "--id", "b", "-e", script]).code(0).stdout("None\n");
    let err = || actor.err();
    let told = |id: &str| {
        let lines: Vec<String> =
            err().lines().filter(|line| line.contains(&format!("job_id={id} "))).map(str::to_owned).collect();
        (lines.len() == 2).then_some(lines)
    };
    wait_until("both jobs are told", || told("a").is_some() && told("b").is_some());
    let has_trace = |line: &String| line.contains(&format!("trace_id=\"{TRACE}\""));
    assert!(told("a").expect("told").iter().all(has_trace), "{}", err());
    assert!(!told("b").expect("told").iter().any(|line| line.contains("trace_id")), "{}", err());
    let shown = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(shown.contains(&place(1)), "{shown}");
    let wrong = ["submit", "-t", "osis", "--traceparent", &place(0), "-e", "1"];
    hero.run(&wrong).code(65).says("--traceparent");
}

#[test]
fn environment_is_the_default_and_an_invalid_one_is_as_if_it_were_not_there() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let submit = |trace: &str, args: &[&str]| {
        let mut command = hero.command_of_user(env!("CARGO_BIN_EXE_hero"));
        let done = command.env("TRACEPARENT", trace).args(args).output().expect("it runs");
        assert!(done.status.success(), "{done:?}");
    };
    let graph = redis.folder().join("g.toml");
    let text = "[job.a]\nid = \"ga\"\ntype = \"osis\"\nscript = \"1\"\n[job.b]\nid = \"gb\"\ntype = \"osis\"\n\
                script = \"2\"\nafter = [\"a\"]\n[on_end]\ntype = \"osis\"\nscript = \"3\"\n";
    std::fs::write(&graph, text).expect("written");
    let batch = redis.folder().join("b.jsonl");
    std::fs::write(&batch, "{\"id\": \"ba\", \"script_type\": \"osis\", \"script\": \"1\"}\n").expect("written");
    submit(&place(2), &["submit", "-t", "osis", "--id", "a", "-e", "1"]);
    submit("00-junk", &["submit", "-t", "osis", "--id", "b", "-e", "1"]);
    submit(&place(2), &["submit", "--graph", graph.to_str().expect("text")]);
    submit(&place(2), &["submit", "--batch", batch.to_str().expect("text")]);
    let own = ["submit", "-t", "osis", "--id", "c", "--traceparent", &place(3), "-e", "1"];
    submit(&place(2), &own);
    assert_eq!(of(&redis, "b"), None);
    for id in ["a", "ga", "gb", "ba"] {
        assert_eq!(of(&redis, id), Some(place(2)), "{id}");
    }
    assert_eq!(of(&redis, "c"), Some(place(3)));
}

#[test]
fn callback_of_a_graph_is_in_the_trace_of_its_jobs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    let graph = redis.folder().join("g.toml");
    let text = format!(
        "[job.a]\nid = \"a\"\ntype = \"osis\"\nscript = \"1\"\ntraceparent = \"{}\"\n[job.b]\nid = \"b\"\n\
         type = \"osis\"\nscript = \"2\"\n[on_end]\nname = \"last\"\ntype = \"osis\"\nscript = \"3\"\n",
        place(4)
    );
    std::fs::write(&graph, text).expect("written");
    hero.run(&["submit", "--graph", graph.to_str().expect("text")]).code(0);
    let list = || hero.run(&["--json", "job", "list"]).code(0).stdout;
    wait_until("the callback is there", || list().contains("\"last\""));
    let listed: serde_json::Value = serde_json::from_str(&list()).expect("JSON");
    let jobs = listed.as_array().or_else(|| listed["jobs"].as_array()).expect("jobs").clone();
    assert_eq!(jobs.len(), 3, "{listed}");
    for job in jobs {
        let id = job["id"].as_str().expect("an id");
        until(&redis, id, "finished");
        assert_eq!(of(&redis, id), Some(place(4)), "{job}");
    }
}

#[test]
fn header_of_a_request_gives_jobs_their_place_and_a_repeat_is_the_same_job() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let post = |path: &str, trace: &str, body: &str| {
        let headers = [("traceparent", trace)];
        let answer = served.unix().post(path, &headers, body);
        assert!(answer.status < 300, "{}", answer.text());
    };
    let job = |id: &str| format!(r#"{{"id": "{id}", "script": "1", "script_type": "osis"}}"#);
    let rpc = |id: &str| {
        format!(r#"{{"jsonrpc": "2.0", "id": 1, "method": "job.submit", "params": {{"job": {}}}}}"#, job(id))
    };
    post("/jobs", &place(5), &job("a"));
    post("/jobs", &place(6), &job("a"));
    post("/rpc", &place(7), &rpc("b"));
    post("/jobs", "00-junk", &job("c"));
    assert_eq!((of(&redis, "a"), of(&redis, "b")), (Some(place(5)), Some(place(7))));
    assert_eq!(of(&redis, "c"), None);
    assert!(redis.field(&keys::job("c"), "script").is_some());
}
