//! Hostile waits: none of them makes a job wait, and the same line without what makes it hostile does.

use serde_json::{Value, json};

use crate::support::{Hero, Redis, Served, keys, request, wait_until};

/// A name, a hostile wait in Python, and the honest one. `say` writes bytes to `HERO_FD`.
const TRIES: [(&str, &str, &str); 30] = [
    (
        "half a line at the end",
        r#"say(b'{"wait": {"event": "a"')"#,
        r#"say(b'{"wait": {"event": "a"}}')"#,
    ),
    (
        "two megabytes",
        r#"say(b'{"wait": {"event": "' + b'x' * 2000000 + b'"}}\n')"#,
        r#"say(b'{"wait": {"event": "x"}}\n')"#,
    ),
    (
        "a name of one byte too much",
        r#"say(b'{"wait": {"event": "' + b'x' * 65 + b'"}}\n')"#,
        r#"say(b'{"wait": {"event": "' + b'x' * 64 + b'"}}\n')"#,
    ),
    (
        "bytes that are no text",
        r#"say(b'{"wait": {"event": "\xff"}}\n')"#,
        r#"say(b'{"wait": {"event": "f"}}\n')"#,
    ),
    (
        "a zero byte",
        r#"say(b'{"wait": {"event": "a\\u0000"}}\n')"#,
        r#"say(b'{"wait": {"event": "a"}}\n')"#,
    ),
    (
        "an escape sequence of a terminal",
        r#"say(b'{"wait": {"event": "\\u001b[2J"}}\n')"#,
        r#"say(b'{"wait": {"event": "2J"}}\n')"#,
    ),
    (
        "a pattern of keys as the name",
        r#"say(b'{"wait": {"event": "a:job:*"}}\n')"#,
        r#"say(b'{"wait": {"event": "a.job-1"}}\n')"#,
    ),
    (
        "quotes of another language",
        r#"say(b"{'wait': {'event': 'a'}}\n")"#,
        r#"say(b'{"wait": {"event": "a"}}\n')"#,
    ),
    (
        "two waits in a line",
        r#"say(b'{"wait": {"event": "a"}}{"wait": {"event": "b"}}\n')"#,
        r#"say(b'{"wait": {"event": "a"}}\n{"wait": {"event": "b"}}\n')"#,
    ),
    (
        "two names of an event",
        r#"say(b'{"wait": {"event": "a", "event": "b"}}\n')"#,
        r#"say(b'{"wait": {"event": "b"}}\n')"#,
    ),
    (
        "thousands of brackets",
        r#"say(b'{"wait": ' + b'[' * 5000 + b']' * 5000 + b'}\n')"#,
        r#"say(b'{"wait": {"for": "1h"}}\n')"#,
    ),
    ("no number", r#"say(b'{"wait": {"for": NaN}}\n')"#, r#"say(b'{"wait": {"for": 1e3}}\n')"#),
    (
        "a time without an end",
        r#"say(b'{"wait": {"for": 1e999}}\n')"#,
        r#"say(b'{"wait": {"for": 9e2}}\n')"#,
    ),
    (
        "a time before the start",
        r#"say(b'{"wait": {"event": "a", "for": -1}}\n')"#,
        r#"say(b'{"wait": {"event": "a", "for": 3600}}\n')"#,
    ),
    (
        "a longer wait than the configuration allows",
        r#"say(b'{"wait": {"event": "a", "for": "31d"}}\n')"#,
        r#"say(b'{"wait": {"event": "a", "for": "29d"}}\n')"#,
    ),
    (
        "another encoding",
        r#"say('{"wait": {"event": "a"}}\n'.encode('utf-16'))"#,
        r#"say('{"wait": {"event": "a"}}\n'.encode())"#,
    ),
    (
        "a list of waits",
        r#"say(b'[{"wait": {"event": "a"}}]\n')"#,
        r#"say(b'{"wait": {"event": "a"}}\n')"#,
    ),
    (
        "a wait in a message",
        r#"say(b'{"log": {"wait": {"event": "a"}}}\n')"#,
        r#"say(b'{"log": "wait"}\n{"wait": {"event": "a"}}\n')"#,
    ),
    (
        "a wait beside a message",
        r#"say(b'{"wait": {"event": "a"}, "progress": 1}\n')"#,
        r#"say(b'{"progress": 1}\n{"wait": {"event": "a"}}\n')"#,
    ),
    (
        "a wait on standard output",
        r#"print('{"wait": {"event": "a"}}', flush=True)"#,
        r#"say(b'{"wait": {"event": "a"}}\n')"#,
    ),
    (
        "a wait on standard error",
        r#"os.write(2, b'{"wait": {"event": "a"}}\n')"#,
        r#"say(b'{"wait": {"event": "a"}}\n')"#,
    ),
    (
        "a wait on the descriptor of answers",
        "try: os.write(int(os.environ['HERO_FD_IN']), b'{\"wait\": {\"event\": \"a\"}}\\n')\nexcept OSError: pass",
        r#"say(b'{"wait": {"event": "a"}}\n')"#,
    ),
    (
        "the value of a secret as the name",
        "say(json.dumps({'wait': {'event': os.environ['API_TOKEN']}}).encode() + b'\\n')",
        "say(json.dumps({'wait': {'event': os.environ['API_USER']}}).encode() + b'\\n')",
    ),
    (
        "the value of a secret among the names",
        "say(json.dumps({'wait': {'event': 'a', 'who': ['ann', os.environ['API_TOKEN']]}}).encode() + b'\\n')",
        "say(json.dumps({'wait': {'event': 'a', 'who': ['ann', os.environ['API_USER']]}}).encode() + b'\\n')",
    ),
    (
        "a list of names without an end",
        "say(json.dumps({'wait': {'event': 'a', 'who': ['x'] * 33}}).encode() + b'\\n')",
        "say(json.dumps({'wait': {'event': 'a', 'who': ['x'] * 32}}).encode() + b'\\n')",
    ),
    (
        "its own end",
        "say(json.dumps({'wait': {'jobs': [os.environ['HERO_JOB_ID']]}}).encode() + b'\\n')",
        "say(json.dumps({'wait': {'jobs': ['later']}}).encode() + b'\\n')",
    ),
    (
        "more jobs than a wait has",
        "say(json.dumps({'wait': {'jobs': ['later'] * 101}}).encode() + b'\\n')",
        "say(json.dumps({'wait': {'jobs': ['later'] * 100}}).encode() + b'\\n')",
    ),
    (
        "a path as the id of a job",
        r#"say(b'{"wait": {"jobs": ["../later"]}}\n')"#,
        r#"say(b'{"wait": {"jobs": ["later"]}}\n')"#,
    ),
    (
        "a process that outlives the script",
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(1)\n        \
         say(b'{\"wait\": {\"event\": \"a\"}}\\n')\n    os._exit(0)",
        "if os.fork() == 0:\n    os.setsid()\n    say(b'{\"wait\": {\"event\": \"a\"}}\\n')\n    os._exit(0)\nos.wait()",
    ),
    (
        "a file in the place of the descriptor",
        "os.dup2(os.open('own', os.O_CREAT | os.O_WRONLY), fd)\nsay(b'{\"wait\": {\"event\": \"a\"}}\\n')",
        "os.dup2(fd, 60)\nos.write(60, b'{\"wait\": {\"event\": \"a\"}}\\n')",
    ),
];

/// The start of each script.
const HEAD: &str = "import json, os, time\nfd = int(os.environ['HERO_FD'])\n\
    def say(data):\n    while data: data = data[os.write(fd, data):]\n";

#[test]
fn hostile_waits_make_no_job_wait_and_honest_ones_do() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _python = hero.actor("python-default-1").tasks(2).start();
    hero.run(&["submit", "-t", "python", "--id", "later", "--delay", "1h", "-e", "1"]).code(0);
    let waits = |id: &str, script: &str| {
        let script = format!("{HEAD}{script}");
        let submit = ["submit", "-t", "python", "--id", id, "--env", "API_TOKEN=s3cr3t", "--env"];
        hero.run(&[&submit[..], &["API_USER=annie", "-e", &script]].concat()).code(0);
        let field = |name: &str| redis.field(&keys::job(id), name);
        let is_over = |status: &str| ["scheduled", "finished", "error"].contains(&status);
        wait_until("it has run", || field("status").as_deref().is_some_and(is_over));
        field("status").as_deref() == Some("scheduled") && field("wait").is_some()
    };
    let mut failures = Vec::new();
    for (number, (what, hostile, honest)) in TRIES.iter().enumerate() {
        if waits(&format!("hostile-{number}"), hostile) {
            failures.push((*what).to_owned());
        }
        if !waits(&format!("honest-{number}"), honest) {
            failures.push(format!("control of {what}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn flood_of_waits_is_one_wait_and_waits_without_an_end_are_an_error() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.waits_max", "3").set("job.retries", "0");
    let _supervisor = hero.supervisor().start();
    let _python = hero.actor("python-default-1").start();
    let flood =
        format!("{HEAD}for n in range(50000): say(b'{{\"wait\": {{\"event\": \"e%d\"}}}}\\n' % n)");
    hero.run(&["submit", "-t", "python", "--id", "flood", "-e", &flood]).code(0);
    let wait = || redis.field(&keys::job("flood"), "wait");
    wait_until("it waits", || wait().is_some());
    assert_eq!(wait().as_deref(), Some("{\"event\":\"e49999\"}"));
    let again = "import hero\nhero.wait(length=0)";
    let ended = hero.run(&["exec", "-t", "python", "--id", "many", "-e", again]).code(1);
    assert!(ended.stderr.contains("has waited 3 times"), "{}", ended.stderr);
    // Jobs that have ended, again and again.
    let again = "import hero\nhero.wait(jobs=['many'])";
    let ended = hero.run(&["exec", "-t", "python", "--id", "spin", "-e", again]).code(1);
    assert!(ended.stderr.contains("has waited 3 times"), "{}", ended.stderr);
}

#[test]
fn event_that_the_submitter_of_a_job_wrote_itself_is_none() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let forged = "HERO_EVENT={\"event\":\"approved\",\"who\":\"root\"}";
    let script = "import hero, os\nprint(hero.event, os.environ.get('HERO_EVENT'))";
    hero.run(&["exec", "-t", "python", "--env", forged, "-e", script])
        .code(0)
        .stdout("None None\n");
}

#[test]
fn hostile_events_change_no_job_and_honest_ones_end_its_wait() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let site = Served::with(hero, &redis);
    let hero = &site.hero;
    let _python = hero.actor("python-default-1").tasks(2).start();
    let (ann, bob, reader) = (
        site.token(&["ann", "--scope", "read,submit"]),
        site.token(&["bob", "--scope", "read,submit,operate"]),
        site.token(&["eve", "--scope", "read"]),
    );
    let script = "import hero\nif hero.event is None: hero.wait('ok', who=['ann', '@ops'])\nprint(hero.event['who'])";
    let field = |id: &str, name: &str| redis.field(&keys::job(id), name);
    let waiting = |id: &str| {
        hero.run(&["submit", "-t", "python", "--caller", "ann", "--id", id, "-e", script]).code(0);
        wait_until("it waits", || field(id, "wait").is_some());
    };
    let tell = |token: &str, params: &Value| {
        let bearer = format!("Bearer {token}");
        let answer =
            site.tcp().post("/rpc", &[("authorization", &bearer)], &request("job.tell", params));
        serde_json::from_str::<Value>(&answer.text()).unwrap_or_default()["error"].is_null()
    };
    waiting("a");
    let of = |event: &str, data: Value| json!({ "id": "a", "event": event, "data": data });
    let before = hero.run(&["--json", "job", "show", "a"]).stdout;
    let mut done = Vec::new();
    for (what, token, params) in [
        ("a caller who only reads", &reader, of("ok", json!(1))),
        ("a caller whom the wait does not name", &bob, of("ok", json!(1))),
        ("no token", &String::new(), of("ok", json!(1))),
        ("a name with a line end", &ann, of("ok\n", json!(1))),
        ("a name with an escape sequence", &ann, of("\u{1b}[2Jok", json!(1))),
        ("no name", &ann, of("", json!(1))),
        ("a name that is no text", &ann, json!({ "id": "a", "event": ["ok"] })),
        ("a name of another case in its member", &ann, json!({ "id": "a", "Event": "ok" })),
        ("data of a byte too much", &ann, of("ok", json!("x".repeat(65_535)))),
        ("the name of another teller", &ann, json!({ "id": "a", "event": "ok", "who": "ann" })),
        ("another job", &ann, json!({ "id": "b", "event": "ok" })),
        ("a key of redis as the id", &ann, json!({ "id": "*", "event": "ok" })),
    ] {
        if tell(token, &params) {
            done.push(what);
        }
    }
    assert_eq!(done, [""; 0]);
    assert_eq!(hero.run(&["--json", "job", "show", "a"]).stdout, before);
    assert!(tell(&ann, &of("ok", json!("x".repeat(65_534)))), "the control");
    wait_until("it has ended", || field("a", "status").as_deref() == Some("finished"));
    assert_eq!(hero.run(&["job", "output", "a"]).stdout, "ann");
    // Events that no wait asked for are bounded, in number and in bytes.
    waiting("b");
    let told =
        (0..40).filter(|number| tell(&ann, &json!({ "id": "b", "event": format!("e{number}") })));
    assert_eq!(told.count(), 16);
    waiting("c");
    let large = json!("x".repeat(60_000));
    let told = (0..40).filter(|number| {
        tell(&ann, &json!({ "id": "c", "event": format!("e{number}"), "data": large }))
    });
    assert_eq!(told.count(), 4);
    assert!(field("c", "told_events").is_some_and(|text| text.len() < 300_000));
    assert!(tell(&ann, &json!({ "id": "c", "event": "ok" })), "its own event comes all the same");
}
