//! The state that a script keeps for the next attempt of its job.

use std::path::Path;

use serde_json::{Value, json};

use super::{field, until};
use crate::support::{Hero, Redis, keys, needs, wait_until};

/// Returns an example of this folder.
fn example(name: &str) -> String {
    format!("{}/examples/state/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns a Hero whose jobs are retried at once, and whose dead actors lose their jobs soon.
fn hero_on(redis: &Redis) -> Hero {
    let hero = Hero::on(redis).quick_sweeps().set("job.retry_backoff", "\"1ms\"");
    hero.set("actor.lease", "\"1s\"").set("job.crash_limit", "1000")
}

/// Returns the state that a job has kept.
fn kept(redis: &Redis, id: &str) -> Value {
    let text = field(redis, id, "kept_state").unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[test]
fn retry_goes_on_from_the_state_of_the_attempt_before_in_every_language() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _supervisor = hero.supervisor().start();
    let has_node = needs("node", || Path::new("/usr/bin/node").exists());
    for (unit, script, is_there) in [
        ("bash-default-1", "resume.sh", true),
        ("node-default-1", "resume.js", has_node),
        ("sal-default-1", "resume.rhai", true),
    ] {
        if is_there {
            let _actor = hero.actor(unit).start();
            let kind = unit.split('-').next().expect("a type");
            let script = example(script);
            let exec = ["exec", "-t", kind, "--id", kind, "--retries", "3", script.as_str()];
            let done = hero.run(&exec).code(0);
            assert_eq!(done.stdout, "5 steps in 2 attempts\n", "{kind}");
            assert_eq!(field(&redis, kind, "kept_state"), None, "a finished job needs none");
            assert_eq!(field(&redis, kind, "kept_state_at"), None);
        }
    }
}

/// Runs a migration of 1000 steps whose actor dies three times.
#[track_caller]
fn migrate(kind: &str, script: &str) {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _supervisor = hero.supervisor().start();
    let unit = format!("{kind}-default-1");
    let mut actor = hero.actor(&unit).start();
    let script = example(script);
    hero.run(&["submit", "-t", kind, "--id", "m", "--timeout", "10m", &script]).code(0);
    let step = || kept(&redis, "m")["step"].as_u64().unwrap_or_default();
    let mut least = Vec::new();
    for goal in [100, 400, 700] {
        wait_until("some steps are done", || step() >= goal);
        actor.kill();
        least.push(step());
        actor = hero.actor(&unit).start();
    }
    until(&redis, "m", "finished");
    let output: Value =
        serde_json::from_str(&hero.run(&["job", "output", "m"]).code(0).stdout).expect("JSON");
    assert_eq!(output, json!({ "step": 1000, "attempts": 4 }));
    let log = hero.run(&["job", "logs", "m"]).code(0).stdout;
    let begins = log.lines().filter_map(|line| line.strip_prefix("goes on after step "));
    let begins: Vec<u64> = begins.map(|step| step.parse().expect("a number")).collect();
    // The log of an attempt that was killed within its first second may lack its line. A script of a dead actor
    // may have kept one more state before it was killed.
    assert!(begins.is_sorted() && begins.last() >= least.last(), "{begins:?} {least:?}");
}

#[test]
fn migration_of_1000_steps_resumes_after_its_state_after_each_death_of_its_actor() {
    migrate("python", "migration.py");
}

#[test]
fn migration_of_1000_steps_in_bash_resumes_after_each_death_of_its_actor() {
    migrate("bash", "migration.sh");
}

#[test]
fn migration_of_1000_steps_in_node_resumes_after_each_death_of_its_actor() {
    if needs("node", || Path::new("/usr/bin/node").exists()) {
        migrate("node", "migration.js");
    }
}

#[test]
fn migration_of_1000_steps_in_rhai_resumes_after_each_death_of_its_actor() {
    migrate("sal", "migration.rhai");
}

#[test]
fn state_is_shown_and_stays_for_a_retry_by_hand() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _python = hero.actor("python-default-1").start();
    let script = "import hero\n\
                  if hero.state is None:\n\
                  \x20   hero.checkpoint({'row': 7})\n\
                  \x20   assert hero.state == {'row': 7}\n\
                  \x20   raise SystemExit('no luck')\n\
                  print(hero.state['row'])";
    hero.run(&["exec", "-t", "python", "--id", "a", "-e", script]).code(1);
    let shown = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(shown.contains("kept_state:\n  {\"row\":7}\n"), "{shown}");
    assert!(shown.contains("kept_state_at  "), "{shown}");
    hero.run(&["job", "retry", "a"]).code(0);
    until(&redis, "a", "finished");
    assert_eq!(hero.run(&["job", "output", "a"]).code(0).stdout, "7");
}

#[test]
fn state_that_is_too_large_or_has_a_secret_is_refused_and_the_one_before_it_stays() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _python = hero.actor("python-default-1").start();
    let script = "import hero, os\n\
                  hero.checkpoint(1)\n\
                  for state in ('x' * 70000, 'y' * 2000000, {'key': os.environ['API_TOKEN']}):\n\
                  \x20   try:\n\
                  \x20       hero.checkpoint(state)\n\
                  \x20   except hero.Refused as error:\n\
                  \x20       hero.log(error)\n\
                  assert hero.state == 1\n\
                  hero.checkpoint(2)\n\
                  raise SystemExit(1)";
    let exec = ["exec", "-t", "python", "--id", "a", "--env", "API_TOKEN=s3cr3t", "-e", script];
    hero.run(&exec).code(1);
    let said = hero.run(&["job", "logs", "a"]).code(0).stdout;
    let large = "the state has more than 65536 bytes of JSON";
    assert_eq!(said.matches(large).count(), 2, "{said}");
    assert!(said.contains("the state has the value of a secret"), "{said}");
    assert_eq!(kept(&redis, "a"), json!(2));
}

#[test]
fn states_whose_answers_nobody_reads_are_kept_and_null_removes_them() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let flood = "for n in $(seq 20000); do echo \"{\\\"state\\\": $n}\"; done >&$HERO_FD; exit 1";
    hero.run(&["exec", "-t", "bash", "--id", "flood", "-e", flood]).code(1);
    assert_eq!(kept(&redis, "flood"), json!(20000));
    let removed = "echo '{\"state\": 1}' >&$HERO_FD; echo '{\"state\": null}' >&$HERO_FD; exit 1";
    hero.run(&["exec", "-t", "bash", "--id", "none", "-e", removed]).code(1);
    assert_eq!(redis.field(&keys::job("none"), "kept_state"), None);
}
