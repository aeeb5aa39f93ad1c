//! A verb on queues means the same on every face.

use serde_json::json;

use super::top::Terminal;
use crate::support::{Redis, Served, keys, wait_until};
use crate::web::requests::{send, signed_in};

/// The faces, each with the verbs that it has.
const FACES: [(&str, &[&str]); 4] = [
    ("command", &["pause", "resume", "purge"]),
    ("api", &["pause", "resume", "purge"]),
    ("page", &["pause", "resume", "purge"]),
    ("top", &["pause", "resume"]),
];

/// Does this to the queue of all jobs of Bash.
fn act(site: &Served, face: &str, verb: &str, is_done: impl Fn() -> bool) {
    match face {
        "command" => {
            let sure: &[&str] = if verb == "purge" { &["--yes"] } else { &[] };
            site.hero.run(&[&["queue", verb, "type:bash"], sure].concat()).code(0);
        }
        "api" => {
            site.call(&format!("queue.{verb}"), &json!({ "queue": "type:bash" }));
        }
        "page" => {
            let cookie = signed_in(site, &["ann", "--scope", "read,operate,admin"]);
            let forgery = send(site, "GET", "/queues", &cookie, "").forgery();
            let form = format!("do={verb}&csrf={forgery}");
            assert_eq!(send(site, "POST", "/queues/type:bash", &cookie, &form).status, 303);
        }
        _ => {
            let mut terminal = Terminal::start(&site.hero);
            // The first row is the queue of urgent jobs.
            terminal.shows("type:bash:prio:2");
            terminal.press("jp");
            wait_until("the queues were changed", is_done);
            terminal.press("q");
            terminal.ends();
        }
    }
}

#[test]
fn verb_on_a_queue_means_all_its_priorities_on_every_face() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let paused = || {
        let mut names: Vec<String> = redis.ask(&format!("SMEMBERS {}", keys::paused()));
        names.sort();
        names
    };
    let all = ["type:bash", "type:bash:prio:0", "type:bash:prio:2"];
    for (face, verbs) in FACES {
        for priority in ["urgent", "normal", "background"] {
            site.hero.run(&["submit", "-t", "bash", "-e", "1", "--priority", priority]).code(0);
        }
        for verb in verbs {
            match *verb {
                "pause" => {
                    act(&site, face, verb, || paused() == all);
                    assert_eq!(paused(), all, "{face} {verb}");
                }
                "resume" => {
                    act(&site, face, verb, || paused().is_empty());
                    assert_eq!(paused(), [""; 0], "{face} {verb}");
                }
                _ => {
                    act(&site, face, verb, || true);
                    for list in all {
                        let left: u64 = redis.ask(&format!("LLEN {}", keys::work(list)));
                        assert_eq!(left, 0, "{face} {verb} {list}");
                    }
                }
            }
        }
    }
}
