//! Results that a reader gets, or cannot get: output, ids, messages while waiting.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Hero, Redis, wait_until};

use super::{ENDLESS, field, until};

#[test]
fn id_of_an_accepted_job_is_printed_though_standard_output_is_gone() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for (pipe, why) in [(true, "broken pipe"), (false, "no space left on device")] {
        let told = |args: &[&str], accepted: &str| {
            let message = format!("cannot write to standard output: {why}; accepted: {accepted}\n");
            hero.run_without_output(args, pipe).code(74).says(&message);
        };
        let id = |name: &str| format!("{name}-{pipe}");
        told(&["submit", "-t", "osis", "-e", "1", "--id", &id("one")], &id("one"));
        let json = ["--json", "submit", "-t", "osis", "-e", "1", "--id", &id("json")];
        told(&json, &format!("{{\"id\":\"{}\",\"created\":true}}", id("json")));
        let graph = format!("[job.g]\nid = \"{}\"\ntype = \"osis\"\nscript = \"1\"\n", id("g"));
        fs::write(redis.folder().join("g.toml"), graph).expect("writing");
        told(&["submit", "--graph", "g.toml", "--id", &id("graph")], &id("graph"));
        let line =
            |name: &str| format!(r#"{{"id":"{}","script_type":"osis","script":"1"}}"#, id(name));
        let batch = format!("{}\n{}\n", line("a"), line("b"));
        fs::write(redis.folder().join("b.jsonl"), batch).expect("writing");
        told(&["submit", "--batch", "b.jsonl", "--id", &id("batch")], &id("batch"));
        for name in ["one", "json", "g", "a", "b"] {
            assert_eq!(field(&redis, &id(name), "status").as_deref(), Some("dispatched"));
        }
    }
}

#[test]
fn unknown_queue_is_rejected_with_the_nearest_known_one() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.bash.engine", "\"command\"")
        .set("type.bash.command", "[\"/bin/bash\", \"{script}\"]")
        .set("unit.osis-io-1.tasks", "2");
    for command in [&["pause"][..], &["resume"], &["purge", "--yes"]] {
        hero.run(&[&["queue"], command, &["type:bsh"]].concat()).code(65).stdout("").says(
            "unknown queue type:bsh: no configured or live actor serves it, and it holds no jobs \
             (--force accepts it); did you mean `type:bash`?",
        );
    }
    hero.run(&["queue", "pause", "type:osis:group:oi"]).code(65).says("`type:osis:group:io`");
    hero.run(&["queue", "pause", "type:osis:group:io:prio:1"]).code(0);
    hero.run(&["submit", "-t", "osis", "-g", "gpu", "-e", "1"]).code(0);
    hero.run(&["queue", "purge", "--yes", "type:osis:group:gpu"]).code(0).stdout("1 job purged\n");
    hero.run(&["queue", "pause", "--force", "type:later:prio:1"]).code(0);
    hero.run(&["queue", "resume", "type:later:prio:1"])
        .code(0)
        .stdout("type:later:prio:1 resumed\n");
}

#[test]
fn waiting_commands_say_once_what_the_job_waits_for() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("limit.one.running", "1");
    let exec = hero.begin(&["exec", "-t", "osis", "-e", "1", "--id", "a"]);
    let nobody = "hero: job a waits for an actor: no live one claims jobs of type:osis: \
                  hero actor list\n";
    wait_until("a missing actor is reported", || exec.err() == nobody);
    hero.run(&["queue", "pause", "type:osis"]).code(0);
    let waiting = hero.begin(&["job", "wait", "a"]);
    let paused = "hero: job a waits for its queue, which is paused: hero queue resume type:osis\n";
    wait_until("the pause is reported", || waiting.err() == paused);
    wait_until("the new reason is reported", || exec.err() == format!("{nobody}{paused}"));
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "-t", "osis", "-i", "1", "--id", "busy", "-e", ENDLESS]).code(0);
    until(&redis, "busy", "started");
    hero.run(&["queue", "resume", "type:osis"]).code(0);
    let held = "hero: job a waits for a slot in the limit one: hero limit list\n";
    wait_until("the limit is reported", || waiting.err() == format!("{paused}{held}"));
    hero.run(&["job", "stop", "busy"]).code(0);
    exec.ends().code(0).stdout("1\n");
    waiting.ends().code(0).stdout("1\n");
}

#[test]
fn control_characters_of_a_log_reach_no_terminal_unless_asked_for() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _sal = hero.actor("sal-default-1").start();
    let script = "print(\"a\\x1b[2Jb\"); throw \"no\\x1b[2J\"";
    hero.run(&["submit", "-t", "sal", "--id", "a", "-e", script]).code(0);
    hero.run(&["job", "wait", "a"]).code(1).says("no\\u{1b}[2J");
    let at_terminal = |args: &[&str]| hero.begin_at_terminal(args).ends().code(0).stdout;
    assert_eq!(at_terminal(&["job", "logs", "a"]), "a\\u{1b}[2Jb\r\n");
    assert_eq!(at_terminal(&["job", "logs", "--raw", "a"]), "a\u{1b}[2Jb\r\n");
    hero.run(&["job", "logs", "a"]).code(0).stdout("a\u{1b}[2Jb\n");
    assert!(!hero.run(&["job", "show", "a"]).code(0).stdout.contains('\u{1b}'));
    assert!(hero.run(&["job", "show", "--raw", "a"]).code(0).stdout.contains("no\u{1b}[2J"));
}

#[test]
fn job_whose_input_is_gone_ends_in_error_and_others_of_its_type_run() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.output_inline_max", "\"1KiB\"");
    let _osis = hero.actor("osis-default-1").start();
    let script = "let text = \"x\"; text.pad(2000, 'x'); text";
    hero.run(&["exec", "-t", "osis", "--id", "first", "-e", script]).code(0);
    for key in redis.all("OUTPUT") {
        redis.delete(&key);
    }
    hero.run(&["exec", "-t", "osis", "--after", "first", "-e", "1"])
        .code(1)
        .says("invalid job: prerequisites include first, whose output cannot be read")
        .says("is gone");
    hero.run(&["exec", "-t", "osis", "-e", "40 + 2"]).code(0).stdout("42\n");
}

#[test]
fn output_that_is_not_utf8_comes_back_unchanged() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let bytes = b"\x89PNG\r\n\x1a\n\0";
    let script = "import sys; sys.stdout.buffer.write(b'\\x89PNG\\r\\n\\x1a\\n\\0')";
    let exec = ["exec", "-t", "python", "--id", "a", "-e", script];
    assert_eq!(hero.run(&exec).code(0).bytes, bytes);
    for args in [["job", "output", "a"], ["job", "wait", "a"]] {
        assert_eq!(hero.run(&args).code(0).bytes, bytes);
    }
    let document = "{\"output\":\"iVBORw0KGgoA\",\"output_encoding\":\"base64\"}\n";
    hero.run(&["--json", "job", "output", "a"]).code(0).stdout(document);
    let shown = hero.run(&["--json", "job", "show", "a"]).code(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["output_encoding"], "base64");
    let dependent = "import json, os\nprint(json.load(open(os.environ['HERO_INPUTS']))['a'])";
    let after = ["exec", "-t", "python", "--after", "a", "-e", dependent];
    hero.run(&after).code(0).stdout("iVBORw0KGgoA\n");
    hero.run(&["exec", "-t", "python", "--id", "text", "-e", "print('é')"]).code(0);
    assert_eq!(hero.run(&["job", "output", "text"]).code(0).stdout, "é");
    hero.run(&["submit", "-t", "sal", "--id", "waits", "-e", "1"]).code(0);
    hero.run(&["job", "output", "waits"]).code(65).says("job waits has no output yet");
}

#[test]
fn result_of_a_prerequisite_is_found_by_the_name_of_the_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _units = ["osis-default-1", "python-default-1"].map(|unit| hero.actor(unit).start());
    let first = hero.run(&["submit", "-t", "osis", "--name", "orders", "-e", "7"]).code(0).stdout;
    let first = first.trim();
    let has = format!("it has orders, {first}");
    for (kind, script, wrong) in [
        ("osis", "result(\"orders\") + 1", "result(\"order\")"),
        (
            "python",
            "import hero; print(hero.result(\"orders\") + 1)",
            "import hero; hero.result(\"order\")",
        ),
    ] {
        let run = |script: &str| hero.run(&["exec", "-t", kind, "--after", first, "-e", script]);
        assert_eq!(run(script).code(0).stdout.trim(), "8");
        let names = run(wrong).code(1).stderr;
        assert!(names.contains("does not wait for") && names.contains(&has), "{names}");
    }
}

#[test]
fn wait_that_gives_up_names_busy_tasks_a_missing_supervisor_and_the_blocker_of_a_graph() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").tasks(1).start();
    hero.run(&["submit", "-t", "osis", "--id", "long", "-e", ENDLESS]).code(0);
    until(&redis, "long", "started");
    hero.run(&["submit", "-t", "osis", "--id", "next", "-e", "1"]).code(0);
    hero.run(&["job", "wait", "--wait", "1s", "next"]).code(75).says(
        "hero: job next waits for a free task: the actors of type:osis have 1 task, and all are busy",
    );
    hero.run(&["submit", "-t", "osis", "--id", "due", "--delay", "100ms", "-e", "1"]).code(0);
    wait_until("the job is due", || {
        let done = hero.run(&["job", "wait", "--wait", "100ms", "due"]).code(75);
        done.stderr.contains("job due waits for a live supervisor, since it is due: ")
    });
    hero.run(&["queue", "pause", "type:osis"]).code(0);
    let line = r#"{"script_type": "osis", "script": "1", "id": "of-batch"}"#;
    hero.run_with_input(&["submit", "--batch", "-", "--id", "many"], line).code(0);
    hero.run(&["graph", "wait", "--wait", "100ms", "many"]).code(75).says(
        "hero: job of-batch waits for its queue, which is paused: hero queue resume type:osis",
    );
}

#[test]
fn job_is_shown_with_the_address_of_its_page() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("api.public_url", "\"https://hero.example.org\"");
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    let shown = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(shown.ends_with("\npage:\n  https://hero.example.org/jobs/a\n"), "{shown}");
    // Where there is no display, its address is printed.
    let page = "https://hero.example.org/jobs/a\n";
    hero.run(&["job", "open", "a"])
        .code(0)
        .stdout(page)
        .says("not opened in a browser: no display");
    let browser = redis.folder().join("xdg-open");
    std::fs::write(&browser, "#!/bin/sh\necho \"opened $1\"\n").expect("written");
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).expect("executable");
    let mut open = hero.command_of_user(env!("CARGO_BIN_EXE_hero"));
    open.args(["job", "open", "a"]).env("DISPLAY", ":9").env("PATH", redis.folder());
    let opened = open.output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&opened.stdout), format!("opened {page}"));
    Hero::on(&redis).run(&["job", "open", "a"]).code(78).says("api.public_url is not set");
}

#[test]
fn styles_of_an_output_reach_no_terminal() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _sal = hero.actor("sal-default-1").start();
    let script = "print(\"\\x1b[31mlog\"); \"\\x1b[32mfinished\"";
    hero.run(&["exec", "-t", "sal", "--id", "a", "-e", script]).code(0);
    for args in [["job", "wait", "a"], ["job", "output", "a"], ["job", "logs", "a"]] {
        let shown = hero.begin_at_terminal(&args).ends().code(0).stdout;
        assert!(shown.contains("\\u{1b}[3") && !shown.contains('\u{1b}'), "{shown}");
    }
}
