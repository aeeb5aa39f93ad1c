//! The scripts of a type that run before and after each attempt.

use std::path::PathBuf;

use nix::sys::signal::Signal;

use super::{ENDLESS, field, until};
use crate::support::{Hero, Redis, wait_until};

/// Writes a script beside the Redis of the test.
fn script(redis: &Redis, name: &str, text: &str) -> PathBuf {
    let file = redis.folder().join(name);
    std::fs::write(&file, text).expect("written");
    file
}

/// Returns a Hero whose type has hooks, which may write the folder of the test.
fn hero_with(redis: &Redis, kind: &str, before: &str, after: &str) -> Hero {
    let folder = redis.folder().display().to_string();
    let mut hero = Hero::on(redis);
    if kind == "bash" {
        hero = hero.set("type.bash.sandbox.write", &format!("[{folder:?}]"));
    }
    for (key, text) in [("before", before), ("after", after)] {
        if !text.is_empty() {
            let file = script(redis, &format!("{key}.hook"), text);
            hero = hero
                .set(&format!("type.{kind}.{key}"), &format!("{:?}", file.display().to_string()));
        }
    }
    hero
}

/// Returns the script of `after` that keeps the outcome of an attempt in a file.
fn keeps_outcome(redis: &Redis) -> String {
    let folder = redis.folder().display().to_string();
    format!(
        "printf %s \"$HERO_OUTCOME\" > {folder}/new; mv {folder}/new {folder}/outcome-$HERO_JOB_ID"
    )
}

/// Waits for the outcome that `after` got of a job.
#[track_caller]
fn outcome(redis: &Redis, id: &str) -> serde_json::Value {
    let file = redis.folder().join(format!("outcome-{id}"));
    wait_until(&format!("after has run for {id}"), || file.exists());
    serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("JSON")
}

#[test]
fn hooks_run_around_the_script_and_their_lines_stand_marked_in_the_log() {
    let redis = Redis::start();
    let before = "read -r job; echo \"setting up $HERO_JOB_ID for $job$COLOUR\"; echo '{\"output\": 1}' >&$HERO_FD";
    let after = "echo cleaning >&2; echo \"$HERO_OUTCOME\"";
    let hero = hero_with(&redis, "bash", before, after);
    let _bash = hero.actor("bash-default-1").start();
    let exec =
        ["exec", "-t", "bash", "--id", "a", "--env", "COLOUR=red", "-e", "echo done; echo mid >&2"];
    assert_eq!(hero.run(&exec).code(0).stdout, "done\n");
    let log = hero.run(&["job", "logs", "a"]).code(0).stdout;
    let lines: Vec<&str> = log
        .lines()
        .filter_map(|line| {
            let at = ["before: ", "mid", "after: "]
                .into_iter()
                .filter_map(|mark| line.find(mark))
                .min()?;
            Some(&line[at..])
        })
        .collect();
    let outcome = "after: {\"status\":\"finished\",\"error\":null,\"exit_code\":0}";
    let told = "before: setting up a for {\"env_vars\":{\"COLOUR\":\"red\"},\"args\":[]}";
    assert_eq!(lines[..2], [told, "mid"], "{log}");
    let mut of_after = lines[2..].to_vec();
    of_after.sort_unstable();
    assert_eq!(of_after, ["after: cleaning", outcome], "{log}");
}

#[test]
fn failing_before_fails_the_attempt_and_after_hears_of_it() {
    let redis = Redis::start();
    let after = keeps_outcome(&redis);
    let before = "[ \"$HERO_ATTEMPT\" = 2 ] || { echo no disk >&2; exit 3; }";
    let hero = hero_with(&redis, "bash", before, &after).set("job.retry_backoff", "\"10ms\"");
    let _bash = hero.actor("bash-default-1").start();
    let _supervisor = hero.supervisor().start();
    let once = ["exec", "-t", "bash", "--id", "once", "-e", "echo ran > $HOME/x"];
    let said = hero.run(&once).code(3).stderr;
    assert!(
        said.contains("the hook `before` (") && said.contains("failed: exit code 3: no disk"),
        "{said}"
    );
    let told = outcome(&redis, "once");
    assert_eq!((&told["status"], &told["exit_code"]), (&"error".into(), &3.into()), "{told}");
    assert!(told["error"].as_str().expect("text").contains("no disk"), "{told}");
    let retried = ["exec", "-t", "bash", "--id", "again", "--retries", "1", "-e", "echo ran"];
    assert_eq!(hero.run(&retried).code(0).stdout, "ran\n");
}

#[test]
fn after_runs_at_failure_timeout_stop_and_shutdown() {
    let redis = Redis::start();
    let after = keeps_outcome(&redis);
    let hero = hero_with(&redis, "bash", "", &after);
    let bash = hero.actor("bash-default-1").start();
    hero.run(&["exec", "-t", "bash", "--id", "failed", "-e", "exit 7"]).code(7);
    assert_eq!(outcome(&redis, "failed")["exit_code"], 7);
    let late = ["submit", "-t", "bash", "--id", "late", "--timeout", "300ms", "-e", "sleep 600"];
    hero.run(&late).code(0);
    until(&redis, "late", "error");
    assert_eq!(outcome(&redis, "late")["error"], "timeout");
    for id in ["stopped", "drained"] {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", "sleep 600"]).code(0);
        until(&redis, id, "started");
        if id == "stopped" {
            hero.run(&["job", "stop", id]).code(0);
            until(&redis, id, "error");
            assert_eq!(outcome(&redis, id)["error"], "stopped_by_request");
        }
    }
    bash.signal(Signal::SIGTERM);
    wait_until("it drains", || bash.err().contains("shutting down"));
    bash.signal(Signal::SIGTERM);
    bash.ends().code(0);
    assert_eq!(outcome(&redis, "drained")["error"], "stopped by the shutdown");
    assert_eq!(field(&redis, "drained", "status").as_deref(), Some("dispatched"));
}

#[test]
fn failing_after_is_a_warning_that_changes_nothing() {
    let redis = Redis::start();
    let hero =
        hero_with(&redis, "bash", "", "sleep 600").set("type.bash.hook_timeout", "\"200ms\"");
    let bash = hero.actor("bash-default-1").start();
    let exec = ["exec", "-t", "bash", "--id", "a", "-e", "echo fine"];
    assert_eq!(hero.run(&exec).code(0).stdout, "fine\n");
    let said = "timed out: it may take 200ms";
    wait_until("the journal has it", || bash.err().contains(said));
    let log = hero.run(&["job", "logs", "a"]).code(0).stdout;
    assert!(log.contains("the hook `after` (") && log.contains(said), "{log}");
}

#[test]
fn hooks_of_types_inside_the_actor_run_too() {
    let redis = Redis::start();
    let after = "print(ENV.HERO_OUTCOME); throw \"untidy\"";
    let before = "if ENV.COLOUR == \"blue\" { throw \"no blue\" } print(`before ${JOB_ID}`);";
    let hero = hero_with(&redis, "osis", before, after);
    let osis = hero.actor("osis-default-1").start();
    let exec = |id: &str, colour: &str| {
        hero.run(&["exec", "-t", "osis", "--id", id, "--env", colour, "-e", "40 + 2"])
    };
    assert_eq!(exec("a", "COLOUR=red").code(0).stdout, "42\n");
    let log = hero.run(&["job", "logs", "a"]).code(0).stdout;
    assert!(log.contains("before: before a"), "{log}");
    assert!(
        log.contains("after: {\"status\":\"finished\",\"error\":null,\"exit_code\":null}"),
        "{log}"
    );
    assert!(
        osis.err().contains("the hook `after` (") && osis.err().contains("untidy"),
        "{}",
        osis.err()
    );
    let said = exec("b", "COLOUR=blue").code(1).stderr;
    assert!(said.contains("the hook `before` (") && said.contains("no blue"), "{said}");
    hero.run(&["submit", "-t", "osis", "--id", "c", "-e", ENDLESS]).code(0);
    until(&redis, "c", "started");
    hero.run(&["job", "stop", "c"]).code(0);
    until(&redis, "c", "error");
    let log = hero.run(&["job", "logs", "c"]).code(0).stdout;
    assert!(log.contains("\"error\":\"stopped_by_request\""), "{log}");
}

#[test]
fn missing_hook_is_reported_by_check_and_stops_the_start_of_its_unit() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.bash.after", "\"/nonexistent/after.sh\"");
    let why =
        "bash: not available: cannot read the script /nonexistent/after.sh of its hook `after`";
    let lines = hero.run(&["check"]).code(0).stdout;
    assert!(lines.contains(why), "{lines}");
    hero.run(&["check", "bash-default-1"]).code(71).says(why);
    hero.actor("bash-default-1").begin().ends().code(71).says(why);
}
