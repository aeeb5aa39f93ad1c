//! The output of jobs: seen while they run, and cut where it is too large.

use redis::streams::{StreamId, StreamRangeReply};

use crate::support::{Hero, Redis, keys, wait_until};

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
    assert_eq!(logs(&["--streams"]), "out first\nerr to the log\n");
    let timed = logs(&["--timestamps"]);
    let time = timed.lines().next().and_then(|line| line.strip_suffix(" first"));
    assert!(time.is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{timed}");
    let json = hero.run(&["--json", "job", "logs", "a"]).code(0).stdout;
    assert!(json.contains(r#""fd":1"#) && json.contains(r#""output":true"#), "{json}");
    assert!(json.contains(r#""time":"20"#), "{json}");
    hero.run(&["job", "stop", "a"]).code(0);
    until(&redis, "a", "error");
    assert_eq!(logs(&["--streams"]), "out first\nerr to the log\n", "nothing is there twice");
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
    let shown = hero.run(&["exec", "-t", "python", "-e", &failing]).code(3);
    assert_eq!((shown.stdout.as_str(), shown.stderr.matches("first").count()), ("first\n", 0));
    let off = Hero::on(&redis).set("job.live_output", "false");
    let _bash = off.actor("bash-default-1").start();
    let script = "echo first; sleep 2";
    off.run(&["exec", "-t", "bash", "--id", "off", "-e", script]).code(0).stdout("first\n");
    off.run(&["job", "logs", "off"]).code(0).stdout("");
}

#[test]
fn large_output_is_found_by_every_command_and_by_dependents() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let output = "x".repeat(100_000);
    let script = "head -c 100000 /dev/zero | tr '\\0' x";
    let exec = ["exec", "-t", "bash", "--id", "a", "-e", script];
    hero.run(&exec).code(0).stdout(&format!("{output}\n"));
    assert_eq!(field(&redis, "a", "output"), None);
    hero.run(&["job", "output", "a"]).code(0).stdout(&output);
    hero.run(&["job", "wait", "a"]).code(0).stdout(&format!("{output}\n"));
    for words in [&["job", "show", "a"][..], &["job", "show", "a", "--json"]] {
        assert!(hero.run(words).code(0).stdout.contains(&output), "{words:?}");
    }
    assert!(!hero.run(&["job", "show", "a", "--json"]).stdout.contains("output_key"));
    let counts = "wc -c < \"$HERO_INPUTS\"";
    let after = ["exec", "-t", "bash", "--after", "a", "-e", counts];
    let bytes: usize = hero.run(&after).code(0).stdout.trim().parse().expect("a number");
    assert!(bytes > 100_000, "{bytes}");
    hero.run(&["job", "delete", "a"]).code(0);
    assert!(redis.all("OUTPUT").is_empty());
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
    let printed = hero.run(&["job", "output", "a"]).code(0);
    printed
        .says(&format!("the first {cut} bytes of the output were cut off (job.output_size_max)"));
    let shown = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(shown.contains("output_truncated  46.9 KiB\n"), "{cut} bytes: {shown}");
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

#[test]
fn print_of_python_is_in_the_log_at_once() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let script = "import time\nprint('first')\ntime.sleep(600)";
    for (id, set) in [("warm", "A=1"), ("cold", "PYTHONUTF8=1")] {
        let words = ["submit", "-t", "python", "--timeout", "15m", "--id", id, "--env", set, "-e"];
        hero.run(&[&words[..], &[script]].concat()).code(0);
        let log = || hero.run(&["job", "logs", id]).code(0).stdout;
        wait_until("the log has the line", || log() == "first\n");
        hero.run(&["job", "stop", id]).code(0);
    }
}

#[test]
fn files_that_are_not_kept_are_named_and_fail_a_job_that_wants_all() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.files_size_max", "\"1KiB\"");
    let _bash = hero.actor("bash-default-1").start();
    let script =
        "head -c 2000 /dev/zero > \"$HERO_OUTPUT_DIR/big.bin\"; echo 1 > \"$HERO_OUTPUT_DIR/a\"";
    let why = "the file `big.bin` is not kept: it has 2000 bytes, with the files before it more than \
               job.files_size_max (1024); for larger files set artifacts.dir, see hero.toml(5)";
    hero.run(&["exec", "-t", "bash", "--id", "a", "-e", script]).code(0).says(why);
    assert_eq!(field(&redis, "a", "files_not_kept").as_deref(), Some(why));
    let listed = hero.run(&["job", "files", "a"]).code(0);
    assert!(listed.stdout.contains("output") && listed.stderr.contains(why), "{listed:?}");
    let json = hero.run(&["--json", "job", "files", "a"]).code(0).stdout;
    assert!(json.contains(r#""files_not_kept":"the file"#), "{json}");
    assert!(hero.run(&["job", "show", "a"]).code(0).stdout.contains(why));
    assert!(hero.run(&["job", "logs", "a"]).code(0).stdout.contains(why));
    hero.run(&["exec", "-t", "bash", "--output-overflow", "fail", "-e", script])
        .code(1)
        .says(&format!("output too large: {why}"));
}

#[test]
fn log_over_its_bounds_has_its_begin_and_its_end() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let script = "seq 200000 >&2; sleep 1";
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", script]).code(0);
    until(&redis, "a", "finished");
    let log = hero.run(&["job", "logs", "a"]).code(0).stdout;
    assert!(log.starts_with("1\n2\n") && log.ends_with("\n199999\n200000\n"), "{}", log.len());
    assert!(log.contains("\nlog cut here: more than ") && log.contains("lines are missing here\n"));
}

#[test]
fn empty_log_of_a_short_job_points_to_its_output() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["exec", "-t", "bash", "--id", "a", "-e", "echo done"]).code(0);
    let log = hero.run(&["job", "logs", "a"]).code(0);
    assert_eq!(log.stdout, "");
    let said = "the log of job a is empty; its output: hero job output a";
    log.says(said);
    hero.run(&["job", "logs", "-f", "a"]).code(0).says(said);
}

#[test]
fn lines_of_a_log_stay_in_order_when_their_job_ends_while_earlier_ones_are_written() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").tasks(8).start();
    let ids: Vec<String> = (0..1000).map(|number| format!("j{number}")).collect();
    for id in &ids {
        redis.push_job("osis", id, "for n in 1..=4 { print(n); sleep(0.002) } print(5); ()");
    }
    until(&redis, &ids[999], "finished");
    wait_until("all have ended", || {
        ids.iter().all(|id| field(&redis, id, "status").as_deref() == Some("finished"))
    });
    for id in &ids {
        let log: StreamRangeReply = redis.ask(&format!("XRANGE {} - +", keys::log(id)));
        let line = |entry: &StreamId| entry.get::<String>("line").expect("a line");
        let lines: Vec<String> = log.ids.iter().map(line).collect();
        assert_eq!(lines, ["1", "2", "3", "4", "5"], "{id}");
    }
}

#[test]
fn log_of_a_retried_job_shows_where_an_attempt_begins() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retry_backoff", "\"1ms\"");
    let (_bash, _supervisor) = (hero.actor("bash-default-1").start(), hero.supervisor().start());
    let words =
        ["submit", "-t", "bash", "--id", "a", "--retries", "1", "-e", "echo bad >&2; exit 3"];
    hero.run(&words).code(0);
    until(&redis, "a", "error");
    let log = hero.run(&["job", "logs", "a"]).code(0).stdout;
    let told = "bad\nattempt 1 failed: exit code 3: bad; the next one in ";
    assert!(log.starts_with(told) && log.ends_with("\nattempt 2 of 2 begins\nbad\n"), "{log}");
    let exec = ["exec", "-t", "bash", "--retries", "1", "-e", "exit 3"];
    hero.run(&exec)
        .code(3)
        .says("attempt 1 failed: exit code 3")
        .says("failed after 2 attempts: exit code 3");
    let slow = ["exec", "-t", "bash", "--retries", "0", "--timeout", "200ms", "-e", "sleep 60"];
    hero.run(&slow).code(1).says("timeout after 200ms: --timeout gives it longer");
}

#[test]
fn value_of_a_variable_with_the_name_of_a_secret_is_masked_wherever_a_person_reads_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let words = ["exec", "-t", "bash", "--env", "MY_PASSWORD=geheim", "--id"];
    let run = |id: &str, script: &str| hero.run(&[&words[..], &[id, "-e", script]].concat());
    run("a", "echo \"it is $MY_PASSWORD\"").code(0).stdout("it is ***\n");
    run("b", "echo \"no $MY_PASSWORD\" >&2; exit 1").code(1).says("no ***");
    assert!(!field(&redis, "b", "error").expect("an error").contains("geheim"));
    let shown = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(shown.contains(r#"{"MY_PASSWORD":"***"}"#) && !shown.contains("geheim"), "{shown}");
    for name in ["PASSWORD", "Password", "PGPASSWORD", "TOKEN", "github_token", "SECRET"] {
        let (given, script) = (format!("{name}=geheim"), format!("echo \"${name}\""));
        let words = ["exec", "-t", "bash", "--env", &given, "-e", &script];
        hero.run(&words).code(0).stdout("***\n");
    }
}

#[test]
fn exec_does_not_repeat_the_standard_error_of_a_failed_script() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let script = "echo one >&2; echo two >&2; exit 3";
    let said = hero.run(&["exec", "-t", "bash", "--id", "a", "-e", script]).code(3).stderr;
    assert_eq!(said, "one\ntwo\nhero: job a failed: exit code 3\n");
}

#[test]
fn output_through_a_helper_process_is_complete() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let _sal = hero.actor("sal-default-1").start();
    let script = "set -e; exec > >(tee -a \"$HOME/run.log\") 2>&1; echo 'step 1'; echo RESULT=42";
    for _ in 0..10 {
        hero.run(&["exec", "-t", "bash", "-e", script]).code(0).stdout("step 1\nRESULT=42\n");
    }
    let failing = format!("{script}; cat /nonexistent");
    hero.run(&["exec", "-t", "bash", "-e", &failing]).code(1).says("/nonexistent: No such file");
    let through = "run_command(\"exec > >(sed 's/^/> /'); echo through\").stdout";
    hero.run(&["exec", "-t", "sal", "-e", through]).code(0).stdout("> through\n");
}

#[test]
fn process_that_holds_the_output_of_an_ended_script_is_killed_and_named() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let script = "sleep 600 & sleep 600 & echo done";
    hero.run(&["exec", "-t", "bash", "--id", "a", "-e", script]).code(0).stdout("done\n");
    let log = hero.run(&["job", "logs", "a"]).code(0).stdout;
    let said =
        "killed after the end of the script, as they still held its output: sleep (2 processes); ";
    assert!(log.lines().last().is_some_and(|line| line.starts_with(said)), "{log}");
    let quiet = "sleep 600 > /dev/null 2>&1 & echo done";
    hero.run(&["exec", "-t", "bash", "--id", "b", "-e", quiet]).code(0).stdout("done\n");
    assert_eq!(hero.run(&["job", "logs", "b"]).code(0).stdout, "", "it does not hold the output");
}

#[test]
fn error_of_a_failed_job_is_its_reason_and_groups_and_search_find_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let noise = "for n in {1..20}; do echo \"warning: option $n is old\" >&2; done";
    for (id, reason, code) in
        [("a", "cp: disk full", 3), ("b", "curl: bad certificate", 3), ("c", "cp: disk full", 4)]
    {
        let script = format!("{noise}; echo '{reason}' >&2; exit {code}");
        let ran = hero.run(&["exec", "-t", "bash", "--id", id, "-e", &script]).code(code);
        assert!(
            ran.stderr.ends_with(&format!("job {id} failed: exit code {code}\n")),
            "{}",
            ran.stderr
        );
        let error = field(&redis, id, "error").expect("an error");
        assert!(error.starts_with(&format!("exit code {code}: {reason}\nwarning: ")), "{error}");
    }
    let groups = hero.run(&["job", "errors"]).code(0).stdout;
    for kind in [
        "exit code 3: cp: disk full",
        "exit code 3: curl: bad certificate",
        "exit code 4: cp: disk full",
    ] {
        assert!(groups.contains(kind), "{kind}: {groups}");
    }
    let ids = |text: &str| {
        let found = hero.run(&["--json", "job", "list", "--error", text]).code(0).stdout;
        let found: serde_json::Value = serde_json::from_str(&found).expect("one document");
        let jobs = found["jobs"].as_array().expect("a list").iter();
        let mut ids: Vec<String> =
            jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids("disk full"), ["a", "c"]);
    assert_eq!(ids("option 20 is old"), ["a", "b", "c"], "the whole text is searched");
}

#[test]
fn kept_files_are_named_by_exec() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let script = "echo 1 > \"$HERO_OUTPUT_DIR/a.csv\"; echo 2 > \"$HERO_OUTPUT_DIR/b.csv\"";
    let ran = hero.run(&["exec", "-t", "bash", "--id", "a", "-e", script]).code(0);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("", "hero: kept a.csv, b.csv: hero job files a\n")
    );
    let killed = hero.run(&["exec", "-t", "bash", "-e", "kill -TERM $$"]).code(143);
    assert!(killed.stderr.contains("killed by signal 15"), "{}", killed.stderr);
}

#[test]
fn output_of_a_running_job_is_printed_as_it_comes_and_once() {
    let redis = Redis::start();
    let folder = tempfile::tempdir().expect("a folder");
    let opened = format!("[{:?}]", folder.path());
    let hero = Hero::on(&redis).set("type.bash.sandbox.read", &opened);
    let _bash = hero.actor("bash-default-1").start();
    let go = folder.path().join("go");
    let wait = format!("until test -e {}; do sleep 0.05; done", go.display());
    let script = format!("echo first; printf 'second\\r\\n'; {wait}; echo third; printf end");
    let running = hero.begin(&["exec", "-t", "bash", "--timeout", "15m", "-e", &script]);
    wait_until("both lines are printed", || running.out() == "first\nsecond\n");
    std::fs::write(&go, "").expect("written");
    let ran = running.ends().code(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("first\nsecond\nthird\nend\n", ""));
}

#[test]
fn output_that_the_log_has_in_another_form_is_printed_once_and_as_it_is() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    for (script, expected) in [
        (
            "head -c 70000 /dev/zero | tr '\\0' a; echo; sleep 1.5; echo end",
            "a".repeat(70000) + "\nend\n",
        ),
        ("printf 'a\\\\xff\\n'; sleep 1.5; echo end", "a\\xff\nend\n".to_owned()),
    ] {
        let ran = hero.run(&["exec", "-t", "bash", "-e", script]).code(0);
        assert_eq!(ran.stdout.len(), expected.len(), "{script}");
        assert_eq!(ran.stdout, expected, "{script}");
    }
}
