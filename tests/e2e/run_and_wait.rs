//! The one way to run a job and wait: a submitter that waits says so when it submits, and makes no further call.

use crate::support::{Hero, Monitor, Redis, keys};

/// The commands that say something about the reply of a job.
fn of_reply(commands: Vec<String>) -> Vec<String> {
    commands.into_iter().filter(|command| command.contains("\"reply\"")).collect()
}

#[test]
fn exec_and_bench_submit_a_job_that_replies_and_ask_for_no_reply_later() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let mut monitor = Monitor::of(&redis);
    for words in [&["exec", "-t", "osis", "-e", "1"][..], &["bench", "latency", "3"]] {
        hero.run(words).code(0);
        let commands = monitor.commands();
        assert!(commands.iter().any(|command| command.starts_with("\"BLPOP\"")), "{commands:?}");
        assert_eq!(of_reply(commands), [] as [&str; 0], "{words:?}");
    }
}

#[test]
fn who_waits_for_a_job_that_was_submitted_before_asks_for_its_reply() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut monitor = Monitor::of(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    let said = of_reply(monitor.commands());
    // Redis may not know the script yet, and get the call again.
    assert!(!said.is_empty() && said.iter().all(|one| one.contains("\"reply\" \"0\"")), "{said:?}");
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "-t", "osis", "--id", "b", "-e", "sleep(600)"]).code(0);
    hero.run(&["job", "wait", "a"]).code(0).stdout("1\n");
    hero.run(&["job", "wait", "--wait", "50ms", "b"]).code(75);
    let asked = format!("\"HDEL\" \"{}\" \"reply\"", keys::job("b"));
    assert!(of_reply(monitor.commands()).contains(&asked));
}
