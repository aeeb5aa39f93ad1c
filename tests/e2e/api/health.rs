//! One judgement: every face of the program tells the same problems with the same severities.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::e2e::ENDLESS;
use crate::support::{Frozen, Hero, Redis, Served, wait_until};

/// The severities that each face tells for the problem with this text. A finding of `hero doctor` calls what is critical
/// an error.
#[track_caller]
fn severities(api: &Served, text: &str) -> BTreeSet<String> {
    let has = |of: &Value, name: &str| of[name].as_str().is_some_and(|of| of.contains(text));
    let find = |list: &Value, name: &str| {
        let mut all = list.as_array().expect("a list").iter();
        all.find(|of| has(of, name)).unwrap_or_else(|| panic!("{text}: {list:#}")).clone()
    };
    let document = |args: &[&str]| -> Value {
        serde_json::from_str(&api.hero.run(args).stdout).expect("a document")
    };
    let check = document(&["status", "--check", "--json"]);
    let doctor = document(&["doctor", "--json"]);
    let health = api.call("system.health", &json!({}));
    let page = api.unix().get("/", &[]).text();
    let mark = page.rsplit_once(&text[1..]).unwrap_or_else(|| panic!("{text}: {page}")).0;
    let mark = mark.rsplit_once("data-severity=\"").expect("a mark").1;
    let metrics = api.hero.run(&["metrics"]).code(0).stdout;
    let subject = format!(
        "subject=\"{}\"",
        find(&health["problems"], "text")["subject"].as_str().expect("a text")
    );
    let kind = find(&health["problems"], "text")["kind"].as_str().expect("a kind").to_owned();
    let sample = metrics.lines().find(|line| line.contains(&subject) && line.contains(&kind));
    let sample = sample.unwrap_or_else(|| panic!("{subject}: {metrics}"));
    let sample = sample.split_once("severity=\"").expect("a label").1;
    let word = |text: &str| text.split('"').next().unwrap_or_default().to_owned();
    let agent = agent_health(&api.hero);
    let of = |value: Value| value.as_str().expect("a word").replace("error", "critical");
    [
        of(find(&check["check"]["reasons"], "reason")["state"].take()),
        of(find(&doctor["findings"], "text")["state"].take()),
        of(find(&health["problems"], "text")["severity"].take()),
        of(find(&agent["problems"], "text")["severity"].take()),
        word(mark),
        word(sample),
    ]
    .into()
}

/// The health as `hero mcp` tells it to an agent.
fn agent_health(hero: &Hero) -> Value {
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} });
    let call = json!({ "name": "health", "arguments": {} });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ];
    let input: Vec<String> = messages.iter().map(|message| format!("{message}\n")).collect();
    let done = hero.run_with_input(&["mcp"], &input.concat()).code(0);
    let answers =
        done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut answers = answers.filter(|answer| answer["id"] == 2);
    answers.next().expect("an answer")["result"]["structuredContent"].take()
}

#[test]
fn every_face_reports_the_same_severity_and_follows_the_thresholds() {
    // A supervisor that is slow to beat is no part of this.
    let judged = |set: &dyn Fn(Hero) -> Hero| {
        let redis = Redis::that_keeps();
        let hero = Hero::on(&redis).set("check.supervisors_min", "0");
        let api = Served::with(set(hero), &redis);
        api.hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
        let unserved = severities(&api, "queue type:osis has 1 job and no live actor");
        assert_eq!(unserved, ["warning".to_owned()].into());
        let state = api.call("system.health", &json!({}))["state"].clone();
        (state, api, redis)
    };
    assert_eq!(judged(&|hero| hero).0, "warning");
    for (key, expected) in [("depth_warning", "warning"), ("depth_critical", "critical")] {
        let (state, api, _redis) = judged(&|hero| hero.set(&format!("check.{key}"), "1"));
        assert_eq!(state, expected);
        let deep = severities(&api, "queue type:osis has 1 job (threshold 1)");
        assert_eq!(deep, [expected.to_owned()].into(), "{key}");
    }
}

#[test]
fn actor_that_hangs_is_reported_over_the_api_and_no_other_one_is_advised() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let actor = api.hero.actor("bash-default-1").start();
    let problem = |kind: &str| {
        let problems = api.call("system.health", &json!({}))["problems"].take();
        let mut all = problems.as_array().expect("a list").iter();
        all.find(|of| of["kind"] == kind).cloned()
    };
    assert_eq!(problem("actor_silent"), None);
    let frozen = Frozen::new(actor.pid());
    api.hero.run(&["submit", "-t", "bash", "-e", "1"]).code(0);
    wait_until("it is reported", || problem("actor_silent").is_some());
    let silence = "actor bash:default:1 has had no heartbeat for ";
    let silent = problem("actor_silent").expect("it is reported");
    assert!(silent["text"].to_string().contains(silence), "{silent}");
    let queue = problem("queue_without_actor").expect("it has a job");
    assert!(queue["text"].to_string().contains(silence), "{queue}");
    assert!(queue["remedy"].to_string().contains("it hangs, was killed"), "{queue}");
    drop(frozen);
    wait_until("it is well again", || problem("actor_silent").is_none());
    actor.signal(Signal::SIGTERM);
    actor.ends().code(0);
    assert_eq!(problem("actor_silent"), None, "it has shut down");
}

#[test]
fn misspelled_type_and_held_jobs_are_reported_with_what_to_do() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis).set("limit.one.running", "1").set("check.held_warning", "1");
    let api = Served::with(hero, &redis);
    let _osis = api.hero.actor("osis-default-1").start();
    // Another machine knows a type that this one does not.
    let other = Hero::on(&redis).add("[type.pyton]\nengine = \"osis\"\n");
    other.run(&["submit", "-t", "pyton", "-e", "1"]).code(0);
    for _ in 0..2 {
        api.hero.run(&["submit", "-t", "osis", "--timeout", "1h", "-e", ENDLESS]).code(0);
    }
    let problem = |kind: &str| {
        let problems = api.call("system.health", &json!({}))["problems"].take();
        let mut all = problems.as_array().expect("a list").iter();
        all.find(|of| of["kind"] == kind).cloned()
    };
    let misspelled = problem("queue_of_unknown_type").expect("it is told");
    assert!(misspelled["text"].as_str().is_some_and(|of| of.ends_with("did you mean `python`?")));
    assert_eq!(misspelled["severity"], "warning");
    wait_until("a job is held", || problem("queue_held").is_some());
    let held = problem("queue_held").expect("it is told");
    assert_eq!(
        (&held["severity"], &held["subject"]),
        (&json!("warning"), &json!("queue type:osis"))
    );
    let page = api.hero.run(&["doctor", "--problems"]).code(1).stdout;
    assert!(page.contains("limits hold 1 job of queue type:osis (threshold 1)"), "{page}");
    assert!(page.contains("hero queue purge --yes type:pyton"), "{page}");
}
