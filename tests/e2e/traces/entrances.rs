//! The spans of each way in, as a collector gets them.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::collector::{TRACE, attribute, is_below, of, place, sending, span_of, spans};
use super::until;
use crate::notify::Receiver;
use crate::support::{Hero, Redis, Served, keys, wait_until};

#[test]
fn call_that_submits_is_a_span_between_its_header_and_its_job() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let served = Served::with(sending(Hero::on(&redis), &receiver), &redis);
    let _actor = served.hero.actor("osis-default-1").start();
    let post = |path: &str, trace: &str, body: &Value| {
        let answer = served.unix().post(path, &[("traceparent", trace)], &body.to_string());
        assert!(answer.status < 300, "{}", answer.text());
        answer
    };
    let job = |id: &str| json!({ "id": id, "script": "1", "script_type": "osis" });
    let rpc = |id: &str, method: &str| {
        let params = json!({ "job": job(id) });
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
    };
    post("/jobs", &place(1), &job("rest"));
    post("/rpc", &place(2), &rpc("rpc", "job.submit"));
    post("/rpc", &place(3), &rpc("run", "job.run"));
    is_below(&redis, &receiver, ("rest", "job.submit"), 1);
    is_below(&redis, &receiver, ("rpc", "job.submit"), 2);
    is_below(&redis, &receiver, ("run", "job.run"), 3);
    let attempt = span_of(&receiver, "attempt osis", "rpc");
    let above = span_of(&receiver, "job.submit", "rpc");
    assert_eq!(attempt["parentSpanId"], above["spanId"]);
    // A later version is read as this one, a trace that is not recorded has no span, and reading is none.
    post("/jobs", &format!("cc-{TRACE}-0000000000000004-01-more"), &job("later"));
    is_below(&redis, &receiver, ("later", "job.submit"), 4);
    post("/jobs", &place(5).replace("-01", "-00"), &job("unrecorded"));
    assert!(of(&redis, "unrecorded").is_some_and(|place| place.ends_with("-00")));
    post("/rpc", &place(6), &json!({ "jsonrpc": "2.0", "id": 1, "method": "job.list" }));
    // Without a header a call begins a trace.
    post("/jobs", "", &job("new"));
    let new = span_of(&receiver, "job.submit", "new");
    assert_eq!(new["parentSpanId"], "");
    let (trace, span) = (new["traceId"].as_str().expect("text"), new["spanId"].as_str());
    assert_eq!(of(&redis, "new"), Some(format!("00-{trace}-{}-01", span.expect("text"))));
    let all = spans(&receiver);
    assert!(!all.iter().any(|of| attribute(of, "hero.submitted.id") == "unrecorded"));
    assert!(!all.iter().any(|of| of["name"] == "job.list"));
}

#[test]
fn invalid_or_giant_header_is_ignored() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let job = |id: &str| json!({ "id": id, "script": "1", "script_type": "osis" }).to_string();
    let giant = format!("{}{}", place(1), "0".repeat(8000));
    let wrong = [
        "junk".to_owned(),
        giant,
        place(0),
        place(1).to_uppercase(),
        format!("{}; $(reboot)", place(1)),
        place(1).replacen("00-", "ff-", 1),
    ];
    for (number, wrong) in wrong.iter().enumerate() {
        let id = format!("j{number}");
        let answer = served.unix().post("/jobs", &[("traceparent", wrong)], &job(&id));
        assert_eq!(answer.status, 201, "{wrong:.90}: {}", answer.text());
        assert_eq!(of(&redis, &id), None, "{wrong:.90}");
    }
    // Two headers name no place.
    let body = job("two");
    let head = format!(
        "POST /jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         traceparent: {}\r\ntraceparent: {}\r\ncontent-length: {}\r\n\r\n{body}",
        place(1),
        place(2),
        body.len()
    );
    let mut link = served.unix();
    link.send(head.as_bytes()).expect("sent");
    assert_eq!(link.answer().expect("an answer").status, 201);
    assert_eq!(of(&redis, "two"), None);
    // As a setting it is an error.
    for wrong in &wrong {
        let mut job: Value = serde_json::from_str(&job("x")).expect("JSON");
        job["traceparent"] = wrong.as_str().into();
        let answer = served.unix().post("/jobs", &[], &job.to_string());
        assert!((400..500).contains(&answer.status), "{wrong:.90}: {}", answer.text());
        assert!(answer.text().contains("traceparent"), "{}", answer.text());
        assert!(answer.text().len() < 2000, "it repeats the whole text");
    }
    assert_eq!(of(&redis, "x"), None);
}

#[test]
fn invalid_field_of_a_foreign_program_never_reaches_a_script() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let script = "printf %s \"${TRACEPARENT:-none}\"";
    let giant = "0".repeat(1 << 20);
    for (id, trace) in [("a", "00-x\nLD_PRELOAD=/x"), ("b", "$(id)"), ("c", giant.as_str())] {
        let key = keys::job(id);
        let fields = ["script", script, "status", "dispatched", "traceparent", trace];
        redis.ask_with::<u64, _>(&format!("HSET {key}"), &fields);
        redis.ask::<u64>(&format!("LPUSH {} {id}", keys::work("type:bash")));
        wait_until("it has ended", || {
            let status = redis.field(&key, "status");
            status.is_some_and(|status| status == "finished" || status == "error")
        });
        assert_eq!(redis.field(&key, "status").as_deref(), Some("error"));
        let error = redis.field(&key, "error").unwrap_or_default();
        assert!(error.contains("traceparent") && error.len() < 1000, "{error:.1000}");
    }
}

#[test]
fn call_of_an_agent_is_a_span_between_its_header_and_its_job() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let served = Served::with(sending(Hero::on(&redis), &receiver), &redis);
    let _actor = served.hero.actor("osis-default-1").start();
    let token = format!("Bearer {}", served.token(&["agent", "--scope", "read,submit"]));
    let trace = place(7);
    let headers = [
        ("authorization", token.as_str()),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-06-18"),
        ("traceparent", trace.as_str()),
    ];
    let arguments = json!({ "script": "40 + 2", "script_type": "osis" });
    let params = json!({ "name": "run_script", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let answer = served.tcp().post("/mcp", &headers, &call.to_string()).json();
    let id = answer["result"]["structuredContent"]["id"].as_str().expect("an id").to_owned();
    is_below(&redis, &receiver, (&id, "job.run"), 7);
}

#[test]
fn each_firing_of_a_periodic_job_is_a_trace_of_its_own() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let folder = redis.folder().join("cron.d");
    fs::create_dir_all(&folder).expect("a folder");
    let text = "[cron.tick]\nschedule = \"* * * * * *\"\ntype = \"osis\"\nscript = \"1\"\n\
                overlap = \"allow\"\n";
    fs::write(folder.join("tick.toml"), text).expect("written");
    let hero = sending(Hero::on(&redis), &receiver)
        .set("supervisor.cron_dir", &format!("\"{}\"", folder.display()));
    let _actor = hero.actor("osis-default-1").start();
    let supervisor = hero.supervisor().start();
    let fired = || {
        let mut all = spans(&receiver);
        all.retain(|span| span["name"] == "fire tick");
        all
    };
    wait_until("it has fired three times", || fired().len() >= 3);
    let all = fired();
    let traces: BTreeSet<&str> = all.iter().map(|of| of["traceId"].as_str().expect("")).collect();
    assert_eq!(traces.len(), all.len(), "{all:?}");
    for span in &all[..2] {
        let id = attribute(span, "hero.submitted.id");
        let text = |of: &str| span[of].as_str().expect("text").to_owned();
        let own = format!("00-{}-{}-01", text("traceId"), text("spanId"));
        assert_eq!((of(&redis, id), text("parentSpanId")), (Some(own), String::new()));
        let attempt = span_of(&receiver, "attempt osis", id);
        assert_eq!(
            (&attempt["traceId"], &attempt["parentSpanId"]),
            (&span["traceId"], &span["spanId"])
        );
        let line = format!("trace_id=\"{}\"", text("traceId"));
        assert!(supervisor.err().contains(&line), "{}", supervisor.err());
    }
}

#[test]
fn child_is_in_the_trace_of_its_parent_below_the_attempt_that_submitted_it() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let script = "printf '{\"submit\": {\"type\": \"bash\", \"name\": \"child\", \"script\": \"true\"}}\\n' \
                  >&\"$HERO_FD\"; read -r answer <&\"$HERO_FD_IN\"";
    let run = |hero: &Hero, id: &str| {
        let actor = hero.actor("bash-default-1").start();
        let exec = ["exec", "-t", "bash", "--id", id, "--traceparent", &place(8), "-e", script];
        hero.run(&exec).code(0);
        let children = redis.field(&keys::job(id), "children").expect("a child");
        let children: Vec<String> = serde_json::from_str(&children).expect("JSON");
        until(&redis, &children[0], "finished");
        // It sends the rest when it ends.
        actor.signal(Signal::SIGTERM);
        actor.ends().code(0);
        children[0].clone()
    };
    let plain = Hero::on(&redis).set("type.bash.may_submit", "[\"bash\"]");
    let child = run(&plain, "untold");
    assert_eq!(of(&redis, &child), Some(place(8)), "without a receiver it is the parent's place");
    let hero = Hero::on(&redis).set("type.bash.may_submit", "[\"bash\"]");
    let child = run(&sending(hero, &receiver), "told");
    let parent = span_of(&receiver, "attempt bash", "told");
    let own = span_of(&receiver, "attempt bash", &child);
    assert_eq!((&own["traceId"], &own["parentSpanId"]), (&TRACE.into(), &parent["spanId"]));
    let place = format!("00-{TRACE}-{}-01", parent["spanId"].as_str().expect("text"));
    assert_eq!(of(&redis, &child), Some(place));
}
