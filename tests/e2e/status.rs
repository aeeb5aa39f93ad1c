//! `hero status`: what it shows, its check for monitoring, and the supervisors that it lists.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{Hero, Redis, keys, wait_until};

use super::{ENDLESS, until};

fn document(hero: &Hero, args: &[&str]) -> Value {
    let done = hero.run(args);
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

fn of_type<'a>(list: &'a Value, name: &str) -> &'a Value {
    let mut all = list.as_array().expect("a list").iter();
    all.find(|of| of["script_type"] == name).unwrap_or(&Value::Null)
}

#[test]
fn status_shows_supervisors_actors_queues_jobs_and_redis() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis).with_default_user();
    let supervisor = hero.supervisor().start();
    let _osis = hero.actor("osis-default-1").tasks(3).start();
    hero.run(&["submit", "-t", "python", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "python", "--delay", "1h", "-e", "1"]).code(0);
    wait_until("the supervisor is present", || {
        document(&hero, &["status", "--json"])["supervisors"][0].is_object()
    });
    let status = document(&hero, &["status", "--json"]);
    let of = &status["supervisors"][0];
    assert_eq!((of["unit"].as_str(), of["redis"].as_str()), (Some("supervisor"), Some("ok")));
    assert_eq!(of["pid"], supervisor.pid());
    assert_eq!(status["supervisors"].as_array().map(Vec::len), Some(1));

    let osis = of_type(&status["actors"], "osis");
    assert_eq!([&osis["live"], &osis["ready"], &osis["tasks"]], [1, 1, 3]);
    let queue = |name: &str| {
        let mut queues = status["queues"].as_array().expect("a list").iter();
        queues.find(|of| of["queue"] == name).cloned().unwrap_or_default()
    };
    let (served, unserved) = (queue("type:osis"), queue("type:python"));
    assert_eq!([&served["depth"], &served["actors"]], [0, 1], "an empty queue is shown");
    assert_eq!([&unserved["depth"], &unserved["actors"]], [1, 0]);
    assert!(unserved["oldest_wait_s"].is_f64(), "{unserved}");
    let python = of_type(&status["types"], "python");
    assert_eq!([&python["scheduled"], &python["due"], &python["held"]], [1, 0, 0]);
    let of = &status["redis"];
    assert_eq!((&of["durable"], &of["fsync"]), (&true.into(), &"always".into()));
    assert!(of["memory_used_bytes"].as_u64() > Some(0), "{of}");

    let text = hero.run(&["status"]).code(0).stdout;
    for line in ["every write (appendonly yes, appendfsync always)", "type:python", "supervisor "] {
        assert!(text.contains(line), "{text}");
    }
    // The address of this Redis is the path of its socket.
    let long = text.lines().filter(|line| !line.starts_with("redis")).find(|l| l.len() > 80);
    assert_eq!(long, None, "{text}");
}

#[test]
fn check_exits_with_the_code_of_its_state_and_prints_one_line_with_figures() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    let check = || hero.run(&["status", "--check"]);
    let none = check().code(2);
    assert!(none.stdout.starts_with("CRITICAL - 0 live supervisors (threshold 1) | "), "{none:?}");
    let supervisor = hero.supervisor().start();
    let osis = hero.actor("osis-default-1").start();
    wait_until("all is well", || check().code == 0);
    let well = check().code(0);
    assert!(well.stdout.starts_with("OK - supervisors: 1, actors: 1, waiting jobs: 0"), "{well:?}");
    assert!(well.stdout.contains(" | supervisors=1;;1:;0 actors=1;;;0 "), "{well:?}");
    assert_eq!(well.stdout.lines().count(), 1);

    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    let unserved = check().code(1);
    let line = "WARNING - queue type:osis has 1 job and no live actor | ";
    assert!(unserved.stdout.starts_with(line), "{unserved:?}");
    let json = document(&hero, &["status", "--check", "--json"]);
    assert_eq!(json["check"]["state"], "warning");

    supervisor.signal(Signal::SIGTERM);
    supervisor.ends().code(0);
    let first = check().code(2).stdout;
    assert!(first.starts_with("CRITICAL - 0 live supervisors (threshold 1) (and 1 more) | "));
    assert_eq!(redis.all("SUPERVISOR"), [] as [&str; 0], "it has given its presence up");
}

#[test]
fn check_without_an_answer_or_a_login_is_critical_and_of_a_wrong_file_unknown() {
    let mut redis = Redis::start();
    let hero = Hero::on(&redis).with_default_user();
    redis.run("CONFIG SET requirepass secret");
    let refused = hero.run(&["status", "--check"]).code(2);
    assert!(refused.stdout.starts_with("CRITICAL - redis at "), "{refused:?}");
    hero.run(&["status"]).code(77);
    redis.kill();
    let down = hero.run(&["status", "--check"]).code(2);
    assert!(down.stdout.starts_with("CRITICAL - redis at "), "{down:?}");
    assert_eq!(document(&hero, &["status", "--check", "--json"])["check"]["state"], "critical");
    hero.run(&["status"]).code(69);
    let wrong = hero.run(&["--config", "/none.toml", "status", "--check"]).code(3);
    assert!(wrong.stdout.starts_with("UNKNOWN - cannot read"), "{wrong:?}");
}

#[test]
fn status_begins_with_what_is_wrong_the_worst_first() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    redis.push_job("osis", "a", "1");
    hero.run(&["submit", "-t", "python", "-e", "1"]).code(0);
    let text = hero.run(&["status"]).code(0).stdout;
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {text}"));
    assert!(text.starts_with("WRONG: 0 live supervisors"), "{text}");
    assert!(at("LOOK: queue type:python has 1 job") < at("remedies: hero doctor"), "{text}");
    assert!(at("remedies: hero doctor") < at("redis   "), "{text}");
}

#[test]
fn failures_and_dead_letters_of_the_last_hour_are_counted() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis).set("check.failed_critical", "2");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wait_until("the first sample", || !redis.list(&keys::hour("osis")).is_empty());
    for (id, retries) in [("a", "0"), ("b", "1")] {
        let fails = ["--retries", retries, "--id", id, "-e", "throw 1"];
        hero.run(&[&["submit", "-t", "osis"][..], &fails].concat()).code(0);
        until(&redis, id, "error");
    }
    let status = document(&hero, &["status", "--json"]);
    let hour = &of_type(&status["types"], "osis")["last_hour"];
    assert_eq!([&hour["finished"], &hour["failed"], &hour["dead"]], [0, 2, 1], "{status}");
    let check = hero.run(&["status", "--check"]).code(2);
    assert!(check.stdout.contains("CRITICAL - 2 failed jobs in the last hour (threshold 2)"));
    assert!(check.stdout.contains("WARNING - 1 dead letter in the last hour (threshold 1)"));
}

#[test]
fn supervisor_reports_that_redis_does_not_answer_with_its_next_heartbeats() {
    let redis = Redis::start();
    let notify = redis.folder().join("notify");
    let socket = UnixDatagram::bind(&notify).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let status = || {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).expect("the supervisor reports its status");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().env("NOTIFY_SOCKET", &notify).start();
    while !status().contains("redis ok") {}
    let info: String = redis.ask("INFO server");
    let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).expect("a pid");
    let pid = Pid::from_raw(pid.trim().parse().expect("a number"));
    kill(pid, Signal::SIGSTOP).expect("stopping redis");
    let mut reports = Vec::new();
    while !reports.last().is_some_and(|last: &String| last.contains("redis away for ")) {
        reports.push(status());
    }
    // The heartbeat that was under way, and one before the first call has timed out.
    let ok = reports.iter().filter(|report| report.contains("redis ok")).count();
    assert!(ok <= 2, "{reports:?}");
    let next = status();
    assert!(next.contains("redis away for ") && next.contains("WATCHDOG=1"), "{next}");
    kill(pid, Signal::SIGCONT).expect("continuing redis");
    while !status().contains("redis ok") {}
}

#[test]
fn supervisor_that_stops_right_after_an_outage_gives_its_presence_up() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    let supervisor = hero.supervisor().start();
    wait_until("the supervisor is present", || {
        document(&hero, &["status", "--json"])["supervisors"][0].is_object()
    });
    redis.kill();
    wait_until("it has found redis away", || supervisor.err().contains("trying again"));
    redis.start_again();
    supervisor.signal(Signal::SIGTERM);
    supervisor.ends().code(0);
    assert_eq!(
        document(&hero, &["status", "--json"])["supervisors"].as_array().map(Vec::len),
        Some(0)
    );
}

#[test]
fn running_jobs_are_counted_at_once_and_by_their_actor() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actors = ["osis-default-1", "osis-default-2"].map(|unit| hero.actor(unit).start());
    let words = ["submit", "-t", "osis", "-i", "2", "--id", "a", "--timeout", "1h", "-e", ENDLESS];
    hero.run(&words).code(0);
    until(&redis, "a", "started");
    let listed = hero.run(&["actor", "list", "--json"]).code(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let running: Vec<_> =
        listed["actors"].as_array().expect("a list").iter().map(|of| &of["running"]).collect();
    assert_eq!(running, [0, 1]);
}
