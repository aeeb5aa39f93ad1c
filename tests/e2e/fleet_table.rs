//! The live table of `hero exec --every-machine` at a terminal, and the tool of agents that runs a script on every machine.

use std::fs;
use std::io::{Write, pipe};
use std::num::NonZero;
use std::process::Stdio;

use serde_json::{Value, json};

use super::machines::{can_divide, fleet, on, shut_down, until_noted};
use crate::support::{Hero, Process, Redis, Served, request, until_exists, wait_until};

/// Returns the text on the screen of a terminal of 80 columns and 24 lines.
fn screen(process: &Process) -> String {
    shown(&process.out())
}

fn shown(text: &str) -> String {
    let [rows, columns] = [24, 80].map(|size| NonZero::new(size).expect("not zero"));
    let mut parser = vt100::Parser::new(rows, columns, 0);
    parser.process(text.as_bytes());
    parser.screen().contents()
}

/// Returns the words of the row of a machine on the screen.
fn row(screen: &str, machine: &str) -> Vec<String> {
    let line = screen.lines().find(|line| line.split(' ').next() == Some(machine));
    line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn machines_are_a_table_while_the_command_waits_and_their_answers_afterwards() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let (gate, token) = (redis.folder().join("gate"), redis.folder().join("token"));
    let site = Served::with(
        on(&redis).set("client.token_file", &format!("{:?}", token.display().to_string())),
        &redis,
    );
    fs::write(&token, site.token(&["ops", "--scope", "read,submit,operate"])).expect("written");
    let _actors = fleet(&site.hero);
    let script = format!(
        "printf \"a\\033[2Jb\\n\"; [ $(hostname) = web1 ] || exit 3; {}",
        until_exists(&gate)
    );
    let api = site.at("");
    for before in [&[][..], &["--api", &api]] {
        let exec = ["exec", "--every-machine", "-t", "bash", "-e", &script];
        let words = [before, &exec].concat();
        let process = site.hero.begin_at_terminal(&words);
        wait_until("both machines are in the table", || {
            let screen = screen(&process);
            let web1 = ["web1", "running", "-", "a\\u{1b}[2Jb"];
            row(&screen, "web1") == web1
                && row(&screen, "web2").starts_with(&[
                    "web2".to_owned(),
                    "failed".to_owned(),
                    "3".to_owned(),
                ])
        });
        let table = screen(&process);
        assert_eq!(row(&table, "MACHINE"), ["MACHINE", "STATE", "EXIT", "LAST", "LINE"]);
        fs::write(&gate, "").expect("written");
        let rest = shown(&process.ends().code(1).stdout);
        assert!(rest.starts_with("== web1\na\\u{1b}[2Jb\n== web2 failed: exit code 3"), "{rest}");
        assert!(!rest.contains("MACHINE") && !rest.contains("running"), "{rest}");
        fs::remove_file(&gate).expect("removed");
    }
    fs::write(&gate, "").expect("written");
    let exec = ["--json", "exec", "--every-machine", "-t", "bash", "-e", "sleep 2"];
    let json = site.hero.begin_at_terminal(&exec).ends().code(0).stdout;
    assert!(!json.contains("MACHINE"), "{json}");
    let exec = ["exec", "--every-actor", "-t", "bash", "-e", "sleep 2"];
    let actors = site.hero.begin_at_terminal(&exec).ends().code(0).stdout;
    assert!(actors.contains("ACTOR") && actors.contains("bash:default:3 on web2"), "{actors}");
    let piped = site.hero.run(&exec).code(0);
    assert!(!piped.stderr.contains("ACTOR"), "{}", piped.stderr);
}

#[test]
fn table_is_gone_before_a_message_that_ends_the_wait() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let hero = on(&redis);
    let (_supervisor, _actors) = (hero.supervisor().start(), fleet(&hero));
    let gate = redis.folder().join("gate");
    let script = until_exists(&gate);
    let gives_up = ["exec", "--every-machine", "--wait", "2s", "-t", "bash", "-e", &script];
    let process = hero.begin_at_terminal(&gives_up);
    wait_until("the table is drawn", || {
        process.out().contains("LAST LINE") || process.out().contains("EXIT")
    });
    let rest = shown(&process.ends().code(75).stdout);
    assert!(rest.contains("gave up waiting for batch ") && !rest.contains("EXIT"), "{rest}");
    let (reader, mut keyboard) = pipe().expect("a pipe");
    let exec = ["exec", "--every-machine", "-t", "bash", "-e", &script];
    let process = hero.begin_at_keyboard(&exec, Stdio::from(reader));
    wait_until("the table is drawn", || {
        row(&screen(&process), "web1").contains(&"waiting".to_owned())
            || row(&screen(&process), "web1").contains(&"running".to_owned())
    });
    keyboard.write_all(b"\x03").expect("the terminal reads its keyboard");
    let rest = shown(&process.ends().code(130).stdout);
    assert!(rest.contains("hero: stopped waiting; graph ") && !rest.contains("EXIT"), "{rest}");
    assert!(rest.contains("has not ended: "), "{rest}");
    fs::write(&gate, "").expect("written");
}

/// Calls the tool for every machine as an agent with a token. Returns its result.
#[expect(clippy::needless_pass_by_value, reason = "each is written where it is passed")]
fn call(hero: &Hero, token: &str, arguments: Value) -> Value {
    let params = json!({ "name": "run_on_machines", "arguments": arguments });
    let line = request("tools/call", &params) + "\n";
    let done = hero.run_with_input(&["mcp", "--token", token], &line).code(0);
    let mut answer: Value = serde_json::from_str(&done.stdout).expect("JSON");
    answer["result"].take()
}

fn token(hero: &Hero, words: &[&str]) -> String {
    hero.run(&[&["token", "new"], words].concat()).code(0).stdout.trim().to_owned()
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn agent_with_the_scope_runs_a_script_on_every_machine_and_gets_equal_answers_once() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let hero = on(&redis).set("job.retries", "0");
    let _supervisor = hero.supervisor().start();
    let [_first, second, _third] = fleet(&hero);
    let other = hero.actor("bash-io-1").on_machine("db1").start();
    let fleet = token(&hero, &["keeper", "--scope", "submit,fleet"]);
    let bash = |script: &str| json!({ "script": script, "script_type": "bash" });
    let same = call(&hero, &fleet, bash("echo same"));
    let about = &same["structuredContent"];
    let answer = json!([{ "machines": ["db1", "web1", "web2"], "jobs": about["answers"][0]["jobs"], "output": "same" }]);
    assert_eq!((&about["answers"], &about["state"]), (&answer, &json!("finished")), "{same}");
    assert_eq!((&same["isError"], &about["absent"]), (&json!(false), &json!([])));

    let fails = call(&hero, &fleet, bash("[ $(hostname) != web2 ] || exit 3; hostname"));
    let answers = fails["structuredContent"]["answers"].clone();
    let last = answers[2].clone();
    assert_eq!((&fails["isError"], &last["machines"]), (&json!(true), &json!(["web2"])));
    assert_eq!(last["error"], "exit code 3", "{fails}");
    let mut chosen = bash("hostname");
    (chosen["where"], chosen["at_a_time"]) = (json!("host in (web1, web2)"), json!(1));
    let chosen = call(&hero, &fleet, chosen)["structuredContent"]["answers"].clone();
    assert_eq!(chosen.as_array().map(Vec::len), Some(2), "{chosen}");
    let mut waits = bash("sleep 60");
    (waits["wait"], waits["stop_after"]) = (json!(0), json!("50%"));
    let waits = call(&hero, &fleet, waits)["structuredContent"].clone();
    assert_eq!(waits["state"], "running", "{waits}");
    hero.run(&["graph", "stop", waits["id"].as_str().expect("an id")]).code(0);
    let unknown = json!({ "script": "1", "script_type": "bash", "every": "actor" });
    let unknown = text(&call(&hero, &fleet, unknown));
    assert!(unknown.contains("unknown argument `every`"), "{unknown}");

    // A token that is bound to groups reaches the actors of these alone.
    let bound = token(&hero, &["bound", "--scope", "submit,fleet", "--group", "io"]);
    let own = call(&hero, &bound, bash("hostname"))["structuredContent"]["answers"].clone();
    assert_eq!((&own[0]["machines"], &own[1]), (&json!(["db1"]), &Value::Null), "{own}");
    let mut beyond = bash("hostname");
    beyond["where"] = json!("host = web1");
    let beyond = text(&call(&hero, &bound, beyond));
    assert!(beyond.contains("no machine has, or had lately, an actor of bash"), "{beyond}");

    until_noted(&redis, "bash:io:1");
    shut_down(other);
    drop(second);
    let absent = call(&hero, &fleet, bash("echo same"))["structuredContent"].clone();
    assert_eq!(absent["absent"], json!(["db1"]), "{absent}");
}
