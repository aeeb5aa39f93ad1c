//! Hostile scripts in sessions: each harms its own session at most. After each of them a session of another caller on the
//! same actor serves as before, and a new session of the same caller is served.

use serde_json::json;

use crate::e2e::sessions::Agent;
use crate::support::{Hero, Redis, Served, keys, until, wait_until};

/// The value that nobody else may have.
const HIDDEN: &str = "hidden-from-others";
/// The answer that its caller gets, or the error, contains one of these.
const OVER: &[&str] = &["over, before it answered the call"];
const SLOW: &[&str] = &["the call had no answer within 1s"];
const DONE: &[&str] = &["\"exit_code\":0"];
const ANY: &[&str] =
    &["\"exit_code\":", "over, before it answered the call", "had no answer within"];

/// A name, the type, a hostile script, and what its caller gets. `say` writes its input to `HERO_FD`.
const TRIES: [(&str, &str, &str, &[&str]); 28] = [
    ("closes the descriptor", "bash", "eval \"exec $HERO_FD>&-\"", OVER),
    ("closes the answers", "bash", "eval \"exec $HERO_FD_IN<&-\"", DONE),
    (
        "answers itself",
        "bash",
        "say '{\"next\": {\"exit\": 0, \"output\": \"ZmFrZQ==\"}}'",
        &["fake"],
    ),
    ("asks without an answer", "bash", "say '{\"next\": null}'", DONE),
    ("says two requests in a line", "bash", "say '{\"next\": null}{\"next\": null}'", DONE),
    ("says a code that is none", "bash", "say '{\"next\": {\"exit\": \"0\"}}'", DONE),
    (
        "names the call of another",
        "bash",
        "say '{\"next\": {\"exit\": 0, \"id\": \"victim\"}}'",
        DONE,
    ),
    ("says what is no Base64", "bash", "say '{\"next\": {\"exit\": 0, \"output\": \"%\"}}'", DONE),
    (
        "says a giant output",
        "bash",
        "say \"{\\\"next\\\": {\\\"exit\\\": 0, \\\"output\\\": \\\"$(head -c 300000 /dev/zero | base64 -w 0)\\\"}}\"",
        DONE,
    ),
    (
        "says a line without an end",
        "bash",
        "{ printf '{\"next\": \"'; head -c 9000000 /dev/zero | tr '\\0' x; echo; } >&$HERO_FD",
        DONE,
    ),
    ("says half a line", "bash", "printf '{\"next\": {\"exit\"' >&$HERO_FD", OVER),
    ("says another request in the line", "bash", "say '{\"next\": null, \"state\": 1}'", DONE),
    (
        "says the next request again",
        "bash",
        "say '{\"next\": {\"exit\": 0}, \"next\": null}'",
        DONE,
    ),
    ("floods", "bash", "for n in $(seq 5000); do echo '{\"next\": null}'; done >&$HERO_FD", ANY),
    ("waits", "bash", "say '{\"wait\": {\"for\": \"1s\"}}'", DONE),
    ("waits, and ends the shell", "bash", "say '{\"wait\": {\"for\": \"1s\"}}'; exit 0", DONE),
    ("wants to run again", "bash", "say '{\"retry_in\": 0.1}'; exit 75", &["\"exit_code\":75"]),
    (
        "submits jobs",
        "bash",
        "say '{\"submit\": {\"type\": \"bash\", \"script\": \"1\"}}'; read -r a <&$HERO_FD_IN; echo \"$a\"",
        &["may not submit"],
    ),
    ("reads the answers", "bash", "read -r -t 0.2 a <&$HERO_FD_IN; echo \"[$a]\"", &["[]"]),
    ("kills the shell", "bash", "kill -9 $$", OVER),
    ("halts the shell", "bash", "kill -STOP $$", SLOW),
    ("replaces the driver", "bash", "__hero_say() { :; }", OVER),
    ("writes without an end", "bash", "yes", ANY),
    (
        "reports a giant result",
        "bash",
        "{ printf '{\"output\": \"'; head -c 3000000 /dev/zero | tr '\\0' x; echo '\"}'; } >&$HERO_FD",
        ANY,
    ),
    (
        "reads the folders of others",
        "bash",
        "cat $HOME/../../*/home/kept /tmp/*/*/home/kept 2>&1; cat /proc/*/environ | tr '\\0' '\\n'",
        ANY,
    ),
    ("ends the interpreter", "python", "import os\nos._exit(0)", OVER),
    (
        "ignores the alarm",
        "python",
        "import signal\nsignal.signal(14, signal.SIG_IGN)\nwhile True: pass",
        SLOW,
    ),
    (
        "catches all",
        "python",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        ANY,
    ),
];

#[test]
fn hostile_scripts_harm_their_own_session_alone() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.sessions_max", "64").set("job.kill_grace", "\"100ms\"");
    let api = Served::with(hero, &redis);
    let _bash = api.hero.actor("bash-default-1").tasks(8).start();
    let _python = api.hero.actor("python-default-1").tasks(8).start();
    let (ann, bob) = (Agent::new(&api, "ann", &[]), Agent::new(&api, "bob", &[]));
    let victim = ann.start("bash", json!({ "env_vars": { "HIDDEN": HIDDEN } }));
    ann.run(&victim, "echo $HIDDEN > kept").expect("kept");
    let mut failures = Vec::new();
    for (what, script_type, script, expected) in TRIES {
        let say = "say() { printf '%s\\n' \"$1\" >&$HERO_FD; }; ";
        let script =
            if script_type == "bash" { format!("{say}{script}") } else { script.to_owned() };
        let (hostile, honest) =
            (bob.start(script_type, json!({})), bob.start(script_type, json!({})));
        let params = json!({ "id": hostile, "script": script, "timeout": 1 });
        let told = match bob.call("session.run", &params) {
            Ok(answer) => answer.to_string(),
            Err(why) => why,
        };
        if told.contains(HIDDEN) || !expected.iter().any(|text| told.contains(text)) {
            failures.push(format!("{what}: {told:.300}"));
        }
        let print = if script_type == "bash" { "echo served" } else { "print('served')" };
        let served = bob.run(&honest, print).expect("the control is served");
        assert_eq!(served["output"], "served\n", "{what}");
        let kept = ann.run(&victim, "cat kept").expect("the victim is served");
        // The value of a variable that is not named as a secret is shown to its own caller.
        assert_eq!(kept["output"], format!("{HIDDEN}\n"), "{what}");
        for id in [hostile, honest] {
            // It may have ended by itself.
            drop(bob.call("session.end", &json!({ "id": id })));
            let job = keys::job(&id);
            let ended =
                || redis.field(&job, "status").is_some_and(|is| is == "error" || is == "finished");
            wait_until("it has ended", ended);
            assert_eq!(redis.field(&job, "attempt").as_deref(), Some("1"), "{what}");
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn hash_of_a_session_that_another_program_spoiled_ends_it_with_a_sentence() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let _bash = api.hero.actor("bash-default-1").start();
    let bob = Agent::new(&api, "bob", &[]);
    for spoiled in ["", "{", "7", "{\"id\": \"../x\", \"end\": \"\"}", "[[[[[["] {
        let id = bob.start("bash", json!({}));
        bob.run(&id, "kept=7").expect("served");
        redis.set_field(&keys::job(&id), "session_call", spoiled);
        assert!(bob.run(&id, "echo $kept").expect_err("busy").contains("serving another call"));
        assert_eq!(
            bob.call("session.end", &json!({ "id": id })).expect("stopped")["id"],
            id.as_str()
        );
        until(&redis, &id, "error");
    }
    let id = bob.start("bash", json!({}));
    redis.set_field(&keys::job(&id), "session_calls", "many");
    assert_eq!(bob.run(&id, "echo on").expect("served")["output"], "on\n");
    redis.set_field(&keys::job(&id), "session_calls", "1000");
    assert!(
        bob.run(&id, "echo on").expect_err("all its calls").contains("a session serves 1000 calls")
    );
}
