//! Text without a line end, such as a progress bar or a question, in the log of a running job.

use std::num::NonZero;

use super::{field, until};
use crate::support::{Hero, Redis, keys, until_exists, wait_until};

/// Returns the text in the hash of a job.
fn standing(redis: &Redis, id: &str) -> String {
    field(redis, id, "unfinished_line").unwrap_or_default()
}

/// Returns the number of lines in the log of a job.
fn lines(redis: &Redis, id: &str) -> usize {
    redis.ask(&format!("XLEN {}", keys::log(id)))
}

#[test]
fn question_is_in_the_followed_log_and_its_line_is_there_once() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let gate = redis.folder().join("gate");
    let script = format!("printf 'Continue? [y/N] '; {}; echo yes", until_exists(&gate));
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", &script]).code(0);
    let logs = hero.begin(&["job", "logs", "-f", "a"]);
    let timed = hero.begin(&["job", "logs", "-f", "--streams", "a"]);
    wait_until("the question is shown", || logs.out() == "Continue? [y/N] ");
    assert_eq!((standing(&redis, "a").as_str(), lines(&redis, "a")), ("Continue? [y/N] ", 0));
    std::fs::write(&gate, "").expect("opening the gate");
    logs.ends().code(0).stdout("Continue? [y/N] yes\n");
    timed.ends().code(0).stdout("out Continue? [y/N] yes\n");
    until(&redis, "a", "finished");
    assert_eq!((field(&redis, "a", "unfinished_line"), lines(&redis, "a")), (None, 1));
    hero.run(&["job", "logs", "a"]).code(0).stdout("Continue? [y/N] yes\n");
}

#[test]
fn bar_moves_in_one_line_of_the_terminal() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let gate = redis.folder().join("gate");
    let script = format!(
        "import itertools, os, sys, time\n\
         for n in itertools.count():\n\
         \x20   sys.stderr.write(f'\\r{{n}} done |###   |')\n\
         \x20   time.sleep(0.01)\n\
         \x20   if os.path.exists({gate:?}): break\n\
         sys.stderr.write('\\rall done\\n')\n"
    );
    hero.run(&["submit", "-t", "python", "--id", "a", "-e", &script]).code(0);
    let logs = hero.begin_at_terminal(&["job", "logs", "-f", "a"]);
    let screen = |text: &str| {
        let [rows, columns] = [24, 80].map(|size| NonZero::new(size).expect("not zero"));
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(text.as_bytes());
        parser.screen().contents()
    };
    let mut seen: Vec<String> = Vec::new();
    wait_until("the bar has moved", || {
        let now = screen(&logs.out());
        assert!(now.lines().count() <= 1, "{now}");
        if now.ends_with("done |###   |") && seen.last() != Some(&now) {
            seen.push(now);
        }
        seen.len() > 2
    });
    std::fs::write(&gate, "").expect("opening the gate");
    let shown = logs.ends().code(0).stdout;
    assert_eq!(screen(&shown), "all done");
    assert_eq!(standing(&redis, "a"), "");
}

#[test]
fn dots_are_appended_and_stay_below_lines_of_the_other_stream() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let (more, end) = (redis.folder().join("more"), redis.folder().join("end"));
    let script = format!(
        "printf 'working' >&2; sleep 1; for n in 1 2 3; do printf . >&2; sleep 0.3; done\n\
         {}; echo a line\n{}; echo ' done' >&2",
        until_exists(&more),
        until_exists(&end)
    );
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", &script]).code(0);
    let logs = hero.begin(&["job", "logs", "-f", "a"]);
    wait_until("all dots are shown", || logs.out() == "working...");
    std::fs::write(&more, "").expect("opening the gate");
    wait_until("they stand below the line", || logs.out() == "working...\ra line\nworking...");
    std::fs::write(&end, "").expect("opening the gate");
    logs.ends().code(0).stdout("working...\ra line\nworking... done\n");
}

#[test]
fn secret_that_is_half_written_is_not_shown() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let gate = redis.folder().join("gate");
    let script = format!("printf 'token: s3cr' >&2; {}; echo 3t >&2", until_exists(&gate));
    let submit = ["submit", "-t", "bash", "--id", "a", "--env", "API_TOKEN=s3cr3t", "-e", &script];
    hero.run(&submit).code(0);
    wait_until("the start is shown", || !standing(&redis, "a").is_empty());
    assert_eq!(standing(&redis, "a"), "token: ");
    std::fs::write(&gate, "").expect("opening the gate");
    until(&redis, "a", "finished");
    hero.run(&["job", "logs", "a"]).code(0).stdout("token: ***\n");
}

#[test]
fn question_of_a_killed_job_is_gone_from_its_hash() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _bash = hero.actor("bash-default-1").start();
    let script = "printf 'Password: '; sleep 600";
    hero.run(&["submit", "-t", "bash", "--id", "a", "--timeout", "15m", "-e", script]).code(0);
    wait_until("the question is shown", || standing(&redis, "a") == "Password: ");
    hero.run(&["job", "stop", "a"]).code(0);
    until(&redis, "a", "error");
    assert_eq!(field(&redis, "a", "unfinished_line"), None);
}
