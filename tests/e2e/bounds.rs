//! Bounds of one job, within its script type's.

use crate::support::{Hero, Redis, needs};

use super::{field, until};

const MEMORY: &str = "import resource\nprint(resource.getrlimit(resource.RLIMIT_DATA)[0] >> 20, \
                      resource.getrlimit(resource.RLIMIT_CPU)[0])";
const CONNECT: &str = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', PORT), 5)\n    \
                       print('open')\nexcept PermissionError:\n    print('closed')";

#[test]
fn job_gets_the_bounds_that_it_asks_for_within_those_of_its_type() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.python.warm", "true")
        .set("type.python.sandbox.memory", "\"1GiB\"")
        .set("type.python.sandbox.memory_max", "\"2GiB\"")
        .set("type.python.sandbox.cpu", "\"1m\"")
        .set("type.python.sandbox.cpu_max", "\"1h\"");
    let _actor = hero.actor("python-default-1").start();
    let run = |args: &[&str]| {
        hero.run(&[&["exec", "-t", "python", "-e", MEMORY], args].concat()).code(0).stdout
    };
    assert_eq!(run(&["--memory=512MiB", "--cpu-time=5s"]), "512 5\n");
    assert_eq!(run(&["--memory=2GiB", "--cpu-time=1h"]), "2048 3600\n");
    assert_eq!(run(&[]), "1024 60\n");
    let hungry = "x = bytearray(200 << 20)";
    hero.run(&["exec", "-t", "python", "--memory=128MiB", "-e", hungry])
        .code(1)
        .says("MemoryError");
    hero.run(&["exec", "-t", "python", "--cpu-time=1s", "-e", "while True: pass"]).code(152);
}

#[test]
fn job_that_asks_for_too_much_is_rejected_by_its_submitter_and_by_the_actor() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("python-default-1").start();
    let _osis = hero.actor("osis-default-1").start();
    let submit = |args: &[&str]| hero.run(&[&["submit", "-e", "1"], args].concat());
    submit(&["-t", "python", "--memory=5GiB"])
        .code(65)
        .says("`5GiB` is more than 4GiB, the limit type.python.sandbox.memory_max");
    submit(&["-t", "python", "--network=all"]).code(65).says("type.python.sandbox.network_max");
    submit(&["-t", "python", "--network=80,53"]).code(65).says(
        "`53` is not allowed by type.python.sandbox.ports_max; ports_max = [53, 80] in [type.python.sandbox]",
    );
    submit(&["-t", "python", "--network=db:5432"]).code(65).says("a host cannot be named");
    assert!(!hero.run(&["exec", "--help"]).stdout.contains("--network 443 fetch.py"));
    submit(&["-t", "osis", "--memory=1GiB"]).code(65).says("is for scripts that are processes");
    for wrong in ["--memory=1", "--memory=much", "--network=http", "--network=0", "--cpu-time=5"] {
        submit(&["-t", "python", wrong]).code(65);
    }
    let batch = r#"{"script_type": "python", "script": "1", "memory": "5GiB"}"#;
    std::fs::write(redis.folder().join("b"), batch).expect("written");
    asks_too_much(&hero, &["submit", "--batch", "b"]);
    asks_too_much(&hero, &["submit", "--batch", "b", "--all-or-none"]);
    hero.run(&["submit", "-t", "python", "--delay=1h", "--id=mine", "-e", "1"]).code(0);
    asks_too_much(&hero, &["job", "clone", "mine", "--set", "memory=5GiB"]);
    let cron = ["cron", "add", "c", "--schedule", "@daily", "-t", "python", "-e", "1"];
    asks_too_much(&hero, &[&cron[..], &["--memory", "5GiB"]].concat());
    // Another program wrote the hash, or another configuration allowed it.
    for (id, script_type, name, value, why) in [
        ("m", "python", "memory", "5GiB", "type.python.sandbox.memory_max"),
        ("n", "python", "network", "all", "type.python.sandbox.network_max"),
        ("o", "osis", "cpu", "5", "is for scripts that are processes"),
    ] {
        redis.set_job(id, &format!("script 1 script_type {script_type} status dispatched"));
        redis.set_field(&crate::support::keys::job(id), name, value);
        redis.push(&crate::support::keys::work(&format!("type:{script_type}")), &[id]);
        until(&redis, id, "error");
        let error = field(&redis, id, "error").expect("an error");
        assert!(error.starts_with("invalid job: ") && error.contains(why), "{error}");
        assert_eq!(field(&redis, id, "attempt").as_deref(), Some("1"));
    }
}

#[track_caller]
fn asks_too_much(hero: &Hero, args: &[&str]) {
    hero.run(args)
        .code(65)
        .says("`5GiB` is more than 4GiB, the limit type.python.sandbox.memory_max");
}

#[test]
fn network_of_a_job_is_within_the_list_of_its_type() {
    let redis = Redis::start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let hero = Hero::on(&redis)
        .set("type.python.sandbox.network_max", "true")
        .set("type.python.sandbox.ports_max", &format!("[{port}]"));
    let _actor = hero.actor("python-default-1").start();
    let connect = CONNECT.replace("PORT", &port.to_string());
    let run = |args: &[&str]| {
        hero.run(&[&["exec", "-t", "python", "-e", &connect], args].concat()).code(0).stdout
    };
    assert_eq!(run(&[]), "closed\n");
    assert_eq!(run(&["--network=all"]), "open\n");
    assert_eq!(run(&["--network=none"]), "closed\n");
    let has_ports = || hero.run(&["check"]).stdout.contains("sandbox: full");
    if needs("landlock", has_ports) {
        assert_eq!(run(&[&format!("--network={port}")]), "open\n");
    }
}

#[test]
fn job_that_asks_for_memory_as_a_whole_is_reported_where_nothing_holds_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.sandbox.job_memory", "\"1GiB\"");
    let _actor = hero.actor("python-default-1").start();
    let run = |args: &[&str]| hero.run(&[&["exec", "-t", "python", "-e", MEMORY], args].concat());
    run(&["--job-memory=2GiB"])
        .code(65)
        .says("`2GiB` is more than 1GiB, the limit type.python.sandbox.memory_max");
    // Each process keeps the bound of its type.
    let ran = run(&["--job-memory=512MiB"]).code(0);
    assert!(ran.stdout.starts_with("4096 "), "{}", ran.stdout);
    let has_groups = hero.run(&["check"]).stdout.contains("in a control group of its own");
    let said = "note: nothing holds this job to its --job-memory";
    assert_eq!(ran.stderr.contains(said), !has_groups, "{}", ran.stderr);
    assert!(!run(&["--memory=512MiB"]).code(0).stderr.contains(said));
}
