//! The output of jobs: seen while they run, and cut where it is too large.

use crate::support::{Hero, Redis, wait_until};

use super::{field, until};

/// Prints a line to the output and one to the log, and runs until it is stopped.
const SLOW: &str = "import sys, time\n\
                    print('first', flush=True)\n\
                    print('to the log', file=sys.stderr, flush=True)\n\
                    time.sleep(600)";

#[test]
fn standard_output_is_in_the_log_while_the_job_runs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    hero.run(&["submit", "-t", "python", "--timeout", "15m", "--id", "a", "-e", SLOW]).code(0);
    let logs = |options: &[&str]| {
        let words = [&["job", "logs"], options, &["a"]].concat();
        hero.run(&words).code(0).stdout
    };
    wait_until("the log has the first line", || logs(&[]).contains("first\n"));
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("started"));
    assert_eq!(logs(&["--streams"]), "err to the log\nout first\n");
    let timed = logs(&["--timestamps"]);
    let time = timed.lines().next().and_then(|line| line.strip_suffix(" to the log"));
    assert!(time.is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{timed}");
    let json = hero.run(&["--json", "job", "logs", "a"]).code(0).stdout;
    assert!(json.contains(r#""fd":1"#) && json.contains(r#""output":true"#), "{json}");
    assert!(json.contains(r#""time":"20"#), "{json}");
    hero.run(&["job", "stop", "a"]).code(0);
    until(&redis, "a", "error");
    assert_eq!(logs(&["--streams"]), "err to the log\nout first\n", "nothing is there twice");
}

#[test]
fn exec_shows_the_output_of_a_slow_job_once() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let script = "import time\nprint('first', flush=True)\ntime.sleep(2)\n";
    let shown = hero.run(&["exec", "-t", "python", "-e", script]).code(0);
    assert_eq!((shown.stdout.as_str(), shown.stderr.as_str()), ("first\n", ""));
    let failing = format!("{script}exit(3)");
    let shown = hero.run(&["exec", "-t", "python", "-e", &failing]).code(1);
    assert_eq!((shown.stdout.as_str(), shown.stderr.matches("first").count()), ("", 1));
    let off = Hero::on(&redis).set("job.live_output", "false");
    let _bash = off.actor("bash-default-1").start();
    let script = "echo first; sleep 2";
    off.run(&["exec", "-t", "bash", "--id", "off", "-e", script]).code(0).stdout("first\n");
    off.run(&["job", "logs", "off"]).code(0).stdout("");
}

#[test]
fn large_output_is_cut_at_its_begin_unless_job_or_type_wants_a_failure() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("job.output_size_max", "\"1KiB\"")
        .set("type.bash.output_overflow", "\"fail\"");
    let _units = ["python-default-1", "bash-default-1", "osis-default-1"]
        .map(|unit| hero.actor(unit).start());
    let script = "for n in range(10000): print(n)";
    let kept = hero.run(&["exec", "-t", "python", "--id", "a", "-e", script]).code(0).stdout;
    assert!(kept.starts_with("[hero: the first ") && kept.ends_with("\n9998\n9999\n"), "{kept}");
    let mark = kept.lines().next().unwrap_or_default();
    let cut = field(&redis, "a", "output_truncated").expect("it was cut");
    assert!(mark.contains(&format!(" {cut} bytes")) && kept.len() <= 1024, "{kept}");
    let shown = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(shown.contains(&format!("output_truncated  {cut}\n")), "{shown}");
    hero.run(&["exec", "-t", "python", "--output-overflow", "fail", "-e", script])
        .code(1)
        .says("output too large: more than 1024 bytes");
    hero.run(&["exec", "-t", "bash", "-e", "seq 10000"]).code(1).says("output too large");
    hero.run(&["exec", "-t", "bash", "--output-overflow", "truncate", "-e", "seq 10000"]).code(0);
    let text = "let s = \"\"; for n in 0..1000 { s += n.to_string() + \"\\n\"; } s";
    let kept = hero.run(&["exec", "-t", "osis", "--id", "b", "-e", text]).code(0).stdout;
    assert!(kept.starts_with("[hero: the first ") && kept.ends_with("\n999\n"), "{kept}");
    assert!(field(&redis, "b", "output_truncated").is_some());
    let array = "let a = []; for n in 0..1000 { a.push(n); } a";
    hero.run(&["exec", "-t", "osis", "-e", array]).code(1).says("output too large");
}
