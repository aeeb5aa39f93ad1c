//! The place of jobs in a trace: how it comes in, and what gets it.

pub(crate) mod collector;
mod entrances;
mod outages;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::until;
use crate::notify::Receiver;
use crate::support::{Hero, Redis, Served, keys, needs, pypi, wait_until};
use collector::{TRACE, attribute, of, place, sending, spans};

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
        let lines: Vec<String> = err()
            .lines()
            .filter(|line| line.contains(&format!("job_id={id} ")))
            .map(str::to_owned)
            .collect();
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
    std::fs::write(&batch, "{\"id\": \"ba\", \"script_type\": \"osis\", \"script\": \"1\"}\n")
        .expect("written");
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
        format!(
            r#"{{"jsonrpc": "2.0", "id": 1, "method": "job.submit", "params": {{"job": {}}}}}"#,
            job(id)
        )
    };
    post("/jobs", &place(5), &job("a"));
    post("/jobs", &place(6), &job("a"));
    post("/rpc", &place(7), &rpc("b"));
    post("/jobs", "00-junk", &job("c"));
    assert_eq!((of(&redis, "a"), of(&redis, "b")), (Some(place(5)), Some(place(7))));
    assert_eq!(of(&redis, "c"), None);
    assert!(redis.field(&keys::job("c"), "script").is_some());
}

/// Draws the spans below one, with their jobs, attempts and ends; those of a job in the order of time.
fn draw(spans: &[Value], above: &str, depth: usize, text: &mut String) {
    let time = |span: &Value| -> u64 {
        span["startTimeUnixNano"].as_str().expect("text").parse().expect("a number")
    };
    let mut below: Vec<&Value> =
        spans.iter().filter(|span| span["parentSpanId"] == above).collect();
    below.sort_by_key(|span| {
        (attribute(span, "hero.job.id").to_owned(), time(span), span["name"] != "wait")
    });
    for span in below {
        let (name, job) = (span["name"].as_str().expect("text"), attribute(span, "hero.job.id"));
        let attempt = attribute(span, "hero.attempt");
        let state = if span["status"]["code"] == 2 { "failed" } else { "" };
        let words = [name, job, attempt, state].into_iter().filter(|word| !word.is_empty());
        let line = words.collect::<Vec<_>>().join(" ");
        writeln!(text, "{}{line}", "  ".repeat(depth)).expect("a text takes it");
        draw(spans, span["spanId"].as_str().expect("text"), depth + 1, text);
    }
}

/// The tree of the graph.
const TREE: &str = "\
submit graph
  wait j1
  attempt python j1 1
    script j1
  wait j2
  attempt python j2 1 failed
    script j2 failed
  wait j2
  attempt python j2 2
    script j2
  wait j3
  attempt python j3 1
    script j3
  wait j4
  attempt python j4 1
    script j4
  wait j5
  attempt python j5 1
    script j5
";

#[test]
fn receiver_gets_the_tree_of_a_graph_with_its_retry() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = sending(Hero::on(&redis), &receiver);
    let actor = hero.actor("python-default-1").start();
    let _supervisor = hero.supervisor().start();
    let seen = redis.folder().join("seen");
    let graph = redis.folder().join("g.toml");
    let mut text = format!(
        "[defaults]\ntype = \"python\"\n[job.j1]\nid = \"j1\"\nscript = \"import os; \
         open('{}', 'w').write(os.environ['TRACEPARENT'])\"\n[job.j2]\nid = \"j2\"\nafter = [\"j1\"]\n\
         retries = 1\nbackoff = \"10ms\"\nscript = \"import os; \
         assert os.environ['HERO_ATTEMPT'] == '2'\"\n",
        seen.display()
    );
    for number in 3..=5 {
        let job = format!(
            "[job.j{number}]\nid = \"j{number}\"\nafter = [\"j{}\"]\nscript = \"1\"\n",
            number - 1
        );
        text.push_str(&job);
    }
    std::fs::write(&graph, text).expect("written");
    hero.run(&["submit", "--graph", graph.to_str().expect("text")]).code(0);
    until(&redis, "j5", "finished");
    // An actor sends the rest when it ends.
    actor.signal(Signal::SIGTERM);
    actor.ends().code(0);
    let spans = spans(&receiver);
    let mut tree = String::new();
    draw(&spans, "", 0, &mut tree);
    assert_eq!(tree, TREE, "{spans:#?}");
    let submit = spans.iter().find(|of| of["name"] == "submit graph").expect("it was submitted");
    assert!(spans.iter().all(|span| span["traceId"] == submit["traceId"]));
    let mut attempts = spans.iter().filter(|of| of["name"] == "attempt python");
    let graph_id = attribute(submit, "hero.submitted.id");
    assert!(attempts.clone().all(|of| attribute(of, "hero.graph.id") == graph_id), "{spans:#?}");
    let of_failed = attempts.clone().find(|of| of["status"]["code"] == 2).expect("one failed");
    assert!(of_failed["status"]["message"].as_str().expect("text").contains("AssertionError"));
    let first = attempts.find(|of| attribute(of, "hero.job.id") == "j1").expect("it ran");
    let told = std::fs::read_to_string(seen).expect("the script wrote it");
    let id = |of: &str| first[of].as_str().expect("text").to_owned();
    assert_eq!(told, format!("00-{}-{}-01", id("traceId"), id("spanId")));
    let ids: BTreeSet<&str> = spans.iter().map(|of| of["spanId"].as_str().expect("text")).collect();
    assert_eq!(ids.len(), spans.len());
    if needs("opentelemetry-proto of PyPI", || pypi().is_some()) {
        assert_eq!(counted_by_the_schema(&receiver), spans.len());
    }
}

/// Returns the number of spans that the published schema of OpenTelemetry finds in all that came.
#[expect(clippy::disallowed_methods, reason = "the schema is another program's")]
fn counted_by_the_schema(receiver: &Receiver) -> usize {
    let bodies: Vec<String> = receiver.messages().iter().map(Value::to_string).collect();
    let mut command = Command::new(pypi().expect("installed"));
    let mut child = command
        .arg("tests/notify/programs/otlp_spans.py")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(bodies.join("\n").as_bytes()).expect("written");
    let done = child.wait_with_output().expect("it ends");
    assert!(done.status.success(), "the schema does not fit");
    String::from_utf8_lossy(&done.stdout).trim().parse().expect("a number")
}

#[test]
fn absent_receiver_delays_no_job_and_the_spans_are_counted() {
    let redis = Redis::start();
    let mut receiver = Receiver::start(&redis, "receiver.py");
    receiver.kill();
    let hero = sending(Hero::on(&redis), &receiver);
    let actor = hero.actor("osis-default-1").start();
    let exec = ["exec", "-t", "osis", "--id", "a", "-e", "42"];
    hero.run(&exec).code(0).stdout("42\n");
    wait_until("the loss is told", || actor.err().contains("cannot send spans to 127.0.0.1"));
    assert!(actor.err().contains("dropped="), "{}", actor.err());
    hero.run(&["exec", "-t", "osis", "-e", "43"]).code(0).stdout("43\n");
    actor.signal(Signal::SIGTERM);
    actor.ends().code(0);
}

#[test]
fn nothing_is_sent_without_a_receiver_and_nothing_of_a_trace_that_is_not_recorded() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let run = |hero: &Hero, place: &str| {
        let actor = hero.actor("osis-default-1").start();
        hero.run(&["exec", "-t", "osis", "--traceparent", place, "-e", "42"]).code(0);
        actor.signal(Signal::SIGTERM);
        actor.ends().code(0);
    };
    run(&Hero::on(&redis), &place(8));
    let on = sending(Hero::on(&redis), &receiver);
    run(&on, &place(8).replace("-01", "-00"));
    assert!(receiver.received().is_empty());
    run(&on, &place(8));
    assert_eq!(spans(&receiver).len(), 4);
}

#[test]
fn daemons_and_commands_send_the_headers_of_a_file_and_nothing_without_it() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let file = redis.folder().join("trace-headers");
    std::fs::write(&file, "# of the vendor\nAuthorization: Bearer abc\n").expect("written");
    let hero = sending(Hero::on(&redis), &receiver)
        .set("trace.headers_file", &format!("{:?}", file.display().to_string()));
    let run = |hero: &Hero| {
        let actor = hero.actor("osis-default-1").start();
        hero.run(&["exec", "-t", "osis", "-e", "42"]).code(0);
        actor.signal(Signal::SIGTERM);
        actor.ends().code(0)
    };
    run(&hero);
    let posts = receiver.received();
    let services = ["hero-submit", "hero-actor"];
    for service in services {
        let of = |post: &&Value| post["body"].as_str().is_some_and(|body| body.contains(service));
        let post = posts.iter().find(of).unwrap_or_else(|| panic!("{service}: {posts:?}"));
        assert_eq!(post["headers"]["authorization"], "Bearer abc", "{post}");
    }
    std::fs::write(&file, "Bearer abc\n").expect("written");
    run(&hero).says("trace-headers: line 1 is no header");
    assert_eq!(receiver.received().len(), posts.len());
}

#[test]
fn receiver_that_cannot_be_one_is_an_error_of_the_configuration() {
    let redis = Redis::start();
    for wrong in ["https://h", "http://h", "http://h:0", "h:4318", "https://u@h:1", "ftp://h:1"] {
        let hero = Hero::on(&redis).set("trace.endpoint", &format!("{wrong:?}"));
        hero.run(&["check"]).code(78).says("trace.endpoint");
    }
    Hero::on(&redis).set("trace.sample", "1.5").run(&["check"]).code(78).says("trace.sample");
}
