//! Jobs of every script type, from the command line to their output.

use crate::support::{Hero, Redis, keys};

use super::{field, until};

#[test]
fn script_of_every_type_returns_its_output() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.bash.engine", "\"command\"")
        .set("type.bash.command", r#"["/bin/bash", "{script}"]"#);
    let units = ["osis-default-1", "sal-default-1", "python-default-1", "bash-default-1"];
    let _units = units.map(|unit| hero.actor(unit).start());
    for (kind, script, output) in [
        ("osis", "40 + 2", "42\n"),
        ("osis", "#{a: [1, 2]}", "{\"a\":[1,2]}\n"),
        ("sal", "run_command(\"echo hi\").stdout", "hi\n"),
        ("python", "print('x' * 3)", "xxx\n"),
        ("bash", "echo $((6 * 7))", "42\n"),
    ] {
        hero.run(&["exec", "-t", kind, "-e", script]).code(0).stdout(output);
    }
}

#[test]
fn job_shows_resource_usage_and_the_limit_that_it_exceeded() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.sandbox.cpu", "\"1s\"");
    let _units = ["osis-default-1", "python-default-1"].map(|unit| hero.actor(unit).start());
    let shown = |id: &str| {
        let shown = hero.run(&["job", "show", "--json", id]).code(0).stdout;
        serde_json::from_str::<serde_json::Value>(&shown).expect("one document")
    };
    let large = "print(len(bytearray(b'x') * (200 << 20)) and 1)";
    hero.run(&["exec", "-t", "python", "--id", "a", "--name", "large", "-e", large]).code(0);
    let used = shown("a");
    assert!(used["cpu_time"].as_f64().is_some_and(|seconds| seconds > 0.0), "{used}");
    assert!(used["memory_peak"].as_u64().is_some_and(|bytes| bytes > 200 << 20), "{used}");
    assert!(used.get("limit").is_none() && used.get("signal").is_none(), "{used}");
    hero.run(&["exec", "-t", "python", "--id", "small", "-e", "pass"]).code(0);
    let largest = hero.run(&["job", "list", "--sort", "memory", "--limit", "1"]).code(0).stdout;
    assert!(
        largest.contains("MEMORY") && largest.contains("\na ") && !largest.contains("small"),
        "{largest}"
    );
    let by_name = hero.run(&["stats", "--by", "name"]).code(0).stdout;
    assert!(by_name.contains("MEMORY") && by_name.contains("\nlarge "), "{by_name}");
    hero.run(&["exec", "-t", "python", "--id", "b", "-e", "while True: pass"]).code(152);
    let longest = hero.run(&["job", "list", "--sort", "cpu", "--json"]).code(0).stdout;
    let longest: serde_json::Value = serde_json::from_str(&longest).expect("one document");
    assert_eq!(longest["jobs"][0]["id"], "b", "{longest}");
    let used = shown("b");
    assert_eq!((&used["limit"], &used["signal"]), (&"cpu".into(), &24.into()), "{used}");
    hero.run(&["exec", "-t", "osis", "--id", "c", "-e", "1"]).code(0);
    assert!(shown("c").get("cpu_time").is_none(), "no process ran");
}

#[test]
fn job_of_a_process_is_found_by_its_pid() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.warm", "true");
    let _units = ["python-default-1", "bash-default-1"].map(|unit| hero.actor(unit).start());
    let warm =
        "import os, sys, time\nprint(os.getpid(), file=sys.stderr, flush=True)\ntime.sleep(600)";
    for (kind, id, script) in
        [("python", "warm", warm), ("bash", "left", "setsid sleep 600 & echo $! >&2; wait")]
    {
        hero.run(&["submit", "-t", kind, "--id", id, "-e", script]).code(0);
        let pid = || {
            let logged = hero.run(&["job", "logs", id]);
            let words = format!("{} {}", logged.stdout, logged.stderr);
            words.split_whitespace().find_map(|word| word.parse::<u32>().ok())
        };
        crate::support::wait_until("it tells its pid", || pid().is_some());
        let pid = pid().expect("a number").to_string();
        let found = hero.run(&["job", "find", "--json", "--pid", &pid]).code(0).stdout;
        let found: serde_json::Value = serde_json::from_str(&found).expect("one document");
        assert_eq!(found["id"], id, "{found}");
        hero.run(&["job", "stop", id]).code(0);
    }
    let own = std::process::id().to_string();
    hero.run(&["job", "find", "--pid", &own]).code(66).says("belongs to no job");
}

#[test]
fn memory_of_a_small_process_is_not_that_of_the_actor() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    for (id, script) in [("short", "echo"), ("long", "sleep 1.2")] {
        hero.run(&["exec", "-t", "bash", "--id", id, "-e", script]).code(0);
        let peak: Option<u64> =
            super::field(&redis, id, "memory_peak").and_then(|peak| peak.parse().ok());
        // A bash takes about 4 MiB.
        assert!(peak.is_none_or(|bytes| bytes < 12 << 20), "{id}: {peak:?}");
        assert!(id == "short" || peak.is_some(), "it was measured");
    }
}

#[test]
fn resource_usage_of_an_attempt_replaces_that_of_the_one_before() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = [hero.actor("python-default-1"), hero.supervisor()].map(|unit| unit.start());
    // Only the first attempt finds no mark, and kills itself.
    let mark = redis.folder().join("mark");
    let script = format!(
        "import os, signal\nif not os.path.exists({mark:?}):\n    open({mark:?}, 'w')\n    \
         os.kill(os.getpid(), signal.SIGKILL)\nprint('done')"
    );
    hero.run(&["exec", "-t", "python", "--id", "a", "--retries", "1", "-e", &script])
        .code(0)
        .stdout("done\n");
    assert_eq!(super::field(&redis, "a", "signal"), None);
    assert!(super::field(&redis, "a", "cpu_time").is_some());
}

#[test]
fn job_gets_its_ids_and_only_its_own_variables() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let _python = hero.actor("python-default-1").start();
    let who = ["--id", "j-1", "--caller", "me", "--context", "here", "--env", "A=b c"];
    let script = "`${JOB_ID} ${CALLER_ID} ${CONTEXT_ID} ${ENV.A}`";
    let exec = [&["exec", "-t", "osis", "-e", script], &who[..]].concat();
    hero.run(&exec).code(0).stdout("j-1 me here b c\n");
    let script = "import os; print(os.environ['A'], os.environ['HERO_JOB_ID'], \
                  os.environ['HERO_CALLER_ID'], 'HERO_CONFIG' in os.environ)";
    let exec = [&["exec", "-t", "python", "-e", script, "--id", "j-2"], &who[2..]].concat();
    hero.run(&exec).code(0).stdout("b c j-2 me False\n");
}

#[test]
fn log_of_a_job_goes_to_standard_error_and_its_output_to_standard_output() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let _python = hero.actor("python-default-1").start();
    let script = "print(\"first\"); debug(2); \"out\"";
    let done = hero.run(&["exec", "-t", "osis", "-e", script, "--id", "a"]).code(0).stdout("out\n");
    assert!(done.stderr.starts_with("first\n"), "{}", done.stderr);
    let script = "import sys; print('log', file=sys.stderr); print('out')";
    hero.run(&["exec", "-t", "python", "-e", script]).code(0).stdout("out\n").says("log\n");
    let logged = hero.run(&["job", "logs", "a"]).code(0);
    assert!(logged.stdout.contains("first\n"), "{}", logged.stdout);
}

#[test]
fn script_that_does_not_compile_fails_with_line_and_column() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "let x = 1;\nlet = 2;"])
        .code(1)
        .stdout("")
        .says("line 2, position 5");
    hero.run(&["exec", "-t", "osis", "-e", "1 +\n  nothing"]).code(1).says("line 2, position 3");
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
}

#[test]
fn failed_process_gives_the_job_its_exit_code() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    hero.run(&["exec", "-t", "python", "-e", "raise SystemExit(7)", "--id", "a"]).code(7);
    assert_eq!(super::field(&redis, "a", "exit_code").as_deref(), Some("7"));
    assert_eq!(super::field(&redis, "a", "status").as_deref(), Some("error"));
}

#[test]
fn script_is_read_from_a_file_or_from_standard_input() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    std::fs::write(redis.folder().join("a.rhai"), "7 * 6").expect("writing a script");
    hero.run(&["exec", "a.rhai"]).code(0).stdout("42\n");
    hero.run_with_input(&["exec", "-t", "osis", "-"], "6 * 7").code(0).stdout("42\n");
}

#[test]
fn targeted_job_runs_on_its_instance_or_in_its_group() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = ["osis-default-1", "osis-io-1", "osis-io-2"].map(|unit| hero.actor(unit).start());
    for (id, target, actor) in [
        ("a", vec!["-g", "io", "-i", "2"], "osis:io:2"),
        ("b", vec!["-i", "1"], "osis:default:1"),
        ("c", vec!["-g", "io"], "osis:io:"),
    ] {
        let exec = [vec!["exec", "-t", "osis", "-e", "1", "--id", id], target].concat();
        hero.run(&exec).code(0);
        let ran = super::field(&redis, id, "actor").expect("it ran somewhere");
        assert!(ran.starts_with(actor), "{id} ran on {ran}");
    }
}

#[test]
fn job_waits_for_its_prerequisite() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let first = hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0).stdout;
    let second = ["submit", "-t", "osis", "-e", "2", "--id", "b", "--after", &first[..8]];
    hero.run(&second).code(0).stdout("b\n");
    super::until(&redis, "b", "waiting_for_prerequisites");
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "b"]).code(0).stdout("2\n");
}

#[test]
fn job_after_any_runs_after_a_failed_prerequisite_and_one_after_it_fails() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "-e", "throw \"no\"", "--id", "a"]).code(0);
    hero.run(&["submit", "-t", "osis", "-e", "\"swept\"", "--id", "b", "--after-any", "a"]).code(0);
    hero.run(&["submit", "-t", "osis", "-e", "2", "--id", "c", "--after", "a"]).code(0);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "b"]).code(0).stdout("swept\n");
    hero.run(&["job", "wait", "c"]).code(1).says("prerequisite failed: a");
    let nobody = ["submit", "-t", "osis", "-e", "1", "--after-any", "nobody"];
    hero.run(&nobody).code(65).says("prerequisite nobody does not exist");
}

#[test]
fn job_is_kept_for_its_retention() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retention_max", "\"7d\"");
    let _osis = hero.actor("osis-default-1").start();
    let exec = |id: &str, kept: &str| {
        hero.run(&["exec", "-t", "osis", "-e", "1", "--id", id, "--retention", kept])
    };
    exec("week", "7d").code(0);
    // Jobs that ended together are kept for up to an hour longer, so that they expire one by one.
    let kept_max_s = 7 * 86_400 + 3600;
    let ttl_s: i64 = redis.ttl(&keys::job("week"));
    assert!(ttl_s > 6 * 86_400 && ttl_s <= kept_max_s, "{ttl_s}");
    exec("more", "8d")
        .code(65)
        .says("--retention: `8d` is more than 7d, the limit job.retention_max");
    exec("soon", "0s").code(65).says("retention");
    // The hash of a foreign program is held to the same bound.
    redis.set_job("raw", "script 1 status dispatched retention 691200");
    redis.push(&keys::work("type:osis"), &["raw"]);
    hero.run(&["job", "wait", "raw"]).code(1).says("invalid job: retention");
    assert!(redis.ttl(&keys::job("raw")) <= kept_max_s);
}

#[test]
fn json_result_of_a_job_is_one_document() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let done =
        hero.run(&["--json", "exec", "-t", "osis", "-e", "print(1); 2", "--id", "a"]).code(0);
    let job: serde_json::Value = serde_json::from_str(&done.stdout).expect("one document");
    assert_eq!(
        (&job["id"], &job["status"], &job["output"]),
        (&"a".into(), &"finished".into(), &"2".into())
    );
    let failed = hero.run(&["--json", "exec", "-t", "osis", "-e", "throw \"no\""]).code(1);
    let job: serde_json::Value = serde_json::from_str(&failed.stdout).expect("one document");
    assert_eq!(job["status"], "error");
}

#[test]
fn name_of_a_job_is_shown_wherever_jobs_are_listed() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let words = ["submit", "-t", "osis", "-e", "1", "--id", "a", "--name", "count words"];
    hero.run(&words).code(0);
    let batch = redis.folder().join("batch");
    let line = r#"{"id": "b", "script_type": "osis", "script": "1", "name": "of a line"}"#;
    std::fs::write(&batch, line).expect("writing a file");
    hero.run(&["submit", "--batch", &batch.display().to_string()]).code(0);
    let graph = redis.folder().join("graph");
    let text = "[defaults]\ntype = \"osis\"\n".to_owned()
        + "[job.fetch]\nid = \"c\"\nscript = \"1\"\n"
        + "[job.count]\nid = \"d\"\nscript = \"1\"\nname = \"its own\"\nafter = [\"fetch\"]\n";
    std::fs::write(&graph, text).expect("writing a file");
    hero.run(&["submit", "--graph", &graph.display().to_string()]).code(0);
    hero.run(&["submit", "-t", "osis", "-e", "1", "--id", "e"]).code(0);

    let listed = hero.run(&["job", "list", "--json"]).code(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("one document");
    let mut names: Vec<(&str, Option<&str>)> = listed["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| (job["id"].as_str().expect("an id"), job["name"].as_str()))
        .collect();
    names.sort_unstable();
    let expected = [
        ("a", Some("count words")),
        ("b", Some("of a line")),
        ("c", Some("fetch")),
        ("d", Some("its own")),
        ("e", None),
    ];
    assert_eq!(names, expected);
    let shown = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(shown.lines().nth(1).expect("two lines").starts_with("name "), "{shown}");
    assert!(hero.run(&["job", "list"]).code(0).stdout.contains("  count words  dispatched  "));
}

#[test]
fn attempts_of_a_job_are_shown_with_machine_end_and_reason() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let exec = ["exec", "-t", "osis", "-e", "throw \"no luck\"", "--id", "a"];
    hero.run(&exec).code(1);
    let shown = || {
        let shown = hero.run(&["job", "show", "--json", "a"]).code(0).stdout;
        serde_json::from_str::<serde_json::Value>(&shown).expect("one document")
    };
    let once = shown();
    assert_eq!(once["attempts"].as_array().map(Vec::len), Some(1), "{once}");
    assert!(!hero.run(&["job", "show", "a"]).code(0).stdout.contains("attempts:"));
    assert_eq!(super::field(&redis, "a", "attempts"), None);

    hero.run(&["job", "retry", "a"]).code(0);
    hero.run(&["job", "wait", "a"]).code(1);
    let twice = shown();
    let attempts = twice["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 2, "{twice}");
    for attempt in attempts {
        assert_eq!(attempt["ended"], "error", "{attempt}");
        assert_eq!(attempt["actor"], "osis:default:1", "{attempt}");
        assert!(attempt["hostname"].as_str().is_some_and(|name| !name.is_empty()), "{attempt}");
        assert!(
            attempt["error"].as_str().is_some_and(|text| text.contains("no luck")),
            "{attempt}"
        );
    }
    let text = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(text.contains("\nattempts:\n  STARTED"), "{text}");
}

#[test]
fn copy_of_a_job_has_its_settings_with_the_changes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let submit = [
        "submit",
        "-t",
        "osis",
        "-e",
        "40 + 2",
        "--id",
        "a",
        "--name",
        "first",
        "--unique-key",
        "k",
        "--timeout",
        "9s",
    ];
    hero.run(&submit).code(0);
    let set = ["--set", "name=second", "--set", "timeout=", "--set", "retries=3"];
    let id = hero.run(&[&["job", "clone", "a"], &set[..]].concat()).code(0).stdout;
    let id = id.trim_end();
    let field = |name| super::field(&redis, id, name);
    let fields = ["script", "name", "timeout", "retries", "unique_key", "status"].map(field);
    let expected = [Some("40 + 2"), Some("second"), None, Some("3"), None, Some("dispatched")];
    assert_eq!(fields.each_ref().map(Option::as_deref), expected);
    hero.run(&["job", "clone", "a", "--set", "retires=3"]).code(65).says("did you mean `retries`?");
    hero.run(&["job", "clone", "nobody"]).code(66);
}

#[test]
fn jobs_are_found_by_caller_name_and_error_and_failures_are_grouped() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    for (id, script, name) in [
        ("a", "throw \"no file 7\"", "Import one"),
        ("b", "throw \"no file 8\"", "import two"),
        ("c", "throw \"else\"", "other"),
    ] {
        let exec =
            ["exec", "-t", "osis", "--id", id, "--name", name, "--caller", name, "-e", script];
        hero.run(&exec).code(1);
    }
    hero.run(&["submit", "-t", "sal", "--id", "d", "-e", "1"]).code(0);
    hero.run(&["job", "stop", "d"]).code(0);
    let found = |args: &[&str]| {
        let listed = hero.run(&[&["job", "list", "--json"], args].concat()).code(0).stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("one document");
        let jobs = listed["jobs"].as_array().expect("jobs").iter();
        let mut ids: Vec<String> =
            jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(found(&["--name", "IMPORT"]), ["a", "b"]);
    assert_eq!(found(&["--caller", "other"]), ["c"]);
    assert_eq!(found(&["--error", "no file", "--status", "error"]), ["a", "b"]);
    assert_eq!(found(&["--cancelled"]), ["d"]);
    assert_eq!(found(&["--error", "no file", "--limit", "1"]).len(), 1);
    assert!(hero.run(&["job", "list"]).code(0).stdout.contains("  cancelled  "));
    let groups = hero.run(&["job", "errors", "--json"]).code(0).stdout;
    let groups: serde_json::Value = serde_json::from_str(&groups).expect("one document");
    assert_eq!((&groups["searched"], &groups["complete"]), (&3.into(), &true.into()), "{groups}");
    let first = &groups["groups"][0];
    assert_eq!((&first["jobs"], &first["last_job"]), (&2.into(), &"b".into()), "{first}");
    assert!(first["kind"].as_str().is_some_and(|kind| kind.contains("no file N")), "{first}");
    assert_eq!(groups["groups"].as_array().map(Vec::len), Some(2));
    assert!(!hero.run(&["job", "errors", "-t", "sal"]).code(0).stdout.contains("stopped"));
}

#[test]
fn code_in_the_place_of_a_file_is_rejected_with_its_option() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let said = "no such file: echo hi; to run a text as a script: -e, as in hero exec -t bash -e 'echo hi'";
    hero.run(&["exec", "-t", "bash", "echo hi"]).code(66).says(said);
    hero.run(&["exec", "echo hi"]).code(66).says(said);
    hero.run(&["exec", "print(1.5)"]).code(66).says("no such file: print(1.5); to run a text");
    let plain = hero.run(&["exec", "-t", "bash", "none.sh"]).code(66);
    assert!(!plain.stderr.contains("-e"), "{}", plain.stderr);
}

#[test]
fn job_that_an_actor_takes_too_late_expires_without_running() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for (id, more) in [("late", &["--expires=2h"][..]), ("early", &["--expires=2h"]), ("any", &[])]
    {
        let submit = ["submit", "-t", "osis", "--id", id, "-e", "print(1)"];
        hero.run(&[&submit[..], more].concat()).code(0);
    }
    for id in ["late", "any"] {
        let _: i64 =
            redis.ask(&format!("HSET {} created_at 2026-01-01T00:00:00.000Z", keys::job(id)));
    }
    let _actor = hero.actor("osis-default-1").start();
    for id in ["early", "any"] {
        until(&redis, id, "finished");
    }
    until(&redis, "late", "error");
    let error = "expired: it did not start within 2h";
    assert_eq!(field(&redis, "late", "error").as_deref(), Some(error));
    assert_eq!(hero.run(&["job", "logs", "late"]).code(0).stdout, "", "it ran");
    let listed = hero.run(&["job", "list", "--failed-because", "expired"]).code(0).stdout;
    assert!(listed.contains("late") && !listed.contains("early"), "{listed}");
    let metrics = hero.run(&["metrics"]).code(0).stdout;
    let counted = "hero_jobs_failed_total{type=\"osis\",reason=\"expired\"} 1\n";
    assert!(metrics.contains(counted), "{metrics}");
    hero.run(&["job", "retry", "late"]).code(0);
    until(&redis, "late", "finished");
}

#[test]
fn job_that_is_submitted_from_a_file_has_its_name() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    std::fs::write(redis.folder().join("words.rhai"), "1").expect("written");
    hero.run(&["submit", "--id", "a", "words.rhai"]).code(0);
    hero.run(&["submit", "--id", "b", "--name", "count words", "words.rhai"]).code(0);
    hero.run(&["submit", "--id", "c", "-t", "osis", "-e", "1"]).code(0);
    let name = |id: &str| super::field(&redis, id, "name");
    assert_eq!(name("a").as_deref(), Some("words.rhai"));
    assert_eq!(name("b").as_deref(), Some("count words"));
    assert_eq!(name("c"), None);
}
