//! The supervisor: schedules, retries, messages for all actors of a type, recovery.

use std::collections::BTreeSet;

use crate::support::{Hero, Redis, keys, wait_until};

use super::{field, until};

#[test]
fn delayed_job_runs_at_its_time_and_not_before() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "-t", "osis", "--id", "a", "--delay", "500ms", "-e", "1"]).code(0);
    let _supervisor = hero.supervisor().start();
    until(&redis, "a", "finished");
    let time = |name| -> jiff::Timestamp {
        field(&redis, "a", name).expect("written").parse().expect("a time")
    };
    let late = time("started_at").duration_since(time("run_at")).as_millis();
    assert!(late >= 0, "it started {late} ms after its time");
}

#[test]
fn failed_job_is_retried_until_its_attempts_are_used_up() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let _supervisor = hero.supervisor().start();
    let counter = redis.folder().join("counter");
    let script = format!("open({counter:?}, 'a').write('x'); raise SystemExit(3)");
    let exec = ["exec", "-t", "python", "--id", "a", "--retries", "2", "-e", &script];
    hero.run(&exec).code(3);
    let runs = std::fs::read_to_string(&counter).expect("it ran").len();
    assert_eq!(runs, 3);
    assert_eq!(field(&redis, "a", "attempt").as_deref(), Some("3"));
    assert_eq!(redis.list(&keys::dead("python")), ["a"]);
    let stats = keys::stats("python");
    let tally = ["retried", "failed", "dead"].map(|name| redis.field(&stats, name));
    assert_eq!(tally.map(Option::unwrap_or_default), ["2", "1", "1"]);
}

#[test]
fn script_that_asks_to_run_later_does_and_one_that_gives_up_is_not_retried() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = ["python-default-1", "osis-default-1"].map(|unit| hero.actor(unit).start());
    let _supervisor = hero.supervisor().start();
    let counter = redis.folder().join("counter");
    let later = format!(
        "import hero\nwith open({counter:?}, 'a') as runs:\n    runs.write('x')\n    \
         if runs.tell() == 1: hero.retry_in('1s', 'busy')\nprint('done')"
    );
    hero.run(&["submit", "-t", "python", "--id", "later", "-e", &later]).code(0);
    let caught = "try { retry_in(\"1h\", \"busy\") } catch { } 7";
    hero.run(&["submit", "-t", "osis", "--id", "caught", "-e", caught]).code(0);
    let gives_up = [("osis", "discard(\"no\")", "no"), ("python", "exit(65)", "exit code 65")];
    for (of, script, error) in gives_up {
        let codes: &[&str] = if of == "python" { &["--discard-if", "65"] } else { &[] };
        let exec = ["exec", "-t", of, "--id", of, "--retries", "3", "-e", script];
        hero.run(&[&exec, codes].concat()).code(1).says(error);
        assert_eq!(field(&redis, of, "attempt").as_deref(), Some("1"));
        assert!(redis.list(&keys::dead(of)).is_empty());
    }
    wait_until("the script has asked", || field(&redis, "caught", "error").is_some());
    let asked =
        ["status", "error", "postponed", "attempt"].map(|name| field(&redis, "caught", name));
    assert_eq!(asked.map(Option::unwrap_or_default), ["scheduled", "busy", "1", "0"]);
    hero.run(&["job", "wait", "later"]).code(0).stdout("done\n");
    assert!(field(&redis, "later", "attempts").is_some_and(|before| before.contains("busy")));
}

#[test]
fn exit_code_65_is_retried_as_any_other() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let _supervisor = hero.supervisor().start();
    let retries = ["exec", "-t", "bash", "--id", "a", "--retries", "1", "--backoff", "1ms"];
    hero.run(&[&retries[..], &["-e", "exit 65"]].concat()).code(1);
    assert_eq!(field(&redis, "a", "attempt").as_deref(), Some("2"));
}

#[test]
fn exit_code_75_postpones_only_a_job_that_names_it_and_no_job_is_postponed_without_end() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("job.postponed_max", "\"1ms\"")
        .add("[type.bash]\ndead_letters = \"all\"\n");
    let _units = ["bash-default-1", "osis-default-1"].map(|unit| hero.actor(unit).start());
    let _supervisor = hero.supervisor().start();
    let submit = |args: &[&str]| {
        hero.run(&[&["submit"], args].concat()).code(0);
    };
    submit(&["-t", "bash", "--id", "plain", "--retries", "0", "-e", "exit 75"]);
    submit(&[
        "-t",
        "bash",
        "--id",
        "named",
        "--retry-if",
        "75",
        "--backoff",
        "1h",
        "-e",
        "exit 75",
    ]);
    submit(&["-t", "osis", "--id", "always", "-e", "retry_in(\"1s\", \"busy\")"]);
    until(&redis, "plain", "error");
    assert_eq!(field(&redis, "plain", "postponed"), None);
    assert_eq!(redis.list(&keys::dead("bash")), ["plain"]);
    until(&redis, "named", "scheduled");
    let told = ["postponed", "attempt", "exit_code"].map(|name| field(&redis, "named", name));
    assert_eq!(told.map(Option::unwrap_or_default), ["1", "0", "75"]);
    until(&redis, "always", "error");
    assert_eq!(
        field(&redis, "always", "error").as_deref(),
        Some("postponed for longer than job.postponed_max (1ms): busy")
    );
    assert_eq!(field(&redis, "always", "postponed").as_deref(), Some("1"));
    let told: serde_json::Value =
        serde_json::from_str(&hero.run(&["job", "show", "always", "--json"]).code(0).stdout)
            .expect("JSON");
    assert!(told["first_started_at"].as_str() < told["started_at"].as_str(), "{told}");
    let before = field(&redis, "always", "first_started_at");
    hero.run(&["job", "retry", "always"]).code(0);
    wait_until("its time begins again", || field(&redis, "always", "first_started_at") != before);
}

#[test]
fn message_for_a_type_without_jobs_reaches_all_of_its_actors() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let units = ["osis-default-1", "osis-io-2"].map(|unit| hero.actor(unit).start());
    let _supervisor = hero.supervisor().start();
    redis.push(&keys::control_of_type("osis"), &[r#"{"cmd":"shutdown"}"#]);
    for unit in units {
        unit.ends().code(0);
    }
}

#[test]
fn supervisor_that_rests_for_longer_than_a_beat_feeds_its_watchdog() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("supervisor.sweep_interval", "\"1h\"");
    // A beat every 100 ms.
    let supervisor = hero.supervisor().env("WATCHDOG_USEC", "200000".as_ref()).start();
    let mut beats = BTreeSet::new();
    wait_until("it has beaten for some time", || {
        let presence = redis.all("SUPERVISOR").pop();
        beats.extend(presence.map(|key| redis.get::<Option<String>>(&key)));
        beats.len() > 20
    });
    assert!(!supervisor.err().contains("the watchdog is not fed"), "{}", supervisor.err());
}

#[test]
fn job_of_a_killed_actor_runs_on_another_when_the_lease_ends() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"1s\"");
    let mut first = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    let submit = ["submit", "-t", "osis", "--id", "a", "-e", "sleep(1); 7"];
    hero.run(&submit).code(0);
    until(&redis, "a", "started");
    first.kill();
    let _second = hero.actor("osis-default-2").start();
    until(&redis, "a", "finished");
    assert_eq!(field(&redis, "a", "actor").as_deref(), Some("osis:default:2"));
    assert_eq!(field(&redis, "a", "crashes").as_deref(), Some("1"));
}

#[test]
fn job_that_a_foreign_actor_popped_and_never_started_runs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    redis.pop(&keys::work("type:osis"));
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    until(&redis, "a", "finished");
}

#[test]
fn two_supervisors_dispatch_every_job_once() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisors = [hero.supervisor().start(), hero.supervisor().start()];
    let _osis = hero.actor("osis-default-1").start();
    for n in 0..20 {
        let id = format!("j{n}");
        hero.run(&["submit", "-t", "osis", "--id", &id, "--delay", "300ms", "-e", "1"]).code(0);
    }
    let stats = keys::stats("osis");
    wait_until("all have finished", || redis.field(&stats, "finished").as_deref() == Some("20"));
    assert_eq!(redis.field(&stats, "started").as_deref(), Some("20"));
}
