//! Machines: a job for every one of them, those that are absent, and a machine that is drained before a reboot.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::field;
use crate::support::{Hero, Process, Redis, keys, needs, until, wait_until};

/// Returns whether actors of this test can have machines of their own.
pub(super) fn can_divide() -> bool {
    needs("root", || nix::unistd::geteuid().is_root())
}

/// Actors of bash: 1 on web1, 2 and 3 on web2.
pub(super) fn fleet(hero: &Hero) -> [Process; 3] {
    let on = |unit: &str, host: &str| hero.actor(unit).on_machine(host).start();
    [on("bash-default-1", "web1"), on("bash-default-2", "web2"), on("bash-default-3", "web2")]
}

pub(super) fn on(redis: &Redis) -> Hero {
    Hero::on(redis).set("actor.labels.role", "\"web\"").quick_sweeps()
}

/// Returns the lines of a command's JSON.
pub(super) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

pub(super) fn until_noted(redis: &Redis, actor: &str) {
    let labels = format!("HEXISTS {} {actor}", keys::prefix("ACTOR_LABELS"));
    wait_until("the machine is noted", || redis.ask::<bool>(&labels));
}

/// Ends an actor in order, as a machine does that shuts down.
pub(super) fn shut_down(actor: Process) {
    actor.signal(Signal::SIGTERM);
    actor.ends().code(0);
}

#[test]
fn job_for_every_machine_runs_once_on_each_and_equal_outputs_are_shown_once() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let hero = on(&redis);
    let (_supervisor, _actors) = (hero.supervisor().start(), fleet(&hero));
    let every = ["exec", "--every-machine", "-t", "bash"];
    let same = hero.run(&[&every[..], &["-e", "echo same"]].concat());
    same.code(0).stdout("== web1, web2 (2)\nsame\n");
    let done = hero.run(&[&every[..], &["-e", "hostname"]].concat()).code(0);
    done.stdout("== web1\nweb1\n== web2\nweb2\n");
    let done = hero.run(&[&every[..], &["--where", "host = web2", "-e", "hostname"]].concat());
    done.code(0).stdout("== web2\nweb2\n");
    let outputs = redis.folder().join("outputs");
    let named = outputs.display().to_string();
    let fails = "hostname; [ $(hostname) != web2 ] || exit 3";
    let done = hero.run(&[&every[..], &["--outputs", &named, "-e", fails]].concat()).code(1);
    let shown = &done.stdout;
    assert!(shown.starts_with("== web1\nweb1\n== web2 failed: exit code 3 (job "), "{shown}");
    assert!(shown.ends_with(")\nweb2\n"), "its last lines: {shown}");
    assert_eq!(fs::read_to_string(outputs.join("web1")).expect("written").trim(), "web1");
    // A folder that takes no files is refused before anything runs.
    let before = redis.keys(&keys::prefix("JOB")).len();
    let below_a_file = outputs.join("web1/folder").display().to_string();
    let refused = hero.run(&[&every[..], &["--outputs", &below_a_file, "-e", "1"]].concat());
    refused.code(74).says("cannot write the output to");
    assert_eq!(redis.keys(&keys::prefix("JOB")).len(), before);

    let every_actor = ["--json", "exec", "--every-actor", "-t", "bash", "-e", "hostname"];
    let answers = lines(&hero.run(&every_actor).code(0).stdout);
    let of =
        |actor: &str| answers.iter().find(|of| of["actor"] == actor).expect("an answer").clone();
    assert_eq!(answers.len(), 3);
    for (actor, host) in [("bash:default:1", "web1"), ("bash:default:3", "web2")] {
        let answer = of(actor);
        assert_eq!((&answer["host"], &answer["status"]), (&json!(host), &json!("finished")));
        assert_eq!(answer["output"].as_str().map(str::trim), Some(host));
    }
}

#[test]
fn retry_of_a_job_for_every_machine_runs_again_only_where_it_failed() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let marks = redis.folder().join("marks");
    fs::write(&marks, "").expect("written");
    let hero = on(&redis).set("type.bash.sandbox.write", &format!("[{marks:?}]"));
    let (_supervisor, _actors) = (hero.supervisor().start(), fleet(&hero));
    let script = format!(
        "hostname >> {0}; [ $(hostname) != web2 ] || [ $(grep -c web2 {0}) = 2 ]",
        marks.display()
    );
    let submit = ["submit", "--every-machine", "--on-end", "end.sh", "-t", "bash", "-e", &script];
    fs::write(redis.folder().join("end.sh"), "true\n").expect("written");
    let batch = hero.run(&submit).code(0).stdout;
    hero.run(&["graph", "wait", batch.trim()]).code(1);
    hero.run(&["graph", "retry", batch.trim()]).code(0).stdout("1 job retried\n");
    hero.run(&["graph", "wait", batch.trim()]).code(0);
    let mut ran: Vec<String> =
        fs::read_to_string(&marks).expect("written").lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran, ["web1", "web2", "web2"]);
    let shown = hero.run(&["graph", "show", batch.trim()]).code(0).stdout;
    assert!(shown.contains("web1") && shown.contains("web2"), "{shown}");
}

#[test]
fn rolling_run_stops_after_its_first_failure() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let hero = on(&redis);
    let (_supervisor, _actors) = (hero.supervisor().start(), fleet(&hero));
    let rolling = ["exec", "--every-machine", "--at-a-time", "1", "--stop-after", "1"];
    let done = hero.run(&[&rolling[..], &["-t", "bash", "-e", "exit 3"]].concat()).code(1);
    let count = |text: &str| done.stdout.matches(text).count();
    assert_eq!(count("failed: exit code 3"), 1, "{}", done.stdout);
    assert_eq!(count(": stopped after 1 failure of batch "), 1, "{}", done.stdout);
    hero.run(&["exec", "--at-a-time", "1", "-t", "bash", "-e", "1"]).code(2);
}

#[test]
fn absent_machine_is_named_and_gets_a_job_that_may_wait_for_its_return() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let hero = on(&redis);
    let _supervisor = hero.supervisor().start();
    let _first = hero.actor("bash-default-1").on_machine("web1").start();
    let second = hero.actor("bash-default-2").on_machine("web2").start();
    until_noted(&redis, "bash:default:2");
    shut_down(second);
    let list = hero.run(&["machine", "list"]).code(0).stdout;
    assert!(list.contains("LOAD") && list.contains("FREE") && list.contains("GiB"), "{list}");
    let row = |host: &str| list.lines().find(|line| line.starts_with(host)).expect(host).to_owned();
    assert!(row("web1").contains("ready") && row("web2").contains("absent"), "{list}");
    let done = hero.run(&["exec", "--every-machine", "-t", "bash", "-e", "hostname"]).code(75);
    done.stdout("== web1\nweb1\n").says("1 is absent and got no job: web2, seen ");
    let waits = ["submit", "--every-machine", "--ids", "--expires", "1h", "-t", "bash", "-e"];
    let ids = hero.run(&[&waits[..], &["hostname"]].concat()).code(0).stdout;
    let ids: Vec<&str> = ids.lines().collect();
    assert_eq!(ids.len(), 2);
    until(&redis, ids[0], "finished");
    assert_eq!(field(&redis, ids[1], "status").as_deref(), Some("dispatched"));
    let _returned = hero.actor("bash-default-2").on_machine("web2").start();
    until(&redis, ids[1], "finished");
    hero.run(&["exec", "--every-machine", "-t", "python", "-e", "1"])
        .code(66)
        .says("no machine has, or had lately, an actor of python");
    hero.run(&["exec", "--every-machine", "--where", "role = db", "-t", "bash", "-e", "1"])
        .code(66)
        .says("of 2 live actors, 2 fail role = \"db\"");
}

#[test]
fn drained_machine_claims_nothing_until_it_is_resumed() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let hero = on(&redis);
    let (_supervisor, actors) = (hero.supervisor().on_machine("web1").start(), fleet(&hero));
    let gate = redis.folder().join("gate");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done", gate.display());
    let submit = ["submit", "-t", "bash", "--where", "host = web2", "--id", "runs", "-e", &script];
    hero.run(&submit).code(0);
    until(&redis, "runs", "started");
    let busy = hero.run(&["machine", "drain", "--wait", "10ms", "web2"]).code(75);
    busy.stdout("web2: 2 actors ordered to drain, 1 job of it still runs\n");
    let waits = ["submit", "-t", "bash", "--where", "host = web2", "--id", "waits", "-e", "true"];
    hero.run(&waits).code(0);
    hero.run(&["exec", "-t", "bash", "-e", "hostname"]).code(0).stdout("web1\n");
    fs::write(&gate, "").expect("written");
    let done = hero.run(&["machine", "drain", "--wait", "1m", "web2"]).code(0);
    done.stdout("web2: 2 actors drained, no job of it runs\n");
    hero.run(&["machine", "drain", "web1"])
        .code(0)
        .says("no other live actor is ready for jobs of bash")
        .says("no supervisor is live on another machine");
    let other = hero.run(&["machine", "drain", "web2"]).code(0);
    assert!(!other.stderr.contains("no supervisor is live"), "{}", other.stderr);
    let shown = hero.run(&["machine", "show", "web2"]).code(0).stdout;
    assert!(shown.contains("draining") && shown.contains("role=web"), "{shown}");
    assert_eq!(field(&redis, "waits", "status").as_deref(), Some("dispatched"));
    hero.run(&["machine", "resume", "web2"]).code(0).stdout("web2: 2 actors resumed\n");
    until(&redis, "waits", "finished");
    hero.run(&["machine", "forget", "web2"]).code(65).says("all its actors are live");
    for actor in ["bash:default:1", "bash:default:2", "bash:default:3"] {
        until_noted(&redis, actor);
    }
    let [first, second, third] = actors;
    shut_down(third);
    let forget = ["machine", "forget", "web2"];
    hero.run(&forget).code(0).stdout("web2: 1 absent actor forgotten\n");
    [first, second].into_iter().for_each(shut_down);
    hero.run(&["machine", "drain", "web2"]).code(66).says("machine web2 has no live actor");
    hero.run(&forget).code(0).stdout("web2 forgotten\n");
    let audit = hero.run(&["audit", "--what", "machine"]).code(0).stdout;
    for record in [
        "machine.forget",
        "machine.drain",
        "machine.resume",
        "web2: bash:default:2, bash:default:3",
    ] {
        assert!(audit.contains(record), "{audit}");
    }
    let list = hero.run(&["machine", "list"]).code(0).stdout;
    assert!(list.contains("web1") && !list.contains("web2"), "{list}");
}

#[test]
fn machine_whose_actor_does_not_answer_is_not_reported_as_drained() {
    if !can_divide() {
        return;
    }
    let redis = Redis::start();
    let hero = on(&redis).set("actor.lease", "\"1s\"");
    let _supervisor = hero.supervisor().start();
    let mut actor = hero.actor("bash-default-1").on_machine("web1").start();
    actor.signal(Signal::SIGSTOP);
    let frozen = hero.run(&["machine", "drain", "web1"]).code(75);
    frozen.says("bash:default:1 has not reported that it drains, and may claim jobs");
    actor.signal(Signal::SIGCONT);
    hero.run(&["machine", "drain", "--wait", "1m", "web1"]).code(0);
    let waits = hero.run(&["submit", "-t", "bash", "--where", "host = web1", "-e", "true"]).code(0);
    waits.says("bash:default:1, which claims its jobs, drains: hero actor resume bash-default-1");
    let all = ["exec", "--every-machine", "--wait", "10ms", "-t", "bash", "-e", "true"];
    hero.run(&all).code(75).says("drained, so its job waits: web1");

    // The order to a process that has died is none to the one that takes its place.
    hero.run(&["machine", "resume", "web1"]).code(0);
    actor.kill();
    hero.run(&["machine", "drain", "web1"]).code(75).says("bash:default:1 has ");
    let _again = hero.actor("bash-default-1").on_machine("web1").start();
    hero.run(&["exec", "-t", "bash", "-e", "hostname"]).code(0).stdout("web1\n");
}

#[test]
fn settings_that_copies_cannot_share_are_rejected() {
    let redis = Redis::start();
    let hero = on(&redis);
    let _actor = hero.actor("bash-default-1").start();
    for (options, why) in [
        (&["--group", "io"][..], "where = 'group = \"io\"'"),
        (&["--instance", "1"], "names one actor"),
        (&["--id", "a"], "is a batch of copies"),
        (&["--unique-key", "k"], "would leave one copy"),
    ] {
        let all = [&["exec", "--every-machine", "-t", "bash"], options, &["-e", "1"]].concat();
        hero.run(&all).code(65).says(why);
    }
    let file = redis.folder().join("a");
    fs::write(&file, "").expect("written");
    let input = file.display().to_string();
    let all = ["exec", "--every-machine", "--input", &input, "-t", "bash", "-e", "1"];
    hero.run(&all).code(2).says("leave out --input");
    assert!(redis.keys(&keys::prefix("JOB")).is_empty());
}
