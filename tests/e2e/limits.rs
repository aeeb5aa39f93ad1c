//! Scripts that exceed a limit are stopped; the actor goes on and runs the next job.

use crate::support::{Hero, Process, Redis, keys, wait_until};

/// Runs a script that must fail with this message, then a script that must succeed.
#[track_caller]
fn fails_alone(hero: &Hero, kind: &str, script: &str, timeout: &str, says: &str) {
    let next = if kind == "python" { "print(1)" } else { "1" };
    hero.run(&["exec", "-t", kind, "--timeout", timeout, "-e", script]).code(1).says(says);
    hero.run(&["exec", "-t", kind, "-e", next]).code(0).stdout("1\n");
}

fn started(hero: &Hero, unit: &str) -> Process {
    hero.actor(unit).tasks(1).start()
}

#[test]
fn endless_loop_is_timed_out() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = started(&hero, "osis-default-1");
    fails_alone(&hero, "osis", super::ENDLESS, "200ms", "timeout");
}

#[test]
fn process_that_is_timed_out_is_stopped_with_its_children() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = started(&hero, "python-default-1");
    let pid_file = redis.folder().join("pid");
    let script = format!(
        "import os, subprocess, signal\n\
         signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         child = subprocess.Popen(['sleep', '1000'])\n\
         open({pid_file:?}, 'w').write(str(child.pid))\n\
         child.wait()"
    );
    fails_alone(&hero, "python", &script, "1s", "timeout");
    let pid = std::fs::read_to_string(pid_file).expect("the script has run");
    wait_until("the grandchild is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
}

#[test]
fn script_that_allocates_too_much_fails_with_the_name_of_its_limit() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = started(&hero, "osis-default-1");
    let string = "let s = \"xxxxxxxxxxxxxxxx\"; loop { s += s; }";
    fails_alone(&hero, "osis", string, "20s", "too long");
    let array = "let a = []; loop { a.push(1); }";
    fails_alone(&hero, "osis", array, "20s", "too large");
}

/// One script holds a few large values when it ends, one many small ones, one some of a size between.
#[test]
fn memory_of_a_script_is_given_back_when_it_ends() {
    const SCRIPTS: [&str; 3] = [
        "fn grow(n) { let s = \"x\"; while s.bytes < 4200000 { s += s; } if n > 0 { grow(n - 1) } s.bytes } grow(40)",
        "fn grow(n) { let m = #{}; for i in 0..1500 { m[`k${i}`] = `the value ${i} of the map`; } if n > 0 { grow(n - 1) } 1 } grow(60)",
        "fn grow(n) { let a = []; for i in 0..90 { let s = \"x\"; while s.bytes < 60000 { s += s; } a.push(s); } if n > 0 { grow(n - 1) } 1 } grow(40)",
    ];
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").tasks(4).start();
    let jobs: Vec<String> = (0..6).map(|number| format!("bomb-{number}")).collect();
    for (id, script) in jobs.iter().zip(SCRIPTS.iter().cycle()) {
        redis.push_job("osis", id, script);
    }
    for id in &jobs {
        wait_until(&format!("job {id} has ended"), || {
            let status = super::field(&redis, id, "status");
            ["finished", "error"].contains(&status.unwrap_or_default().as_str())
        });
    }
    wait_until("the actor is small again", || resident_bytes(&osis) < 150 << 20);
}

fn resident_bytes(process: &Process) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", process.pid()));
    let statm = statm.expect("the process lives");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("a number of pages") * 4096
}

#[test]
fn endless_recursion_fails_at_the_depth_limit() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = started(&hero, "osis-default-1");
    fails_alone(&hero, "osis", "fn f(n) { f(n + 1) } f(0)", "20s", "tack overflow");
}

/// The fork bomb is bounded, so that it ends even if nothing stops it.
#[test]
fn fork_bomb_is_stopped_with_all_its_processes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = started(&hero, "python-default-1");
    let mark = format!("bomb-{}", std::process::id());
    let script = format!(
        "import ctypes, os, time\n\
         for _ in range(5):\n    os.fork()\n\
         ctypes.CDLL(None).prctl(15, {mark:?}[:15].encode())\n\
         time.sleep(60)"
    );
    fails_alone(&hero, "python", &script, "1500ms", "timeout");
    wait_until("none of the bomb is left", || alive(&mark[..mark.len().min(15)]) == 0);
}

/// Returns the number of processes with a name.
fn alive(name: &str) -> usize {
    let processes = std::fs::read_dir("/proc").expect("this is Linux");
    processes
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok())
        .filter(|comm| comm.trim_end() == name)
        .count()
}

#[test]
fn endless_output_is_stopped_at_the_size_limit() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("job.output_size_max", "\"64KiB\"")
        .set("job.output_overflow", "\"fail\"");
    let _python = started(&hero, "python-default-1");
    let _osis = started(&hero, "osis-default-1");
    fails_alone(&hero, "python", "while True: print('x' * 1000)", "20s", "output");
    let osis = "let s = \"\"; for i in 0..9000 { s += \"xxxxxxxxxx\"; } s";
    fails_alone(&hero, "osis", osis, "20s", "output");
}

#[test]
fn endless_log_is_cut_off_and_the_job_finishes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.log_size_max", "\"64KiB\"");
    let _osis = started(&hero, "osis-default-1");
    let script = "for i in 0..20000 { print(\"xxxxxxxxxxxxxxxxxxxxxxxxx\"); } 1";
    hero.run(&["exec", "-t", "osis", "--id", "a", "-e", script]).code(0).stdout("1\n");
    let bytes: usize = redis.ask(&format!("MEMORY USAGE {} SAMPLES 0", keys::log("a")));
    assert!(bytes < 1 << 20, "the log takes {bytes} bytes");
}

#[test]
fn osis_script_reaches_no_file_and_no_program() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = started(&hero, "osis-default-1");
    for script in
        ["file_read(\"/etc/passwd\")", "run(\"id\")", "env_get(\"PATH\")", "import \"a\" as a; 1"]
    {
        hero.run(&["exec", "-t", "osis", "-e", script]).code(1);
    }
}

#[test]
fn script_above_the_size_limit_is_rejected_by_client_and_actor() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.script_size_max", "\"1KiB\"");
    let _osis = started(&hero, "osis-default-1");
    let long = format!("\"{}\"", "x".repeat(2000));
    hero.run(&["exec", "-t", "osis", "-e", &long]).code(65);
    redis.push_job("osis", "a", &long);
    super::until(&redis, "a", "error");
    let error = super::field(&redis, "a", "error").unwrap_or_default();
    assert!(error.starts_with("invalid job: script "), "{error}");
}

#[test]
fn limit_key_and_secret_that_the_configuration_does_not_know_are_noted_at_the_submission() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let words = ["submit", "-t", "bash", "--limit-key", "api", "--secret", "db", "-e", "1"];
    let said = hero.run(&words).code(0).stderr;
    for note in
        ["uses the limit key api: `[limit.NAME]`", "no job the secret db: `[secrets.allow.db]`"]
    {
        assert!(said.contains(note), "{said}");
    }
    let limited = Hero::on(&redis).set("limit.any.per", "\"key\"").set("limit.any.running", "1");
    let said =
        limited.run(&["submit", "-t", "bash", "--limit-key", "api", "-e", "1"]).code(0).stderr;
    assert!(!said.contains("limit key"), "{said}");
}
