//! Times in the life of a job: outputs that others wait for, jobs that start too late, jobs that replace each other.

use std::fs;

use crate::support::{Hero, Redis, keys, wait_until};

use super::{field, until};

/// Returns the time of the next look at a job that is kept for others.
fn look(redis: &Redis, id: &str) -> Option<f64> {
    redis.score(&keys::prefix("AWAITED"), id)
}

/// Waits until a supervisor has looked at a kept job once more.
#[track_caller]
fn until_looked_at(redis: &Redis, id: &str) {
    let before = look(redis, id);
    assert!(before.is_some(), "{id} is not kept");
    wait_until("a supervisor looks at the job", || look(redis, id) > before);
}

#[track_caller]
fn until_gone(redis: &Redis, id: &str) {
    wait_until(&format!("job {id} has expired"), || field(redis, id, "status").is_none());
    assert_eq!(look(redis, id), None);
    assert!(redis.keys(&keys::files(id)).is_empty(), "its files go with it");
}

#[test]
fn log_says_which_prerequisite_is_gone_without_its_output() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "--delay", "1h", "-e", "42"]).code(0);
    let script = "INPUTS.values()[0].type_of()";
    hero.run(&["submit", "-t", "osis", "--id", "b", "--after-any", "a", "-e", script]).code(0);
    hero.run(&["job", "delete", "a"]).code(0);
    let _actor = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "b"]).code(0).stdout("()\n");
    let log = hero.run(&["job", "logs", "b"]).code(0).stdout;
    assert!(log.contains("prerequisite a is gone with its output"), "{log}");
}

#[test]
fn output_and_files_of_a_prerequisite_outlive_its_retention_while_jobs_wait() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).quick_sweeps().set("type.later.engine", "\"command\"");
    let hero = hero.set("type.later.command", "[\"/bin/bash\", \"{script}\"]");
    let _supervisor = hero.supervisor().start();
    let bash = hero.actor("bash-default-1").start();
    let make = "echo made > \"$HERO_OUTPUT_DIR/out.txt\"; echo 42";
    let submit = |id: &str, of: &str, more: &[&str], script: &str| {
        let args = ["submit", "--id", id, "-t", of, "-e", script];
        hero.run(&[&args, more].concat()).code(0);
    };
    submit("a", "bash", &["--retention", "1s"], make);
    let uses = "cat \"$HERO_INPUTS\"; cat \"$HERO_INPUT_DIR/a/out.txt\"";
    submit("b", "later", &["--after", "a"], uses);
    until(&redis, "a", "finished");
    submit("late", "later", &["--after", "a"], uses);
    submit("any", "later", &["--after-any", "a"], uses);
    until_looked_at(&redis, "a");
    until_looked_at(&redis, "a");
    assert!(redis.ttl(&keys::job("a")) > 3600, "it stays if no supervisor looks");
    hero.run(&["job", "delete", "b"]).code(0);
    until_looked_at(&redis, "a");
    drop(bash);
    let _later = hero.actor("later-default-1").start();
    for id in ["late", "any"] {
        let done = hero.run(&["job", "wait", id]).code(0);
        done.stdout("{\"a\":\"42\"}made\n");
    }
    until_gone(&redis, "a");
}

#[test]
fn prerequisite_without_waiting_jobs_goes_at_its_time() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "--id", "a", "-t", "osis", "--retention", "1s", "-e", "1"]).code(0);
    hero.run(&["exec", "--id", "b", "-t", "osis", "--after", "a", "-e", "INPUTS.a"]).code(0);
    until_gone(&redis, "a");
}

#[test]
fn job_whose_prerequisite_was_deleted_fails_and_names_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "--id", "a", "-t", "osis", "-e", "1"]).code(0);
    drop(osis);
    hero.run(&["submit", "--id", "b", "-t", "osis", "--after", "a", "-e", "INPUTS.a"]).code(0);
    hero.run(&["submit", "--id", "any", "-t", "osis", "--after-any", "a", "-e", "`${INPUTS.a}`"])
        .code(0);
    hero.run(&["job", "delete", "a"]).code(0);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "b"]).code(1).says("prerequisites include a, which is gone");
    hero.run(&["job", "wait", "any"]).code(0);
}

#[test]
fn callback_of_a_batch_gets_its_counts_ids_and_outputs_though_it_starts_late() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let osis = hero.actor("osis-default-1").start();
    let line = |id: &str, script: &str| {
        format!(r#"{{"id":"{id}","script_type":"osis","script":"{script}","retention":1}}"#)
    };
    let lines = [line("a", "40 + 2"), line("b", "throw 1"), line("c", "7")].join("\n");
    fs::write(redis.folder().join("b.jsonl"), lines).expect("writing");
    let python = "import hero\nall = hero.inputs\nbatch = all['batch']\n\
                  print(batch['jobs'], batch['finished'], batch['failed'], batch['ids'], all['a'], all['b'], all['c'])";
    fs::write(redis.folder().join("end.py"), python).expect("writing");
    hero.run(&["submit", "--batch", "b.jsonl", "--id", "all", "--on-end", "end.py"]).code(0);
    let callback = || redis.field(&(keys::prefix("GRAPH") + "all"), "on_end_job");
    wait_until("its callback is submitted", || callback().is_some());
    let id = callback().expect("it was there");
    for job in ["a", "b"] {
        until_looked_at(&redis, job);
    }
    drop(osis);
    let _python = hero.actor("python-default-1").start();
    let done = hero.run(&["job", "wait", &id]).code(0);
    done.stdout("3 2 1 ['a', 'b', 'c'] 42 None 7\n");
    until_gone(&redis, "a");
}

#[test]
fn line_of_a_batch_names_its_script_and_inputs_relative_to_the_batch() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let folder = redis.folder().join("below");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("sum.sh"), "cat \"$HERO_INPUT_DIR\"/*").expect("writing");
    fs::write(folder.join("data"), "some\n").expect("writing");
    let lines = [
        r#"{"id":"a","file":"sum.sh","input":"data"}"#,
        r#"{"id":"b","file":"sum.sh","input":["x=data"]}"#,
        r#"{"id":"c","file":"none.sh"}"#,
        r#"{"id":"d","file":"sum.sh","script":"1"}"#,
        r#"{"id":"e","file":"sum.sh","input":7}"#,
    ];
    fs::write(folder.join("b.jsonl"), lines.join("\n")).expect("writing");
    hero.run(&["submit", "--batch", "below/b.jsonl", "--ids"])
        .code(65)
        .stdout("a\nb\n")
        .says("below/b.jsonl:3: invalid job: file: no such file: below/none.sh")
        .says("below/b.jsonl:4: invalid job: file cannot be set beside script")
        .says("below/b.jsonl:5: invalid job: input does not name files");
    let _bash = hero.actor("bash-default-1").start();
    for id in ["a", "b"] {
        hero.run(&["job", "wait", id]).code(0).stdout("some\n");
    }
}

#[test]
fn job_that_no_actor_takes_in_time_ends_as_expired_and_its_dependents_fail() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let late = ["-t", "osis", "--expires", "1s", "-e", "1"];
    hero.run(&[&["submit", "--id", "a"], &late[..]].concat()).code(0);
    hero.run(&["submit", "--id", "b", "-t", "osis", "--after", "a", "-e", "1"]).code(0);
    hero.run(&[&["submit", "--id", "held", "--after", "stays"], &late[..]].concat()).code(65);
    hero.run(&["submit", "--id", "stays", "-t", "osis", "-e", "1"]).code(0);
    hero.run(&[&["submit", "--id", "held", "--after", "stays"], &late[..]].concat()).code(0);
    let line = r#"{"id":"c","script_type":"osis","script":"1","expires":1}"#;
    hero.run_with_input(&["submit", "--batch", "-"], line).code(0);
    let atomic = r#"{"id":"d","script_type":"osis","script":"1","expires":1}"#;
    hero.run_with_input(&["submit", "--batch", "-", "--all-or-none"], atomic).code(0);
    let graph = "[job.g]\nid = \"g\"\ntype = \"osis\"\nscript = \"1\"\nexpires = \"1s\"\n";
    fs::write(redis.folder().join("g.toml"), graph).expect("writing");
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    for id in ["a", "c", "d", "g", "held"] {
        let wait = hero.run(&["job", "wait", id]).code(1);
        wait.says("expired: it did not start within 1s");
    }
    hero.run(&["job", "wait", "b"]).code(1).says("prerequisite failed: a");
    assert_eq!(field(&redis, "stays", "status").as_deref(), Some("dispatched"));
    assert_eq!(redis.count("osis", "failed_expired"), 5);
    assert!(redis.members(&keys::prefix("EXPIRING")).is_empty());
}

#[test]
fn job_that_starts_in_time_does_not_expire() {
    let redis = Redis::start();
    let folder = redis.folder().display().to_string();
    let hero =
        Hero::on(&redis).quick_sweeps().set("type.bash.sandbox.read", &format!("[{folder:?}]"));
    let _supervisor = hero.supervisor().start();
    let expiring = || redis.members(&keys::prefix("EXPIRING"));
    let go = redis.folder().join("go");
    let script = format!("until test -e {}; do sleep 0.05; done; echo done", go.display());
    let expires = ["--expires", "1h", "-e", &script];
    hero.run(&[&["submit", "-t", "bash", "--id", "a"], &expires[..]].concat()).code(0);
    assert_eq!(expiring(), ["a"]);
    let _bash = hero.actor("bash-default-1").start();
    until(&redis, "a", "started");
    assert!(expiring().is_empty());
    // As if its time had come while it was being started.
    redis.put(&keys::prefix("EXPIRING"), 1, "a");
    wait_until("a supervisor has looked at it", || expiring().is_empty());
    fs::write(&go, "").expect("written");
    hero.run(&["job", "wait", "a"]).code(0).stdout("done\n");
}

#[test]
fn last_of_debounced_jobs_runs_and_at_the_latest_at_the_longest_wait() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let submit = |id: &str, more: &[&str]| {
        let args = ["submit", "-t", "osis", "--unique-key", "k", "--id", id, "-e", "1"];
        hero.run(&[&args, more].concat())
    };
    let [wait, most] = [["--debounce", "1h"], ["--debounce-max", "90m"]];
    let both = [wait, most].concat();
    submit("a", &both).code(0).stdout("a\n");
    submit("b", &both).code(0).stdout("b\n");
    until(&redis, "a", "error");
    assert_eq!(field(&redis, "a", "error").as_deref(), Some("replaced by job b"));
    let time = |id: &str, name: &str| -> jiff::Timestamp {
        field(&redis, id, name).expect("it is there").parse().expect("a time")
    };
    assert_eq!(time("b", "debounced_since"), time("a", "debounced_since"));
    // As if the first had come an hour ago.
    let since = time("b", "debounced_since") - jiff::SignedDuration::from_hours(1);
    redis.set_field(&keys::job("b"), "debounced_since", format!("{since:.3}"));
    submit("c", &both).code(0);
    let waits = time("c", "run_at").duration_since(time("c", "debounced_since"));
    assert_eq!(waits, jiff::SignedDuration::from_mins(90));
    submit("d", &["--debounce", "1ms"]).code(0);
    let _supervisor = hero.supervisor().start();
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "d"]).code(0).stdout("1\n");
    for (more, why) in [
        (&most[..], "needs debounce"),
        (&["--debounce", "2h", "--debounce-max", "90m"], "is shorter than debounce"),
        (&["--debounce", "2h", "--delay", "1h"], "cannot be set beside run_at"),
        (
            &["--debounce", "2h", "--on-duplicate", "reject"],
            "cannot be set beside this on_duplicate",
        ),
    ] {
        submit("x", more).code(65).says(why);
    }
    hero.run(&["submit", "-t", "osis", "-e", "1", "--debounce", "1s"])
        .code(65)
        .says("needs a unique key (--unique-key");
}

#[test]
fn debounced_job_does_not_get_lost_while_the_one_before_runs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let bash = hero.actor("bash-default-1").tasks(2).start();
    let submit = |id: &str, script: &str| {
        let more = ["--unique-key", "k", "--debounce", "1ms", "--id", id, "-e", script];
        hero.run(&[&["submit", "-t", "bash"], &more[..]].concat())
            .code(0)
            .stdout(&format!("{id}\n"));
    };
    submit("a", "sleep 1000");
    until(&redis, "a", "started");
    submit("b", "echo new");
    hero.run(&["job", "wait", "b"]).code(0).stdout("new\n");
    hero.run(&["job", "stop", "a"]).code(0);
    until(&redis, "a", "error");
    drop(bash);
}

#[test]
fn statistics_of_a_period_are_from_the_samples_of_supervisors() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["stats", "--since", "1h"]).code(66).says("no supervisor has kept a sample");
    let supervisor = hero.supervisor().start();
    let hours = keys::prefix("HOURS");
    wait_until("a sample is kept", || !redis.list(&hours).is_empty());
    drop(supervisor);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0);
    hero.run(&["exec", "-t", "osis", "-e", "throw 1"]).code(1);
    let counted = |args: &[&str]| {
        let done = hero.run(&[&["--json", "stats"], args].concat()).code(0);
        let stats: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
        let types = stats["types"].as_array().expect("types").clone();
        let osis = types.into_iter().find(|of| of["script_type"] == "osis").expect("osis");
        ["submitted", "finished", "failed"].map(|name| osis[name].as_u64().expect("a number"))
    };
    assert_eq!(counted(&["--since", "1h"]), [2, 1, 1]);
    // As if it had been kept two hours ago, and another one before the jobs of today.
    let sample = redis.list(&hours)[0].clone();
    let mut of: serde_json::Value = serde_json::from_str(&sample).expect("JSON");
    let now_us = of["at_us"].as_i64().expect("a time");
    let mut at = |hours_ago: i64, submitted: u64| {
        of["at_us"] = (now_us - hours_ago * 3_600_000_000).into();
        let mut numbers = vec![submitted];
        numbers.resize(60, 0);
        of["types"] = serde_json::json!({ "osis": numbers });
        of.to_string()
    };
    let samples = [at(5, 0), at(4, 7), at(3, 10)];
    redis.push_front(&hours, &samples.iter().rev().collect::<Vec<_>>());
    assert_eq!(counted(&["--since", "4h30m", "--until", "3h30m"])[0], 7);
    assert_eq!(counted(&["--since", "270m", "--until", "150m"])[0], 10);
}

#[test]
fn jobs_are_listed_by_time_and_found_by_machine_actor_and_end() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "-t", "bash", "--id", "waits", "-e", "1"]).code(0);
    hero.run(&["exec", "-t", "osis", "--id", "done", "-e", "1"]).code(0);
    hero.run(&["exec", "-t", "osis", "--id", "failed", "-e", "throw 1"]).code(1);
    hero.run(&["submit", "-t", "bash", "--id", "last", "-e", "1"]).code(0);
    let ids = |args: &[&str]| -> Vec<String> {
        let listed = hero.run(&[&["job", "list"], args].concat()).code(0).stdout;
        let ids = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        ids.map(str::to_owned).collect()
    };
    assert_eq!(ids(&[]), ["last", "failed", "done", "waits"]);
    assert_eq!(ids(&["--limit", "2"]), ["last", "failed"]);
    let host = field(&redis, "done", "hostname").expect("the machine is noted");
    for filter in [["--host", &host], ["--actor", "osis:default:1"], ["--ended-since", "1h"]] {
        assert_eq!(ids(&filter), ["failed", "done"], "{filter:?}");
    }
    for filter in [["--host", "elsewhere"], ["--actor", "osis:default:2"], ["--ended-until", "1h"]]
    {
        assert!(ids(&filter).is_empty(), "{filter:?}");
    }
    let script = "import time\nwhile True: time.sleep(1)";
    let python = hero.actor("python-default-1").start();
    hero.run(&["submit", "-t", "python", "--id", "runs", "-e", script]).code(0);
    wait_until("it runs there", || ids(&["--host", &host]).contains(&"runs".to_owned()));
    assert!(ids(&["--host", "elsewhere"]).is_empty());
    drop(python);
}

#[test]
fn job_that_has_not_ended_in_time_is_late_by_every_entrance_and_runs_on() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let late = ["-t", "osis", "--expect-within", "100ms", "-e", "1"];
    hero.run(&[&["submit", "--id", "a"], &late[..]].concat()).code(0);
    hero.run(&[&["submit", "--id", "later", "--delay", "1h"], &late[..]].concat()).code(0);
    hero.run(&["submit", "--id", "any", "-t", "osis", "-e", "1"]).code(0);
    hero.run(&[&["submit", "--id", "waits", "--after", "any"], &late[..]].concat()).code(0);
    let line = r#"{"id":"c","script_type":"osis","script":"1","expect_within":0.1}"#;
    hero.run_with_input(&["submit", "--batch", "-"], line).code(0);
    let atomic = r#"{"id":"d","script_type":"osis","script":"1","expect_within":0.1}"#;
    hero.run_with_input(&["submit", "--batch", "-", "--all-or-none"], atomic).code(0);
    let graph = "[job.g]\nid = \"g\"\ntype = \"osis\"\nscript = \"1\"\nexpect_within = \"100ms\"\n";
    fs::write(redis.folder().join("g.toml"), graph).expect("writing");
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    // They were late while no supervisor ran, too.
    let supervisors = [hero.supervisor().start(), hero.supervisor().start()];
    let all = ["a", "c", "d", "g", "waits"];
    for id in all {
        wait_until(&format!("{id} is late"), || field(&redis, id, "late_at").is_some());
        assert_ne!(field(&redis, id, "status").as_deref(), Some("error"));
    }
    let listed = || {
        let listed = hero.run(&["job", "list", "--late", "--json"]).code(0).stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
        let jobs = listed["jobs"].as_array().expect("jobs").clone();
        let mut ids: Vec<String> =
            jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(listed(), all);
    assert!(hero.run(&["job", "list"]).code(0).stdout.contains("dispatched, late"));
    assert!(hero.run(&["job", "show", "a", "--json"]).code(0).stdout.contains("late_at"));
    let told =
        || supervisors.iter().map(|of| of.err().matches("job a is late").count()).sum::<usize>();
    wait_until("one supervisor has said so", || told() > 0);
    let _osis = hero.actor("osis-default-1").start();
    for id in all {
        hero.run(&["job", "wait", id]).code(0);
    }
    assert_eq!(listed(), all, "that they were late is known");
    assert!(!hero.run(&["job", "list"]).code(0).stdout.contains(", late"));
    assert_eq!(told(), 1);
    assert_eq!(redis.members(&keys::prefix("EXPECTED")), ["late later"]);
    hero.run(&["job", "stop", "later"]).code(0);
    hero.run(&["job", "delete", "later"]).code(0);
    assert!(redis.members(&keys::prefix("EXPECTED")).is_empty());
}

#[test]
fn attempt_that_runs_for_long_is_slow_until_its_end() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _bash = hero.actor("bash-default-1").start();
    let job = ["submit", "--id", "s", "-t", "bash", "--slow-after", "100ms", "-e", "sleep 60"];
    hero.run(&job).code(0);
    wait_until("it is slow", || field(&redis, "s", "slow_at").is_some());
    assert!(hero.run(&["job", "list"]).code(0).stdout.contains("started, slow"));
    hero.run(&["job", "stop", "s"]).code(0);
    hero.run(&["job", "wait", "s"]).code(1);
    assert!(!hero.run(&["job", "list"]).code(0).stdout.contains("slow"));
    hero.run(&["exec", "-t", "bash", "--id", "fast", "--slow-after", "1h", "-e", "true"]).code(0);
    assert!(field(&redis, "fast", "slow_at").is_none());
}
