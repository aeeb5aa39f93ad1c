//! Shutdown: drain, second signal, crash; and the identity of an actor.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Hero, Process, Redis, keys, wait_until};

use super::{ENDLESS, field, until};

/// Submits a job and waits until it runs.
#[track_caller]
fn running(redis: &Redis, hero: &Hero, id: &str, script: &str) {
    hero.run(&["submit", "-t", "osis", "--id", id, "--timeout", "60s", "-e", script]).code(0);
    until(redis, id, "started");
}

/// Builds a script that ends after some time.
fn lasting(ms: u32) -> String {
    format!("sleep({}.{:03}); \"done\"", ms / 1000, ms % 1000)
}

fn one_task(hero: &Hero) -> Process {
    hero.actor("osis-default-1").tasks(1).start()
}

#[test]
fn drain_lets_the_running_job_end_claims_no_other_and_exits_with_0() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = one_task(&hero);
    running(&redis, &hero, "a", &lasting(1000));
    hero.run(&["submit", "-t", "osis", "--id", "b", "-e", "1"]).code(0);
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("finished"));
    assert_eq!(field(&redis, "b", "status").as_deref(), Some("dispatched"));
    assert!(redis.all("PRESENCE").is_empty(), "the actor left its presence");
    assert!(redis.all("BOOTS").is_empty() && redis.all("RUNNING").is_empty(), "its lease is gone");
}

#[test]
fn second_signal_requeues_the_running_job_in_front_without_a_crash_count() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = one_task(&hero);
    running(&redis, &hero, "a", ENDLESS);
    hero.run(&["submit", "-t", "osis", "--id", "b", "-e", "1"]).code(0);
    osis.signal(Signal::SIGTERM);
    wait_until("it drains", || osis.err().contains("shutting down"));
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
    assert_eq!(redis.list(&keys::work("type:osis")), ["a", "b"]);
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    assert_eq!(field(&redis, "a", "attempt").as_deref(), Some("0"));
    assert_eq!(field(&redis, "a", "crashes"), None);
    assert!(redis.all("BOOTS").is_empty() && redis.all("RUNNING").is_empty());
}

#[test]
fn drain_ends_at_its_deadline() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.drain_timeout", "\"200ms\"");
    let osis = one_task(&hero);
    running(&redis, &hero, "a", ENDLESS);
    osis.signal(Signal::SIGINT);
    osis.ends().code(0);
    assert_eq!(redis.list(&keys::work("type:osis")), ["a"]);
}

#[test]
fn process_of_a_job_that_is_given_back_is_stopped() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.drain_timeout", "\"100ms\"");
    let python = hero.actor("python-default-1").start();
    let pid_file = redis.folder().join("pid");
    let script =
        format!("import os, time; open({pid_file:?}, 'w').write(str(os.getpid())); time.sleep(60)");
    hero.run(&["submit", "-t", "python", "--id", "a", "-e", &script]).code(0);
    let pid = || std::fs::read_to_string(&pid_file).ok().filter(|pid| !pid.is_empty());
    wait_until("the child runs", || pid().is_some());
    python.signal(Signal::SIGTERM);
    python.ends().code(0);
    let gone = !std::path::Path::new("/proc").join(pid().expect("it ran")).exists();
    assert!(gone, "the child outlives its actor");
    assert_eq!(redis.list(&keys::work("type:python")), ["a"]);
}

/// Returns a script in Python that writes `runs`, and when it is asked to end `ending`, and ends once `may-end` is
/// there. Its second run ends at once.
fn slow_to_end(redis: &Redis) -> String {
    let file = |name: &str| redis.folder().join(name).display().to_string();
    format!(
        "import os, signal, sys, time
if os.path.exists({ending:?}): sys.exit()
def end(*_):
    print('ending', file=sys.stderr, flush=True)
    open({ending:?}, 'w').close()
    while not os.path.exists({may_end:?}): time.sleep(0.01)
    sys.exit()
signal.signal(signal.SIGTERM, end)
open({runs:?}, 'w').close()
while True: time.sleep(60)",
        ending = file("ending"),
        may_end = file("may-end"),
        runs = file("runs"),
    )
}

#[test]
fn job_is_given_back_once_its_process_has_ended_and_keeps_the_lines_that_it_writes_meanwhile() {
    let redis = Redis::start();
    let hero =
        Hero::on(&redis).set("actor.drain_timeout", "\"100ms\"").set("job.kill_grace", "\"60s\"");
    let first = hero.actor("python-default-1").start();
    let file = |name: &str| redis.folder().join(name);
    let script = slow_to_end(&redis);
    hero.run(&["submit", "-t", "python", "--id", "a", "-e", &script]).code(0);
    wait_until("the script runs", || file("runs").exists());
    let _second = hero.actor("python-default-2").start();
    first.signal(Signal::SIGTERM);
    wait_until("the script ends", || file("ending").exists());
    // It would have to wait after a job that has been given back.
    hero.run(&["exec", "-t", "python", "--group", "default", "-e", "print(1)"]).code(0);
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("started"));
    assert_eq!(field(&redis, "a", "actor").as_deref(), Some("python:default:1"));
    std::fs::write(file("may-end"), "").expect("a file");
    first.ends().code(0);
    until(&redis, "a", "finished");
    assert_eq!(field(&redis, "a", "actor").as_deref(), Some("python:default:2"));
    assert_eq!(field(&redis, "a", "attempt").as_deref(), Some("1"));
    let log = hero.run(&["job", "logs", "a"]).code(0);
    assert!(log.stdout.contains("ending"), "{}", log.stdout);
}

#[test]
fn stop_of_a_job_that_ends_because_of_a_shutdown_ends_it() {
    let redis = Redis::start();
    let hero =
        Hero::on(&redis).set("actor.drain_timeout", "\"100ms\"").set("job.kill_grace", "\"60s\"");
    let actor = hero.actor("python-default-1").start();
    let file = |name: &str| redis.folder().join(name);
    let script = slow_to_end(&redis);
    hero.run(&["submit", "-t", "python", "--id", "a", "-e", &script]).code(0);
    wait_until("the script runs", || file("runs").exists());
    actor.signal(Signal::SIGTERM);
    wait_until("the script ends", || file("ending").exists());
    hero.run(&["job", "stop", "a"]).code(0);
    wait_until("the actor takes the stop", || actor.err().contains("stops job a on request"));
    std::fs::write(file("may-end"), "").expect("a file");
    actor.ends().code(0);
    until(&redis, "a", "error");
    assert_eq!(field(&redis, "a", "error").as_deref(), Some("stopped_by_request"));
}

#[test]
fn second_process_with_a_live_identity_is_rejected_with_host_and_pid() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let first = one_task(&hero);
    let host = nix::unistd::gethostname().expect("a name of this machine");
    let host = host.to_string_lossy();
    hero.actor("osis-default-1")
        .begin()
        .ends()
        .code(73)
        .says(&format!("already running on {host} with pid {}", first.pid()));
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
}

#[test]
fn identity_of_a_killed_process_is_free_at_once_and_its_job_runs_again() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut first = one_task(&hero);
    running(&redis, &hero, "a", "sleep(1); \"done\"");
    first.kill();
    let _second = one_task(&hero);
    let _supervisor = hero.supervisor().start();
    until(&redis, "a", "finished");
    assert_eq!(field(&redis, "a", "crashes").as_deref(), Some("1"));
    assert_eq!(field(&redis, "a", "attempt").as_deref(), Some("1"));
}

#[test]
fn identity_on_another_machine_is_taken_only_after_its_presence_expired() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let presence = r#"{"pid":1,"hostname":"elsewhere","boot_id":"b-1","started_at":"","version":"","capabilities":[],"last_heartbeat":"","tasks":1,"running":0,"state":"ready"}"#;
    let key = keys::presence("osis:default:1");
    redis.ask_with::<String, _>(&format!("SET {key}"), &[presence]);
    let refused = hero.actor("osis-default-1").begin().ends();
    refused.code(73).says("already running on elsewhere with pid 1");
    redis.delete(&key);
    one_task(&hero);
}

#[test]
fn supervisor_ends_at_the_first_signal() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let supervisor = hero.supervisor().start();
    supervisor.signal(Signal::SIGTERM);
    supervisor.ends().code(0);
}

/// Submits a job that runs until it is killed, and returns the id of its process.
fn endless_process(redis: &Redis, hero: &Hero, id: &str) -> Pid {
    let file = redis.folder().join(id);
    let script = format!("echo $$ > {}.new; mv {0}.new {0}; exec sleep 600", file.display());
    hero.run(&["submit", "-t", "bash", "--id", id, "-e", &script]).code(0);
    until_process(&file)
}

/// Returns the id in a file, which it removes.
fn until_process(file: &std::path::Path) -> Pid {
    wait_until("the script runs", || file.exists());
    let text = std::fs::read_to_string(file).expect("its process");
    let pid = text.trim().parse().expect("a number");
    std::fs::remove_file(file).expect("removed");
    Pid::from_raw(pid)
}

/// A script may write its file.
fn writing(redis: &Redis) -> Hero {
    Hero::on(redis).set("type.bash.sandbox.write", &format!("[\"{}\"]", redis.folder().display()))
}

#[test]
fn scripts_that_a_signal_for_the_whole_unit_kills_go_back_uncharged() {
    // Of a stop, an interrupt, and of what is left after a stop.
    for (to_scripts, to_daemon) in [
        (Signal::SIGTERM, Signal::SIGTERM),
        (Signal::SIGINT, Signal::SIGINT),
        (Signal::SIGKILL, Signal::SIGTERM),
    ] {
        let redis = Redis::start();
        let hero = writing(&redis);
        let bash = hero.actor("bash-default-1").tasks(2).start();
        let [first, second] = ["a", "b"].map(|id| endless_process(&redis, &hero, id));
        // The kernel delivers it in any order.
        kill(first, to_scripts).expect("it runs");
        bash.signal(to_daemon);
        wait_until("it drains", || bash.err().contains("shutting down"));
        kill(second, to_scripts).expect("it runs");
        bash.ends().code(0);
        for id in ["a", "b"] {
            let fields = ["status", "attempt", "crashes", "error"].map(|of| field(&redis, id, of));
            let expected = [Some("dispatched".to_owned()), Some("0".to_owned()), None, None];
            assert_eq!(fields, expected, "{id} {to_scripts}");
        }
        let log = hero.run(&["job", "logs", "a"]).code(0).stdout;
        let expected = format!("killed by signal {} together with its actor", to_scripts as i32);
        assert!(log.contains(&expected), "{log}");
    }
}

#[test]
fn job_runs_again_after_its_script_and_its_actor_were_killed_together() {
    let redis = Redis::start();
    let hero = writing(&redis);
    let _supervisor = hero.supervisor().start();
    let bash = hero.actor("bash-default-1").start();
    let script = endless_process(&redis, &hero, "a");
    kill(script, Signal::SIGKILL).expect("it runs");
    bash.signal(Signal::SIGKILL);
    let _bash = hero.actor("bash-default-1").start();
    assert_ne!(until_process(&redis.folder().join("a")), script);
    assert_eq!(field(&redis, "a", "attempt").as_deref(), Some("1"));
    hero.run(&["job", "stop", "a"]).code(0);
    until(&redis, "a", "error");
}

#[test]
fn script_that_a_hangup_for_the_whole_unit_kills_runs_again() {
    let redis = Redis::start();
    let hero = writing(&redis);
    let bash = hero.actor("bash-default-1").start();
    let first = endless_process(&redis, &hero, "a");
    kill(first, Signal::SIGHUP).expect("it runs");
    bash.signal(Signal::SIGHUP);
    assert_ne!(until_process(&redis.folder().join("a")), first);
    assert_eq!(field(&redis, "a", "attempt").as_deref(), Some("1"));
    hero.run(&["job", "stop", "a"]).code(0);
    until(&redis, "a", "error");
}

#[test]
fn script_that_a_signal_kills_alone_fails() {
    let redis = Redis::start();
    let hero = writing(&redis);
    let _bash = hero.actor("bash-default-1").start();
    kill(endless_process(&redis, &hero, "a"), Signal::SIGTERM).expect("it runs");
    until(&redis, "a", "error");
    assert_eq!(field(&redis, "a", "error").as_deref(), Some("killed by signal 15 (SIGTERM)"));
}
