//! Rhai scripts that take long to parse: they end when they have to, and the actor goes on.

use nix::sys::signal::Signal;

use crate::support::{Hero, Redis, keys};

use super::{field, until};

/// Returns scripts that parse for longer than a test waits, or run for longer.
fn bombs() -> [(&'static str, String); 3] {
    let all = |text: fn(u32) -> String, count| (0..count).map(text).collect::<Vec<_>>().concat();
    [
        ("names", all(|n| format!("let a{n}=0;"), 120_000)),
        ("cases", format!("switch 7 {{{}}} loop {{}}", all(|n| format!("{n}=>{n},"), 100_000))),
        ("blocks", format!("{} loop {{}}", "{}".repeat(400_000))),
    ]
}

#[test]
fn long_parse_ends_by_stop_timeout_and_shutdown() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.script_size_max", "\"4MiB\"");
    let hero = hero.set("actor.drain_timeout", "\"100ms\"");
    for (name, script) in bombs() {
        let file = redis.folder().join(format!("{name}.rhai"));
        std::fs::write(&file, script).expect("writing the script");
        let file = file.to_str().expect("a path of text");
        let submit = |kind: &str, timeout: &str| {
            let id = format!("{name}-{kind}");
            hero.run(&["submit", "-t", "osis", "--id", &id, "--timeout", timeout, file]).code(0);
            id
        };
        let osis = hero.actor("osis-default-1").tasks(1).start();
        let stopped = submit("stopped", "5m");
        until(&redis, &stopped, "started");
        hero.run(&["job", "stop", &stopped]).code(0);
        until(&redis, &stopped, "error");
        assert_eq!(field(&redis, &stopped, "error").as_deref(), Some("stopped_by_request"));

        let timed_out = submit("timed-out", "300ms");
        until(&redis, &timed_out, "error");
        assert_eq!(field(&redis, &timed_out, "error").as_deref(), Some("timeout"));
        hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");

        let shut_down = submit("shut-down", "5m");
        until(&redis, &shut_down, "started");
        osis.signal(Signal::SIGTERM);
        osis.ends().code(0);
        assert_eq!(redis.list(&keys::work("type:osis")), [shut_down.as_str()]);
        hero.run(&["job", "stop", &shut_down]).code(0);
    }
}

#[test]
fn call_with_too_many_arguments_is_rejected_and_the_next_job_runs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").tasks(1).start();
    let file = redis.folder().join("arguments.rhai");
    std::fs::write(&file, format!("fn f(a) {{}} f({})", "1,".repeat(400_000))).expect("written");
    let file = file.to_str().expect("a path of text");
    hero.run(&["submit", "-t", "osis", "--id", "a", "--timeout", "5m", file]).code(0);
    until(&redis, "a", "error");
    let error = field(&redis, "a", "error").unwrap_or_default();
    assert!(error.contains("too many arguments: a call has at most 64"), "{error}");
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
}
