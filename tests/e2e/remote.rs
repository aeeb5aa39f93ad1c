//! Commands over the API of a daemon elsewhere: `--api`, `HERO_API` and `[client]`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::until;
use crate::support::{Authority, Hero, Redis, Served, keys, until_exists, wait_until};

/// The user of the commands, who cannot reach Redis.
const NOBODY: u32 = 65_534;

/// A machine that has the program alone: another user, an empty home folder, no configuration.
struct Laptop {
    home: tempfile::TempDir,
    program: std::path::PathBuf,
    variables: Vec<(String, String)>,
}

impl Laptop {
    fn new(variables: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir_in("/tmp").expect("a folder");
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
        // The folder of the build may be closed to others.
        let program = home.path().join("hero");
        fs::hard_link(env!("CARGO_BIN_EXE_hero"), &program)
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_hero"), &program).map(drop))
            .expect("the program");
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { home, program, variables: variables.iter().map(own).collect() }
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    #[expect(clippy::disallowed_methods, reason = "nothing of the test's machine may be inherited")]
    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().env("HOME", self.path()).current_dir(self.path());
        command.envs(self.variables.iter().cloned()).uid(NOBODY).gid(NOBODY);
        command.output().expect("the program starts")
    }

    /// Runs a command that succeeds. Returns its output.
    #[track_caller]
    fn done(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// Runs a command that fails. Returns its exit code and its error.
    #[track_caller]
    fn failed(&self, args: &[&str]) -> (i32, String) {
        let done = self.run(args);
        assert!(!done.status.success(), "{args:?}: {}", text(&done.stdout));
        (done.status.code().unwrap_or_default(), text(&done.stderr))
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(args)).expect("one document")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A laptop with a token of all scopes for what is served.
fn laptop_of(served: &Served) -> Laptop {
    let token = served.token(&["laptop", "--scope", "read,submit,operate,admin"]);
    Laptop::new(&[("HERO_API", &served.at("")), ("HERO_TOKEN", &token)])
}

#[test]
fn jobs_are_run_shown_and_changed_without_redis() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let _actor = served.hero.actor("bash-default-1").start();
    let laptop = laptop_of(&served);

    let done = laptop.run(&["exec", "-t", "bash", "-e", "echo out; echo log >&2"]);
    assert_eq!((text(&done.stdout), text(&done.stderr)), ("out\n".into(), "log\n".into()));
    let token = served.token(&["sender", "--scope", "submit"]);
    let sender = Laptop::new(&[("HERO_API", &served.at("")), ("HERO_TOKEN", &token)]);
    let (code, error) = sender.failed(&["exec", "-t", "bash", "--id", "never", "-e", "echo out"]);
    assert!(code == 77 && error.contains("needs the scope read; hero submit"), "{code} {error}");
    assert_eq!(laptop.failed(&["job", "show", "never"]).0, 66, "it was not submitted");
    let (code, error) = laptop.failed(&["exec", "-t", "bash", "-e", "exit 3"]);
    assert!(code == 3 && error.contains("failed: exit code 3"), "{code} {error}");
    fs::write(laptop.path().join("in.txt"), "given").expect("written");
    let script = "cat \"$HERO_INPUT_DIR/in.txt\"; echo kept > \"$HERO_OUTPUT_DIR/f.txt\"";
    let id =
        laptop.done(&["submit", "--name", "one", "--input", "in.txt", "-t", "bash", "-e", script]);
    let id = id.trim_end();
    assert_eq!(laptop.done(&["job", "wait", id]), "given\n");
    assert_eq!(laptop.done(&["job", "output", id]), "given");
    assert!(laptop.done(&["job", "show", id]).contains("\nstatus        finished\n"));
    assert!(laptop.done(&["job", "files", id]).contains("f.txt"));
    assert_eq!(laptop.done(&["job", "fetch", id, "f.txt", "-o", "-"]), "kept\n");
    laptop.done(&["job", "fetch", id, "f.txt"]);
    assert_eq!(fs::read_to_string(laptop.path().join("f.txt")).ok().as_deref(), Some("kept\n"));

    let listed = laptop.json(&["job", "list", "--name", "one", "--since", "1h", "--json"]);
    let same = served.call("job.list", &json!({ "name": "one" }));
    assert_eq!(listed, same, "it is the result of the method");
    assert!(laptop.done(&["job", "list", "--status", "failed"]).contains("exit code 3"));
    assert!(laptop.done(&["job", "errors"]).contains("exit code"));
    let none = laptop.run(&["job", "list", "--name", "nothing"]);
    assert!(text(&none.stderr).contains("no job with a name that contains `nothing`"));

    let retried = laptop.run(&["job", "retry", "--status", "failed", "--dry-run"]);
    assert!(text(&retried.stderr).contains("1 job would be retried"));
    assert_eq!(laptop.done(&["job", "delete", id]), format!("{id} deleted\n"));
    assert_eq!(laptop.failed(&["job", "show", id]).0, 66);
    let waiting = laptop.done(&["submit", "--delay", "1h", "-t", "bash", "-e", "echo $A"]);
    let waiting = waiting.trim_end();
    laptop.done(&["job", "edit", waiting, "--priority", "background"]);
    assert_eq!(laptop.json(&["job", "show", waiting, "--json"])["priority"], 2);
    let copy = laptop.done(&["job", "clone", waiting, "--env", "A=copied"]);
    assert_eq!(laptop.done(&["job", "wait", copy.trim_end()]), "copied\n");
    let long = laptop.done(&["submit", "-t", "bash", "-e", "echo begun; sleep 600"]);
    let long = long.trim_end();
    laptop.done(&["job", "stop", long]);
    let (code, error) = laptop.failed(&["job", "wait", long]);
    assert!(code == 1 && error.contains("was stopped by laptop"), "{code} {error}");
    let (code, error) = laptop.failed(&["exec", "--wait", "0s", "-t", "bash", "-e", "sleep 600"]);
    assert!(code == 75 && error.contains("hero job wait"), "{code} {error}");
}

#[test]
fn many_jobs_queues_and_people_are_reached_without_redis() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let _actor = served.hero.actor("bash-default-1").start();
    let laptop = laptop_of(&served);

    fs::write(laptop.path().join("lines"), "a\nb\n").expect("written");
    let batch = laptop.done(&["submit", "--each", "lines", "--", "echo"]);
    assert_eq!(laptop.done(&["graph", "wait", batch.trim_end()]), "2 of 2 done\n");
    let line = "{\"script_type\": \"bash\", \"script\": \"echo 1\"}\n";
    fs::write(laptop.path().join("jobs.jsonl"), line).expect("written");
    let ids = laptop.done(&["submit", "--batch", "jobs.jsonl", "--ids"]);
    assert_eq!(laptop.done(&["job", "wait", ids.trim_end()]), "1\n");
    let lines = (0..600).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
    fs::write(laptop.path().join("many"), lines).expect("written");
    let many = laptop.json(&[
        "--json", "submit", "--each", "many", "--id", "many", "--delay", "1h", "-t", "bash", "-e",
        ":",
    ]);
    assert_eq!((&many["id"], many["ids"].as_array().map(Vec::len)), (&json!("many"), Some(600)));
    assert_eq!(laptop.json(&["graph", "show", "many", "--json"])["graph"]["jobs"], 600);
    fs::write(laptop.path().join("in.txt"), "given").expect("written");
    let cat = "cat \\\"$HERO_INPUT_DIR/in.txt\\\"";
    let files = format!(
        "{{\"id\": \"f\", \"type\": \"bash\", \"script\": \"{cat}\", \"inputs\": [\"in.txt\"]}}\nno\n\
                         {{\"type\": \"bash\", \"script\": \":\", \"where\": \"role = mail\"}}\n"
    );
    fs::write(laptop.path().join("files.jsonl"), files).expect("written");
    let (code, error) = laptop.failed(&["submit", "--batch", "files.jsonl"]);
    assert!(
        code == 65 && error.contains("files.jsonl:2: invalid job: the line is not JSON"),
        "{error}"
    );
    assert!(error.contains("hero: 1 job waits: no live actor matches role = \"mail\""), "{error}");
    assert_eq!(laptop.done(&["job", "wait", "f"]), "given\n");
    let graph = "name = \"pipe\"\n[job.a]\ntype = \"bash\"\nscript = \"echo 1\"\n\
                 [job.b]\ntype = \"bash\"\nafter = [\"a\"]\nscript = \"cat $HERO_INPUTS\"\nstdin = \"in.txt\"\n";
    fs::write(laptop.path().join("wrong.toml"), graph.replace("[\"a\"]", "[\"aa\"]"))
        .expect("written");
    let (code, error) = laptop.failed(&["submit", "--graph", "wrong.toml"]);
    assert!(code == 65 && error.contains("wrong.toml:7:10: job `b` waits for `aa`"), "{error}");
    fs::write(laptop.path().join("g.toml"), graph).expect("written");
    let id = laptop.done(&["submit", "--graph", "g.toml"]);
    assert_eq!(laptop.done(&["graph", "wait", id.trim_end()]), "2 of 2 done\n");
    let shown = laptop.done(&["graph", "show", id.trim_end()]);
    assert!(shown.contains("name       pipe\n") && shown.contains(" b "), "{shown}");
    assert!(laptop.done(&["graph", "list"]).contains("2 of 2 done"));

    assert!(laptop.done(&["queue", "pause", "type:bash"]).contains("type:bash paused\n"));
    assert!(laptop.done(&["queue", "list"]).contains("paused"));
    assert!(laptop.done(&["queue", "resume", "type:bash"]).contains("type:bash resumed\n"));
    assert!(
        laptop
            .done(&["queue", "drain", "--all", "--wait", "1m"])
            .ends_with("no job of these queues runs\n")
    );
    assert!(laptop.done(&["queue", "resume", "--all"]).contains("all queues resumed\n"));
    assert!(laptop.done(&["actor", "list"]).contains("bash:default:1"));
    assert!(laptop.done(&["actor", "ping", "bash-default-1"]).contains("answered after"));
    assert!(laptop.done(&["machine", "list"]).contains("bash:default:1"));
    let every = ["exec", "--every-machine", "-t", "bash", "-e", "echo here"];
    let everywhere = laptop.done(&every);
    assert!(everywhere.starts_with("== ") && everywhere.ends_with("\nhere\n"), "{everywhere}");
    assert!(laptop.done(&["stats"]).contains("bash"));
    assert_eq!(laptop.json(&["limit", "list", "--json"]), json!({ "limits": [] }));
    assert_eq!(laptop.json(&["cron", "list", "--json"]), json!({ "cron": [], "problems": [] }));
    fs::write(laptop.path().join("report.sh"), "echo $1\n").expect("written");
    let add = ["cron", "add", "report", "--schedule", "@yearly", "report.sh", "--", "north"];
    let done = laptop.run(&add);
    assert_eq!(text(&done.stdout), "report added\n", "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("runs next at "), "{}", text(&done.stderr));
    let (code, error) = laptop.failed(&add);
    assert!(code == 65 && error.contains("hero cron edit report changes it"), "{code} {error}");
    let edit = ["cron", "edit", "report", "--json", "--overlap", "allow", "--", "south"];
    assert_eq!(laptop.json(&edit), json!({ "name": "report" }));
    let (code, error) = laptop.failed(&["cron", "edit", "report"]);
    assert!(code == 2 && error.contains("nothing to change"), "{code} {error}");
    let shown = laptop.json(&["cron", "show", "report", "--json"]);
    assert_eq!((&shown["overlap"], &shown["added_by"]), (&json!("allow"), &json!("laptop")));
    let id = laptop.done(&["cron", "run", "report"]);
    assert_eq!(laptop.done(&["job", "wait", id.trim_end()]), "south\n");
    let audit = laptop.done(&["audit", "--what", "queue"]);
    assert!(audit.contains("laptop") && audit.contains("queue.pause"), "{audit}");
    assert!(laptop.done(&["notify", "list"]).contains("no notification was delivered yet"));
    assert!(laptop.run(&["dead", "list"]).status.success());
}

#[test]
fn what_keeps_a_command_from_the_api_is_named() {
    let redis = Redis::start();
    let authority = Authority::new(redis.folder(), "own");
    let hero = Hero::on(&redis)
        .set("api.tls_cert_file", &authority.quoted("cert.pem"))
        .set("api.tls_key_file", &authority.quoted("key.pem"));
    let served = Served::with(hero, &redis);
    let token = served.token(&["laptop", "--scope", "read"]);
    let address = format!("https://127.0.0.1:{}", served.port);

    let laptop = Laptop::new(&[("HERO_API", &address), ("HERO_TOKEN", &token)]);
    let (code, error) = laptop.failed(&["job", "list"]);
    assert!(code == 69 && error.contains("tls_ca_file in [client]"), "{code} {error}");

    let laptop = Laptop::new(&[]);
    let file = |name: &str| laptop.path().join(name);
    fs::copy(authority.file("ca.pem"), file("ca.pem")).expect("copied");
    fs::write(file("token"), format!("{token}\n")).expect("written");
    fs::create_dir_all(file(".config/hero")).expect("a folder");
    let own = format!(
        "[client]\napi = {address:?}\ntoken_file = {:?}\ntls_ca_file = {:?}\n",
        file("token"),
        file("ca.pem")
    );
    fs::write(file(".config/hero/hero.toml"), own).expect("written");
    assert!(laptop.done(&["job", "list"]).starts_with("ID"), "the user's configuration is enough");
    let (code, error) = laptop.failed(&["queue", "pause", "--all"]);
    assert!(code == 77 && error.contains("scope operate"), "{code} {error}");
    for command in [
        &["bench", "--api", &address][..],
        &["backup", "b"],
        &["top"],
        &["doctor", "--api", &address],
    ] {
        let (code, error) = laptop.failed(command);
        assert!(code == 2 && error.contains("not over the API of https://"), "{code} {error}");
    }

    let stranger = Laptop::new(&[("HERO_TOKEN", "wrong")]);
    let other = Redis::start();
    let plain = Served::on(&other);
    let (code, error) = stranger.failed(&["job", "list", "--api", &plain.at("")]);
    assert!(code == 77 && error.contains("HERO_TOKEN"), "{code} {error}");
    let (code, error) = stranger.failed(&["job", "list", "--api", "ftp://host"]);
    assert!(code == 2 && error.contains("API `ftp://host` must be https://"), "{code} {error}");
    let (code, error) = stranger.failed(&["job", "list", "--api", "http://127.0.0.1:1"]);
    assert!(code == 69 && error.contains("127.0.0.1 port 1"), "{code} {error}");
}

#[test]
fn daemon_of_another_version_and_another_server_have_distinct_errors() {
    let old = json!({ "jsonrpc": "2.0", "id": 1, "error": {
        "code": -32601, "message": "there is no method `job.list`" } });
    for (body, said) in [
        (old.to_string(), "is of another version: there is no method `job.list`"),
        ("<html>It works!</html>".to_owned(), "is no answer of Hero, 404 Not Found"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).expect("a request");
            let head = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length:";
            write!(stream, "{head} {}\r\n\r\n{body}", body.len()).expect("written");
        });
        let (code, error) = Laptop::new(&[]).failed(&["job", "list", "--api", &address]);
        assert!(code == 69 && error.contains(said), "{code} {error}");
        server.join().expect("it ends");
    }
}

#[test]
fn exit_codes_over_the_api_are_those_of_this_machine() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let api = format!("unix:{}", served.socket.display());
    for id in ["a", "b"] {
        let words = ["submit", "-t", "osis", "--tag", "x", "--delay", "1h", "--id", id, "-e", "1"];
        served.hero.run(&words).code(0);
    }
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["job", "delete", "--tag", "x"],
            2,
            "cannot delete 2 jobs without confirmation; add --yes",
        ),
        (&["job", "stop", "--tag", "x"], 2, "cannot stop 2 jobs without confirmation; add --yes"),
        (&["job", "delete", "--tag", "none"], 0, ""),
        (&["dead", "delete", "--all"], 0, ""),
        (&["run-script", "nope"], 66, "no such script: `nope` is not a published script"),
        (
            &["submit", "-t", "osis", "--where", "a = \"b\" and", "-e", "1"],
            65,
            "--where: `a = \"b\" and` is",
        ),
        (
            &["exec", "-t", "osis", "--where", "a = \"b\" and", "-e", "1"],
            65,
            "--where: `a = \"b\" and` is",
        ),
        (&["actor", "list", "--where", "a = \"b\" and"], 65, "--where: `a = \"b\" and` is"),
    ];
    for (words, code, told) in cases {
        let here = served.hero.run(words).code(code).says(told);
        let there = served.hero.run(&[&["--api", &api], words].concat()).code(code).says(told);
        assert_eq!(there.stdout, here.stdout, "{words:?}");
    }
    assert!(["a", "b"].iter().all(|id| redis.field(&keys::job(id), "status").is_some()));
}

#[test]
fn status_is_shown_over_the_api_as_on_this_machine() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let api = format!("unix:{}", served.socket.display());
    served.hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    for (words, code) in [(&["status"][..], 0), (&["status", "--check"], 1)] {
        for before in [&[][..], &["--api", &api]] {
            let shown = served.hero.run(&[before, words].concat()).code(code);
            let line = "queue type:osis has 1 job and no live actor";
            assert!(shown.stdout.contains(line), "{words:?}: {}", shown.stdout);
        }
    }
    let document = |before: &[&str]| -> Value {
        let shown = served.hero.run(&[before, &["status", "--json"]].concat()).code(0);
        serde_json::from_str(&shown.stdout).expect("a document")
    };
    let (here, there) = (document(&[]), document(&["--api", &api]));
    for member in ["paused", "actors", "brokers", "refuses_writes"] {
        assert_eq!(here[member], there[member], "{member}");
    }
    let none = "unix:/nonexistent/hero.sock";
    let refused = served.hero.run(&["--api", none, "status", "--check"]).code(2);
    assert!(refused.stdout.starts_with("CRITICAL - "), "{}", refused.stdout);
    served.hero.run(&["--api", none, "status"]).code(69);
}

#[test]
fn jobs_are_shown_over_the_api_as_on_this_machine() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let (hero, api) = (&served.hero, format!("unix:{}", served.socket.display()));
    let _actor = hero.actor("bash-default-1").start();
    for (id, script) in [("fails", "exit 3"), ("ends", "echo out; echo kept > $HERO_OUTPUT_DIR/f")]
    {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", script]).code(0);
        until(&redis, id, if id == "ends" { "finished" } else { "error" });
    }
    hero.run(&["submit", "-t", "bash", "-g", "no", "--id", "first", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "bash", "--after", "first", "--id", "then", "-e", "1"]).code(0);
    let tree = hero.run(&["job", "show", "then"]).code(0).stdout;
    assert!(tree.contains("prerequisites:\n  first  dispatched\n"), "{tree}");
    let waits = "job first waits for an actor: no live one claims jobs of";
    let nothing = "has no output yet; wait for it: hero job wait";
    let cases: [(&[&str], i32, &str); 17] = [
        (&["job", "show", "first"], 0, waits),
        (&["job", "show", "then"], 0, ""),
        (&["job", "show", "--json", "then"], 0, ""),
        (&["job", "wait", "--wait", "100ms", "first"], 75, waits),
        (&["job", "wait", "fails"], 3, "its log: hero job logs fails"),
        (&["job", "wait", "ends", "fails", "--json"], 3, "job fails failed: exit code 3"),
        (&["job", "list", "--json"], 0, ""),
        (&["job", "list", "--status", "failed", "--json"], 0, ""),
        (&["job", "list", "--parent", "firs"], 0, "of job firs"),
        (&["job", "list", "--failed-because", "luck"], 65, "--failed-because: "),
        (&["job", "errors", "--json"], 0, ""),
        (&["job", "output", "ends"], 0, ""),
        (&["job", "output", "first"], 65, nothing),
        (&["job", "fetch", "ends", "f", "-o", "-"], 0, ""),
        (&["job", "fetch", "ends", "../f", "-o", "-"], 66, "has no file `../f`: hero job files"),
        (&["dead", "show", "fails"], 65, "is not a dead letter"),
        (&["job", "logs", "first"], 0, "job first has not started: it is dispatched"),
    ];
    for (words, code, said) in cases {
        let own = hero.run(words).code(code).says(said);
        let there = hero.run(&[&["--api", &api], words].concat()).code(code).says(said);
        assert_eq!(there.stdout, own.stdout, "{words:?}");
    }
    let copy = hero.run(&["--api", &api, "job", "clone", "first", "--dry-run"]).code(0).stdout;
    let copy: Value = serde_json::from_str(&copy).expect("JSON");
    assert_eq!((&copy["group"], copy["id"] == "first"), (&json!("no"), false), "{copy}");
    assert_eq!(redis.ask::<usize>(&format!("EXISTS {}", job_key(&copy))), 0);
}

fn job_key(job: &Value) -> String {
    keys::job(job["id"].as_str().unwrap_or_default())
}

#[test]
fn log_is_followed_over_the_api_with_its_unfinished_line() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let (hero, api) = (&served.hero, format!("unix:{}", served.socket.display()));
    let _bash = hero.actor("bash-default-1").start();
    let gate = redis.folder().join("gate");
    let script = format!("printf 'Continue? [y/N] '; {}; echo yes", until_exists(&gate));
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", &script]).code(0);
    let logs = hero.begin(&["--api", &api, "job", "logs", "-f", "a"]);
    wait_until("the question is shown", || logs.out() == "Continue? [y/N] ");
    fs::write(&gate, "").expect("opening the gate");
    logs.ends().code(0).stdout("Continue? [y/N] yes\n");
    hero.run(&["--api", &api, "job", "logs", "a"]).code(0).stdout("Continue? [y/N] yes\n");
}

#[test]
fn user_of_the_local_socket_needs_no_token() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    let api = format!("unix:{}", served.socket.display());
    let listed = served.hero.run(&["--api", &api, "actor", "list"]).code(0);
    assert!(listed.stdout.starts_with("ACTOR"), "{}", listed.stdout);
}
