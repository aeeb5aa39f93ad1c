//! A verb on queues means the same on every face that has it, whether it names the queues of a type, a group, an instance, or
//! all. Agents and REST have no verbs for queues.

use serde_json::{Value, json};

use super::top::Terminal;
use crate::support::{Redis, Served, keys, request, wait_until};
use crate::web::requests::{send, signed_in};

/// The queues of a type, of a group and of an instance.
const NAMES: [&str; 3] = ["type:bash", "type:bash:group:io", "type:bash:group:io:inst:2"];
/// The name of all queues.
const ALL: &str = "*";
const PRIORITIES: [&str; 3] = ["", ":prio:0", ":prio:2"];

/// The faces, each with the verbs that it has.
const FACES: [(&str, &[&str]); 4] = [
    ("command", &["pause", "drain", "purge"]),
    ("api", &["pause", "drain", "purge"]),
    ("page", &["pause", "purge"]),
    ("top", &["pause"]),
];

/// Does this to the queues of a name.
fn act(site: &Served, (face, verb): (&str, &str), name: &str, is_done: impl Fn() -> bool) {
    match face {
        "command" => {
            let queues = if name == ALL { "--all" } else { name };
            let sure: &[&str] = if verb == "purge" { &["--yes"] } else { &[] };
            site.hero.run(&[&["queue", verb, queues], sure].concat()).code(0);
        }
        "api" => {
            site.call(&format!("queue.{verb}"), &json!({ "queue": name }));
        }
        "page" => assert_eq!(post(site, verb, name), 303),
        _ => {
            let mut terminal = Terminal::start(&site.hero);
            terminal.shows("type:bash:prio:0");
            terminal.press(&format!("/{name}\r"));
            terminal.shows(&format!("only rows with: {name} "));
            // The first row is the queue of urgent jobs.
            terminal.press("jp");
            if verb == "pause" {
                terminal.shows("? y does it");
                terminal.press("y");
            }
            wait_until("the queues were changed", is_done);
            terminal.press("q");
            terminal.ends();
        }
    }
}

/// Posts the form of the page; all queues are one of the list. Returns the status.
fn post(site: &Served, verb: &str, name: &str) -> u16 {
    let cookie = signed_in(site, &["ann", "--scope", "read,operate,admin"]);
    let forgery = send(site, "GET", "/queues", &cookie, "").forgery();
    let (path, form) = match name {
        ALL => ("/queues".to_owned(), format!("{verb}={ALL}")),
        name => (format!("/queues/{name}"), format!("do={verb}")),
    };
    send(site, "POST", &path, &cookie, &format!("{form}&csrf={forgery}")).status
}

/// Submits a job of each priority to the queues of each name.
fn submit(site: &Served) {
    let mut lines = String::new();
    for (group, instance) in [(None, None), (Some("io"), None), (Some("io"), Some(2))] {
        for priority in [0, 1, 2] {
            let mut job = json!({ "script_type": "bash", "script": "1", "priority": priority });
            for (name, value) in [("group", json!(group)), ("instance", json!(instance))] {
                if !value.is_null() {
                    job[name] = value;
                }
            }
            lines.extend([job.to_string(), "\n".to_owned()]);
        }
    }
    site.hero.run_with_input(&["submit", "--batch", "-"], &lines).code(0);
}

/// The names of the queues of a name, sorted as Redis's set is read.
fn queues_of(name: &str) -> Vec<String> {
    match name {
        ALL => vec![ALL.to_owned()],
        name => PRIORITIES.map(|priority| format!("{name}{priority}")).to_vec(),
    }
}

#[test]
fn pause_and_its_undo_mean_all_priorities_on_every_face() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let paused = || {
        let mut names: Vec<String> = redis.ask(&format!("SMEMBERS {}", keys::paused()));
        names.sort();
        names
    };
    submit(&site);
    for (face, verbs) in FACES {
        for verb in verbs.iter().filter(|verb| **verb != "purge") {
            for name in NAMES.into_iter().chain((face != "top").then_some(ALL)) {
                let all = queues_of(name);
                act(&site, (face, verb), name, || paused() == all);
                assert_eq!(paused(), all, "{face} {verb} {name}");
                act(&site, (face, "resume"), name, || paused().is_empty());
                assert_eq!(paused(), [""; 0], "{face} resume {name}");
            }
            if face != "top" {
                // The undo of a pause of all ends those of names as well.
                act(&site, (face, verb), NAMES[1], || true);
                act(&site, (face, verb), ALL, || true);
                act(&site, (face, "resume"), ALL, || true);
                assert_eq!(paused(), [""; 0], "{face} {verb}");
            }
        }
    }
}

#[test]
fn purge_means_all_priorities_of_a_name_alone_on_every_face() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let lengths = || {
        let length = |name: &str| -> u64 {
            let lists = PRIORITIES.map(|priority| keys::work(&format!("{name}{priority}")));
            lists.iter().map(|list| redis.ask::<u64>(&format!("LLEN {list}"))).sum()
        };
        NAMES.map(length)
    };
    for (face, _) in FACES.iter().filter(|(_, verbs)| verbs.contains(&"purge")) {
        submit(&site);
        assert_eq!(lengths(), [3; 3]);
        for (place, name) in NAMES.into_iter().enumerate() {
            act(&site, (face, "purge"), name, || true);
            let mut left = [3; 3];
            left[..=place].fill(0);
            assert_eq!(lengths(), left, "{face} {name}");
        }
    }
    // Nothing purges all queues at once.
    submit(&site);
    site.hero.run(&["queue", "purge", "--all", "--yes"]).code(2);
    let asked = request("queue.purge", &json!({ "queue": ALL }));
    assert_ne!(site.unix().post("/rpc", &[], &asked).json()["error"], Value::Null);
    assert_eq!(post(&site, "purge", ALL), 400);
    assert_eq!(lengths(), [3; 3]);
}

#[test]
fn pause_of_all_is_shown_with_its_undo() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, &["ann", "--scope", "read,operate"]);
    let page = || send(&site, "GET", "/queues", &cookie, "").body;
    assert!(page().contains("Pause all queues"), "{}", page());
    site.call("queue.pause", &json!({ "queue": ALL }));
    assert_eq!(site.call("queue.list", &json!({}))["pauses"], json!([ALL]));
    wait_until("the page has read it", || page().contains("Resume all queues"));
    assert!(page().contains("Paused, also those that come later: all queues."), "{}", page());
    let resumed = site.call("queue.resume", &json!({ "queue": ALL }));
    assert_eq!(resumed, json!({ "resumed": [ALL] }));
}
