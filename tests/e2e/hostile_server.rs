//! A server that answers commands with control characters: none of them reaches the terminal.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::http::Link;
use crate::support::{Hero, Redis, Served, wait_until};

/// Sets the title, clears the screen, hides what follows; C1, and a change of direction.
const HOSTILE: &str = "x\u{1b}]0;forged\u{7}\u{1b}[2J\u{1b}[8m\u{9b}2J\u{202e}\r";

/// The member of results whose texts are replaced, and the members that had texts.
#[derive(Default)]
struct Forgery {
    member: String,
    seen: BTreeSet<String>,
}

/// Answers as a daemon does, with other texts.
fn serve(daemon: PathBuf, forgery: Arc<Mutex<Forgery>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (daemon, forgery) = (daemon.clone(), Arc::clone(&forgery));
            thread::spawn(move || answer(&stream, &daemon, &forgery));
        }
    });
    port
}

fn answer(stream: &TcpStream, daemon: &Path, forgery: &Mutex<Forgery>) -> Option<()> {
    let mut from = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if from.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end().to_lowercase();
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().ok()?;
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).ok()?;
        let mut told = Link::unix(daemon).post("/rpc", &[], &String::from_utf8(body).ok()?).json();
        for of in ["result", "error"] {
            if !told[of].is_null() {
                forge(of, &mut told[of], &mut forgery.lock().expect("no panic"));
            }
        }
        let told = told.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        let mut to = stream;
        write!(to, "{head} {}\r\n\r\n{told}", told.len()).ok()?;
    }
}

fn forge(member: &str, value: &mut Value, forgery: &mut Forgery) {
    match value {
        Value::String(text) => {
            forgery.seen.insert(member.to_owned());
            if forgery.member == member {
                HOSTILE.clone_into(text);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|one| forge(member, one, forgery)),
        Value::Object(members) => {
            for (name, one) in members {
                forge(name, one, forgery);
            }
        }
        _ => {}
    }
}

/// Fills a namespace: jobs that finished and failed, a file, a graph, a periodic job that ran, a paused queue.
fn fill(served: &Served) {
    let script = "echo out; echo line >&2; echo kept > \"$HERO_OUTPUT_DIR/f.txt\"";
    let job = json!({ "id": "a", "name": "first", "script": script, "script_type": "bash", "tags": ["t"] });
    let failing = json!({ "id": "b", "script": "exit 3", "script_type": "bash" });
    served.call("job.run", &json!({ "job": job, "wait": 30 }));
    served.call("job.run", &json!({ "job": failing, "wait": 30 }));
    let node =
        |name: &str| json!({ "name": name, "job": { "script": "echo 1", "script_type": "bash" } });
    let graph = json!({ "id": "g", "name": "whole", "jobs": [node("one"), node("two")] });
    served.call("graph.submit", &graph);
    served.call("graph.wait", &json!({ "id": "g", "wait": 30 }));
    let added = ["cron", "add", "tick", "--schedule", "0 0 1 1 *", "-t", "bash", "-e", "echo 1"];
    served.hero.run(&added).code(0);
    served.hero.run(&["cron", "run", "tick"]).code(0);
    served.hero.run(&["queue", "pause", "type:osis"]).code(0);
}

const COMMANDS: [&[&str]; 25] = [
    &["exec", "-t", "bash", "-e", "echo out; echo line >&2"],
    &["submit", "-t", "bash", "-e", "echo out"],
    &["job", "retry", "b"],
    &["job", "show", "a"],
    &["job", "show", "--json", "a"],
    &["job", "list"],
    &["graph", "show", "--json", "g"],
    &["job", "files", "a"],
    &["job", "logs", "a"],
    &["job", "logs", "--timestamps", "a"],
    &["job", "output", "a"],
    &["job", "wait", "b"],
    &["job", "stop", "b"],
    &["graph", "list"],
    &["graph", "show", "g"],
    &["graph", "wait", "g"],
    &["graph", "stop", "g"],
    &["cron", "list"],
    &["cron", "show", "tick"],
    &["cron", "history", "tick"],
    &["job", "errors"],
    &["queue", "list"],
    &["actor", "list"],
    &["audit"],
    &["dead", "list"],
];

#[test]
fn terminal_gets_no_control_character_of_a_server() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let _actor = served.hero.actor("bash-default-1").start();
    fill(&served);
    let forgery = Arc::new(Mutex::new(Forgery::default()));
    let port = serve(served.socket.clone(), Arc::clone(&forgery));
    let token = redis.folder().join("token");
    std::fs::write(&token, served.token(&["laptop", "--scope", "read,submit,operate,admin"]))
        .expect("written");
    std::fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("permissions");
    let hero = Hero::on(&redis)
        .set("client.api", &format!("\"http://127.0.0.1:{port}\""))
        .set("client.token_file", &format!("{:?}", token.display().to_string()));
    let shown = |args: &[&str], member: &str| {
        *forgery.lock().expect("no panic") =
            Forgery { member: member.to_owned(), ..Forgery::default() };
        hero.begin_at_terminal(args).ends().stdout
    };
    wait_until("the periodic job ended", || {
        served.call("cron.get", &json!(["tick"])).to_string().contains("succeeded")
    });
    let mut forged = 0;
    for args in COMMANDS {
        shown(args, "none has this name");
        let members = forgery.lock().expect("no panic").seen.clone();
        for member in members {
            let shown = shown(args, &member);
            for part in ["\u{1b}]", "\u{1b}[2J", "\u{1b}[8m", "\u{7}", "\u{9b}", "\u{202e}"] {
                assert!(!shown.contains(part), "{args:?} {member}: {shown:?}");
            }
            forged += usize::from(shown.contains("forged"));
        }
    }
    assert!(forged > 40, "the texts reach the terminal: {forged}");
}
