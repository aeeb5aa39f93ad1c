//! Sessions over the API: what stays from one call to the next, and every way in which a session ends.

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Hero, Monitor, Redis, Served, keys, needs, request, until, wait_until};

/// A caller of the API with the token of an agent.
pub(crate) struct Agent<'s> {
    api: &'s Served,
    authorization: String,
}

impl<'s> Agent<'s> {
    pub(crate) fn new(api: &'s Served, name: &str, more: &[&str]) -> Self {
        let args = [&[name, "--scope", "read,submit"], more].concat();
        Self { api, authorization: format!("Bearer {}", api.token(&args)) }
    }

    /// Returns the result, or the message of the error.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Result<Value, String> {
        let headers = [("authorization", self.authorization.as_str())];
        let mut answer = self.api.tcp().post("/rpc", &headers, &request(method, params)).json();
        match answer["error"]["message"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Starts a session, and returns its id.
    #[track_caller]
    pub(crate) fn start(&self, script_type: &str, more: Value) -> String {
        let mut params = more;
        params["script_type"] = script_type.into();
        let started = self.call("session.start", &params).expect("a session");
        assert_eq!(started["status"], "started");
        started["id"].as_str().expect("an id").to_owned()
    }

    /// Runs a script in a session.
    pub(crate) fn run(&self, id: &str, script: &str) -> Result<Value, String> {
        self.call("session.run", &json!({ "id": id, "script": script }))
    }

    /// The exit code of a script that runs in a session, and what it writes.
    #[track_caller]
    fn ran(&self, id: &str, script: &str) -> (i64, String) {
        let ran = self.run(id, script).unwrap_or_else(|why| panic!("{script}: {why}"));
        let text = ran["output"].as_str().expect("a text").to_owned();
        (ran["exit_code"].as_i64().expect("a code"), text)
    }

    fn sessions(&self) -> Vec<Value> {
        let found = self.call("session.list", &json!({})).expect("a list");
        found["sessions"].as_array().expect("a list").clone()
    }
}

/// Tells if the machine has the program of a type.
fn has(script_type: &str) -> bool {
    script_type != "node" || needs("node", || Path::new("/usr/bin/node").exists())
}

fn wrote(text: &str) -> (i64, String) {
    (0, text.to_owned())
}

#[test]
fn variables_and_files_stay_in_a_session_of_each_type() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let ann = Agent::new(&api, "ann", &[]);
    for (script_type, scripts) in [
        (
            "python",
            [
                "rows = [1, 2]\nimport os\nos.mkdir('d'); os.chdir('d')\nopen('kept', 'w').write('7') and None",
                "rows.append(3)\nsum(rows)",
                "print(open('kept').read())",
                "import sys\nsys.stderr.write('no\\n'); sys.exit(3)",
                "rows",
                "import hero\nhero.output({'rows': rows})",
            ],
        ),
        (
            "bash",
            [
                "rows=6; add() { rows=$((rows + $1)); }; mkdir d; cd d; echo 7 > kept",
                "add 0; echo $rows",
                "cat kept",
                "echo no >&2; (exit 3)",
                "echo \"[1, 2, 3]\"",
                "echo '{\"output\": {\"rows\": [1, 2, 3]}}' >&$HERO_FD",
            ],
        ),
        (
            "node",
            [
                "const rows = [1, 2]; const fs = require('fs'); fs.mkdirSync('d'); process.chdir('d'); fs.writeFileSync('kept', '7\\n')",
                "rows.push(3); await null; console.log(rows.reduce((a, b) => a + b))",
                "process.stdout.write(fs.readFileSync('kept'), () => {}); undefined",
                "console.error('no'); throw new Error('3')",
                "JSON.stringify(rows).replaceAll(',', ', ')",
                "fs.writeSync(Number(process.env.HERO_FD), '{\"output\": {\"rows\": [1, 2, 3]}}\\n'); undefined",
            ],
        ),
    ] {
        if !has(script_type) {
            continue;
        }
        let _actor = api.hero.actor(&format!("{script_type}-default-1")).start();
        let id = ann.start(script_type, json!({}));
        assert_eq!(ann.ran(&id, scripts[0]), wrote(""), "{script_type}");
        assert_eq!(ann.ran(&id, scripts[1]), wrote("6\n"), "{script_type}");
        assert_eq!(ann.ran(&id, scripts[2]), wrote("7\n"), "{script_type}");
        let (code, text) = ann.ran(&id, scripts[3]);
        assert!(text.starts_with("no\n"), "{text}");
        assert_eq!(code, if script_type == "node" { 1 } else { 3 });
        assert_eq!(ann.ran(&id, scripts[4]), wrote("[1, 2, 3]\n"), "{script_type}");
        let told = ann.run(&id, scripts[5]).expect("an answer");
        assert_eq!(told["result"], "{\"rows\":[1,2,3]}", "{told}");
        let mistake = ann.ran(&id, "if (");
        assert!(mistake.0 != 0 && !mistake.1.is_empty(), "{mistake:?}");
        let listed = ann.sessions();
        assert_eq!((listed.len(), &listed[0]["calls"]), (1, &json!(7)), "{listed:?}");
        assert_eq!(listed[0]["id"], id.as_str());
        assert_eq!(
            ann.call("session.end", &json!({ "id": id })).expect("ended")["result"],
            "ended"
        );
        until(&redis, &id, "finished");
        assert_eq!(redis.field(&keys::job(&id), "output").as_deref(), Some("ended by ann"));
        assert!(ann.sessions().is_empty());
        let late = ann.run(&id, "1").expect_err("over");
        assert!(late.contains("it is over: ended by ann"), "{late}");
    }
}

#[test]
fn sessions_do_not_see_each_other_and_belong_to_their_callers() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("job.sessions_max", "2"), &redis);
    let _actor = api.hero.actor("bash-default-1").tasks(6).start();
    let ann = Agent::new(&api, "ann", &[]);
    let bob = Agent::new(&api, "bob", &[]);
    let operator = Agent::new(&api, "carl", &["--scope", "operate"]);
    let [one, two] = [(); 2].map(|()| ann.start("bash", json!({})));
    assert_eq!(ann.ran(&one, "name=one; echo one > file"), wrote(""));
    assert_eq!(ann.ran(&two, "name=two; ls -I script.sh; echo $name"), wrote("two\n"));
    assert_eq!(ann.ran(&one, "ls -I script.sh; echo $name"), wrote("file\none\n"));
    let third = ann.call("session.start", &json!({ "script_type": "bash" })).expect_err("a third");
    assert!(third.contains("ann has 2 sessions, as many as job.sessions_max allows"), "{third}");
    // Another context is no way to more of them.
    let other = json!({ "script_type": "bash", "context_id": "work" });
    assert!(ann.call("session.start", &other).is_err());
    for other in [&bob, &operator] {
        let refused = other.run(&one, "echo $name").expect_err("of another caller");
        assert!(refused.contains("may not run a script"), "{refused}");
    }
    assert!(bob.call("session.end", &json!({ "id": one })).is_err());
    assert_eq!((bob.sessions().len(), operator.sessions().len()), (0, 2));
    let bound = Agent::new(&api, "dora", &["--type", "python"]);
    assert!(bound.run(&one, "1").expect_err("beyond its types").contains("no such job"));
    bob.start("bash", json!({}));
    // Its place is free once it has ended.
    assert!(operator.call("session.end", &json!({ "id": two })).is_ok());
    until(&redis, &two, "finished");
    let three = ann.start("bash", json!({}));
    assert_eq!(ann.ran(&three, "ls -I script.sh; echo x$name"), wrote("x\n"));
    assert_eq!(ann.ran(&one, "echo $name"), wrote("one\n"));
}

#[test]
fn session_ends_by_time_by_idle_by_stop_and_by_a_call_that_does_not_end() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let _actor = api.hero.actor("bash-default-1").tasks(6).start();
    let ann = Agent::new(&api, "ann", &[]);
    let idle = ann.start("bash", json!({ "idle": 1 }));
    until(&redis, &idle, "finished");
    assert_eq!(redis.field(&keys::job(&idle), "output").as_deref(), Some("idle for 1 s"));
    assert!(ann.run(&idle, "1").expect_err("idle").contains("it is over: idle for 1 s"));
    let timed = ann.start("bash", json!({ "timeout": 2 }));
    let cut = ann.run(&timed, "sleep 60").expect_err("out of time");
    assert!(cut.contains("it is over, before it answered the call: timeout"), "{cut}");
    let stopped = ann.start("bash", json!({}));
    let waiting = std::thread::scope(|scope| {
        let call = scope.spawn(|| ann.run(&stopped, "touch $HERO_OUTPUT_DIR/begun; sleep 60"));
        wait_until("it is called", || redis.field(&keys::job(&stopped), "session_call").is_some());
        let busy = ann.run(&stopped, "1").expect_err("busy");
        assert!(busy.contains("it is serving another call"), "{busy}");
        api.hero.run(&["job", "stop", &stopped]).code(0);
        call.join().expect("an answer")
    });
    let why = waiting.expect_err("stopped");
    assert!(why.contains("before it answered the call: stopped_by_request"), "{why}");
    let endless = ann.start("bash", json!({}));
    let params = json!({ "id": endless, "script": "while :; do :; done", "timeout": 0.5 });
    let why = ann.call("session.run", &params).expect_err("endless");
    assert!(why.contains("it is stopped: the call had no answer within 500ms"), "{why}");
    until(&redis, &endless, "error");
    // A shell that ends still answers.
    let shell = ann.start("bash", json!({}));
    assert_eq!(ann.ran(&shell, "echo bye; exit 4"), (4, "bye\n".to_owned()));
    until(&redis, &shell, "error");
}

#[test]
fn call_of_python_and_node_over_its_time_is_interrupted_and_the_session_stays() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let ann = Agent::new(&api, "ann", &[]);
    for (script_type, keep, scripts) in [
        ("python", "kept = 7", ["while True: pass", "import time; time.sleep(60)"]),
        (
            "node",
            "var kept = 7",
            ["for (;;);", "await new Promise((done) => setTimeout(done, 60000))"],
        ),
    ] {
        if !has(script_type) {
            continue;
        }
        let _actor = api.hero.actor(&format!("{script_type}-default-1")).start();
        let id = ann.start(script_type, json!({}));
        ann.run(&id, keep).expect("kept");
        for script in scripts {
            let params = json!({ "id": id, "script": script, "timeout": 1 });
            let cut = ann.call("session.run", &params).expect("an answer");
            assert_eq!(cut["exit_code"], 124, "{cut}");
            assert_eq!(cut["output"], "the call took longer than 1 s\n");
        }
        assert_eq!(ann.ran(&id, "kept"), wrote("7\n"), "{script_type}");
    }
}

#[test]
fn session_ends_with_its_actor_and_never_runs_again() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"1s\"").set("job.crash_limit", "1000");
    let api = Served::with(hero, &redis);
    let mut actor = api.hero.actor("bash-default-1").tasks(2).start();
    let ann = Agent::new(&api, "ann", &[]);
    let [one, two] = [(); 2].map(|()| ann.start("bash", json!({})));
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| ann.run(&one, "sleep 60"));
        wait_until("it is called", || redis.field(&keys::job(&one), "session_call").is_some());
        actor.kill();
        call.join().expect("an answer")
    });
    let why = answer.expect_err("lost");
    assert!(why.contains("session lost: actor bash:default:1 died while it ran"), "{why}");
    until(&redis, &two, "error");
    // A drain ends an idle session at once, and another after its call.
    let actor = api.hero.actor("bash-default-1").tasks(2).start();
    let [one, two] = [(); 2].map(|()| ann.start("bash", json!({})));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| ann.run(&one, "sleep 1; echo done"));
        wait_until("it is called", || redis.field(&keys::job(&one), "session_call").is_some());
        actor.signal(Signal::SIGTERM);
        let ran = call.join().expect("no panic").expect("an answer");
        assert_eq!(ran["output"], "done\n");
    });
    actor.ends().code(0);
    for id in [one, two] {
        until(&redis, &id, "finished");
        let output = redis.field(&keys::job(&id), "output");
        assert_eq!(output.as_deref(), Some("its actor shuts down"));
    }
}

#[test]
fn output_of_a_call_is_bounded_and_its_end_is_kept() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let ann = Agent::new(&api, "ann", &[]);
    for (script_type, script) in [
        ("bash", "yes 12345678 | head -n 100000; echo end"),
        ("python", "print('12345678\\n' * 100000 + 'end')"),
        ("node", "console.log('12345678\\n'.repeat(100000) + 'end')"),
    ] {
        if !has(script_type) {
            continue;
        }
        let _actor = api.hero.actor(&format!("{script_type}-default-1")).start();
        let id = ann.start(script_type, json!({}));
        let ran = ann.run(&id, script).expect("an answer");
        let output = ran["output"].as_str().expect("a text");
        assert!(output.len() == 128 << 10 && output.ends_with("12345678\nend\n"), "{script_type}");
        assert_eq!(ran["output_truncated"], 900_004 - (128 << 10), "{script_type}");
        let large = ann.run(&id, &"#".repeat((128 << 10) + 1)).expect_err("too large");
        assert!(large.contains("script has 131073 bytes"), "{large}");
        assert_eq!(
            ann.run(&id, &format!("{} ", "\n".repeat(100_000))).expect("run")["exit_code"],
            0
        );
    }
}

#[test]
fn types_without_a_driver_and_wrong_times_are_refused() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("job.session_timeout_max", "\"20m\""), &redis);
    let ann = Agent::new(&api, "ann", &[]);
    let refused = |params: Value| ann.call("session.start", &params).expect_err("refused");
    assert!(refused(json!({ "script_type": "osis" })).contains("`osis` has no sessions"));
    assert!(refused(json!({ "script_type": "sal" })).contains("not sandboxed"));
    for (field, value) in [
        ("timeout", json!(1201)),
        ("timeout", json!(0)),
        ("idle", json!(-1)),
        ("idle", json!(1e300)),
    ] {
        let why = refused(json!({ "script_type": "bash", field: value }));
        assert!(why.contains(&format!("`{field}` is")) && why.contains("up to 20m"), "{why}");
    }
    // A session that no actor serves waits, and is no place to run a script yet.
    let params = json!({ "script_type": "bash", "wait": 0 });
    let waiting = ann.call("session.start", &params).expect("stored");
    assert_eq!(waiting["status"], "dispatched");
    let id = waiting["id"].as_str().expect("an id");
    let why = ann.run(id, "1").expect_err("it waits");
    assert!(why.contains("it is dispatched"), "{why}");
    api.call("job.submit", &json!({ "job": { "id": "usual", "script": "1", "script_type": "osis", "caller_id": "ann" } }));
    assert!(ann.run("usual", "1").expect_err("a job").contains("it is no session"));
}

#[test]
fn idle_session_costs_redis_nothing_more_than_another_job() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let _actor = api.hero.actor("bash-default-1").tasks(4).start();
    let ann = Agent::new(&api, "ann", &[]);
    let id = ann.start("bash", json!({}));
    // It writes nothing, as a log is written later.
    assert_eq!(ann.ran(&id, ":"), wrote(""));
    let mut monitor = Monitor::of(&redis);
    // Longer than a wait for work, a flush of logs and a heartbeat.
    api.hero.run(&["exec", "-t", "bash", "-e", "sleep 4"]).code(0);
    let commands = monitor.commands();
    let named: Vec<_> = commands.iter().filter(|command| command.contains(&id)).collect();
    assert!(named.is_empty() && commands.len() > 4, "{named:?}, {}", commands.len());
    assert_eq!(ann.ran(&id, "echo on"), wrote("on\n"));
}
