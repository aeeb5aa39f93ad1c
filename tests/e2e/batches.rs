//! Batches: many jobs of one file, each by itself or as an atomic batch.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::{Hero, Redis, keys, wait_until};

#[test]
fn batch_prints_one_id_per_line_in_order_and_names_each_rejected_line() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let lines = [
        r#"{"id": "a", "script_type": "osis", "script": "40 + 2"}"#,
        r#"{"script_type": "osis", "script": "1", "retries": -1}"#,
        "",
        r#"{"id": "b", "script_type": "osis", "script": "2", "prerequisites": ["a"]}"#,
        "not json",
        r#"{"script": "1"}"#,
        r#"{"id": "c", "script_type": "osis", "script": "1", "prerequisites": ["nobody"]}"#,
        r#"{"id": "a", "script_type": "osis", "script": "1"}"#,
        r#"{"id": "d", "script_type": "osis", "script": "4", "status": "finished"}"#,
        "[1]",
    ];
    let done = hero.run_with_input(&["submit", "--batch", "-", "--ids"], &lines.join("\n"));
    let done = done.code(65).stdout("a\nb\n");
    let done =
        done.says("hero: -:2: invalid job: retries").says("hero: -:5: invalid job: the line");
    let done = done.says("hero: -:6: invalid job: script_type is missing");
    let done = done.says("hero: -:7: prerequisite nobody does not exist");
    let done = done.says("hero: -:8: job id a is taken");
    let done = done.says("hero: -:9: invalid job: status is written by hero alone");
    done.says("hero: -:10: invalid job: the line").says("7 lines were rejected");
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "b"]).code(0).stdout("2\n");
}

#[test]
fn each_line_of_a_file_makes_a_job_of_one_batch() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let lines = "one\n\ntwo three\n$(id); echo x\n";
    let command =
        ["submit", "--each", "-", "--id", "many", "--retries", "2", "--", "echo", "<{}>", "{}"];
    hero.run_with_input(&command, lines).code(0).stdout("many\n").says("hero graph wait many");
    hero.run(&["graph", "wait", "many"]).code(0);
    let graph = hero.run(&["graph", "show", "many", "--json"]).code(0).stdout;
    let graph: serde_json::Value = serde_json::from_str(&graph).expect("JSON");
    let ids = graph["jobs"].as_array().expect("jobs").iter().map(|job| job["id"].clone());
    let mut outputs: Vec<String> = ids
        .map(|id| {
            let key = keys::job(id.as_str().expect("an id"));
            assert_eq!(redis.field(&key, "retries").as_deref(), Some("2"));
            let output = redis.field(&key, "output").expect("an output");
            let line = redis.field(&key, "name").expect("a name");
            assert_eq!(output, format!("<{line}> {line}"), "the line names its job");
            output
        })
        .collect();
    outputs.sort();
    assert_eq!(outputs, ["<$(id); echo x> $(id); echo x", "<one> one", "<two three> two three"]);
    // A script gets the line as its argument.
    let script =
        ["submit", "--each", "-", "--all-or-none", "--ids", "-t", "bash", "-e", "echo +$1"];
    let done = hero.run_with_input(&script, "a b\n").code(0);
    hero.run(&["job", "wait", done.stdout.trim()]).code(0).stdout("+a b\n");
    hero.run_with_input(&["submit", "--each", "-", "--", "ls"], "").code(65).says("- has no job");
    hero.run_with_input(&["submit", "--each", "-", "--", "{}"], "ls\nls -la\n")
        .code(65)
        .says("hero: -:2: invalid job: the line: the command after -- is one quoted word");
}

#[test]
fn line_names_the_input_and_the_standard_input_of_its_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let folder = redis.folder().display().to_string();
    for name in ["a", "b"] {
        std::fs::write(format!("{folder}/{name}.txt"), format!("text of {name}")).expect("a file");
    }
    let (lines, files) = (
        format!("{folder}/a.txt\n{folder}/b.txt\n{folder}/c.txt\n"),
        ["--input", "{}", "--stdin", "{}"],
    );
    let script = "cat \"$HERO_INPUT_DIR/$(basename \"$1\")\"; cat";
    let words =
        [&["submit", "--each", "-", "--ids", "-t", "bash", "-e", script][..], &files].concat();
    let done = hero.run_with_input(&words, &lines).code(65).says("c.txt");
    let ids: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(ids.len(), 2, "{done:?}");
    for (id, name) in ids.into_iter().zip(["a", "b"]) {
        let text = format!("text of {name}");
        hero.run(&["job", "wait", id]).code(0).stdout(&format!("{text}{text}\n"));
    }
}

#[test]
fn batch_without_a_job_is_rejected_and_stores_nothing() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for more in [&["--id", "nightly"][..], &["--all-or-none"]] {
        let words = [&["submit", "--batch", "-"], more].concat();
        hero.run_with_input(&words, "\n").code(65).stdout("").says("- has no job");
    }
    hero.run(&["graph", "show", "nightly"]).code(66);
}

#[test]
fn submission_that_is_repeated_with_its_id_and_content_answers_with_the_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let job = ["submit", "-t", "osis", "--id", "pay", "-e", "6 * 7"];
    hero.run(&job).code(0).stdout("pay\n");
    hero.run(&job).code(0).stdout("pay\n").says("was submitted before with the same content");
    let exec = ["exec", "-t", "osis", "--id", "pay", "-e", "6 * 7"];
    hero.run(&exec).code(0).stdout("42\n");
    assert_eq!(redis.field(&keys::job("pay"), "attempt").as_deref(), Some("1"));
    let other = ["submit", "-t", "osis", "--id", "pay", "-e", "6 * 8"];
    hero.run(&other).code(65).says("job id pay is taken");
    let line = |id: &str| format!(r#"{{"id":"{id}","script_type":"osis","script":"6 * 7"}}"#);
    for (more, ids) in [(&[][..], ["a", "b"]), (&["--all-or-none"], ["c", "d"])] {
        let submit = |printed: &str, ids: &[&str]| {
            let lines: Vec<String> = ids.iter().map(|id| line(id)).collect();
            let words = [&["submit", "--batch", "-", printed], more].concat();
            hero.run_with_input(&words, &lines.join("\n"))
        };
        let told = format!("{}\n{}\n", ids[0], ids[1]);
        submit("--ids", &ids).code(0).stdout(&told);
        submit("--ids", &ids).code(0).stdout(&told).says("2 jobs were submitted before");
        let again = submit("--json", &ids).code(0).stdout;
        let again: serde_json::Value = serde_json::from_str(&again).expect("one document");
        assert_eq!(
            (&again["ids"], &again["refused"]),
            (&serde_json::json!(ids), &serde_json::json!([]))
        );
        assert_eq!(again["batch_id"].is_null(), more.is_empty(), "{again}");
        let with_new = submit("--ids", &[ids[0], &format!("{}-new", ids[0])]);
        if more.is_empty() {
            with_new.code(0).stdout("a\na-new\n").says("1 job was submitted before");
        } else {
            with_new.code(65).says("job id c is taken");
        }
    }
    assert_eq!(redis.all("GRAPH").len(), 3);
}

#[test]
fn large_batch_keeps_the_order_of_its_lines() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let (mut lines, mut ids) = (String::new(), String::new());
    for number in 0..2500 {
        let _ = writeln!(lines, r#"{{"id":"j{number}","script_type":"osis","script":"1"}}"#);
        let _ = writeln!(ids, "j{number}");
    }
    std::fs::write(redis.folder().join("jobs.jsonl"), lines).expect("writing a file");
    hero.run(&["submit", "--batch", "jobs.jsonl", "--ids"]).code(0).stdout(&ids);
    assert_eq!(redis.list(&keys::work("type:osis")).concat(), ids.replace('\n', ""));
    hero.run(&["submit", "--batch", "none.jsonl"]).code(66).says("no such file");
}

#[test]
fn atomic_batch_is_rejected_for_one_invalid_line() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let line = |id: &str, after: &str| {
        format!(r#"{{"id":"{id}","script_type":"osis","script":"1","prerequisites":[{after}]}}"#)
    };
    let submit = |lines: &[String]| {
        let args = ["submit", "--batch", "-", "--all-or-none", "--ids"];
        hero.run_with_input(&args, &lines.join("\n"))
    };
    let unknown = [line("a", ""), line("b", "\"nobody\"")];
    submit(&unknown).code(65).stdout("").says("-:2: prerequisite nobody does not exist");
    let wrong = [line("a", ""), "{}".to_owned()];
    submit(&wrong).code(65).stdout("").says("-:2: invalid job: script is missing");
    let circle = [line("a", "\"b\""), line("b", "\"a\"")];
    submit(&circle).code(65).stdout("").says("in a cycle: a → b → a");
    let twice = [line("a", ""), line("a", "")];
    submit(&twice).code(65).stdout("").says("-:2: job id a is taken");
    assert!(redis.all("JOB").is_empty());
    submit(&[line("b", "\"a\""), line("a", "")]).code(0).stdout("b\na\n");
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "b"]).code(0);
}

#[test]
fn json_result_of_a_batch_is_one_document() {
    let redis = Redis::start();
    let lines = "{\"id\":\"a\",\"script_type\":\"osis\",\"script\":\"1\"}\n{}\n";
    let done = Hero::on(&redis).run_with_input(&["--json", "submit", "--batch", "-"], lines);
    let document: serde_json::Value =
        serde_json::from_str(&done.code(65).stdout).expect("one document");
    assert_eq!(document["ids"], serde_json::json!(["a"]));
    assert_eq!(document["refused"][0]["line"], 2);
}

#[test]
fn batch_is_an_object_with_an_id_and_a_name() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let lines = |first: &str, second: &str| {
        format!(
            "{{\"id\":\"{first}\",\"script_type\":\"osis\",\"script\":\"1\"}}\n{{\"id\":\"{second}\",\
             \"script_type\":\"osis\",\"script\":\"throw 1\",\"prerequisites\":[\"{first}\"]}}\n"
        )
    };
    let submit = ["--json", "submit", "--batch", "-", "--name", "two jobs"];
    let done = hero.run_with_input(&submit, &lines("a", "b")).code(0).stdout;
    let document: serde_json::Value = serde_json::from_str(&done).expect("one document");
    let id = document["batch_id"].as_str().expect("an id").to_owned();
    let whole = ["submit", "--batch", "-", "--all-or-none", "--id", "whole"];
    let done = hero.run_with_input(&whole, &lines("c", "d")).code(0).stdout("whole\n");
    done.says("batch whole: hero graph wait whole");
    let again = hero.run_with_input(&whole, &lines("c", "d")).code(0).stdout("whole\n");
    again.says("2 jobs were submitted before with the same content");
    hero.run_with_input(&whole, &lines("c", "other")).code(65);
    let _osis = hero.actor("osis-default-1").start();
    for id in [id.as_str(), "whole"] {
        hero.run(&["graph", "wait", id]).code(1).stdout("1 of 2 done, 1 failed\n");
    }
    let list = hero.run(&["graph", "list"]).code(0).stdout;
    assert!(list.contains("  two jobs  batch  failed  1 of 2 done, 1 failed"), "{list}");
    let refused = hero.run_with_input(&["--json", "submit", "--batch", "-"], "{}\n").code(65);
    assert!(refused.stdout.contains("\"batch_id\":null"), "{}", refused.stdout);
    let unknown = "{\"script_type\":\"osis\",\"script\":\"1\",\"prerequisites\":[\"nobody\"]}\n";
    let none = ["submit", "--batch", "-", "--id", "none"];
    hero.run_with_input(&none, unknown).code(65).says("1 line was rejected");
    hero.run(&["graph", "show", "none"]).code(66);
    let again = ["submit", "--batch", "-", "--id", "whole"];
    let refused = hero.run_with_input(&again, &lines("e", "f")).code(65).stdout("");
    refused.says("graph id whole is taken");
}

#[test]
fn callbacks_of_a_batch_start_once_when_all_its_lines_are_submitted_and_ended() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let write = |name: &str, text: &str| {
        std::fs::write(redis.folder().join(name), text).expect("writing a file");
    };
    write(
        "good.rhai",
        "`${ENV.HERO_GRAPH_NAME}: ${ENV.HERO_GRAPH_FINISHED} of ${ENV.HERO_GRAPH_JOBS}`",
    );
    write("bad.rhai", "`${ENV.HERO_GRAPH_STATE}, ${ENV.HERO_GRAPH_FAILED} failed`");
    let _osis = hero.actor("osis-default-1").start();
    let submit = |id: &str, script: &str, more: &[&str]| {
        // More than one call to Redis, so the first jobs have ended before the last are submitted.
        let line = |number: usize| {
            format!(r#"{{"id":"{id}{number}","script_type":"osis","script":"{script}"}}"#)
        };
        let lines: Vec<String> = (0..600).map(line).collect();
        let args =
            ["submit", "--batch", "-", "--id", id, "--name", id, "--on-success", "good.rhai"];
        let args = [&args[..], &["--on-failure", "bad.rhai"], more].concat();
        hero.run_with_input(&args, &lines.join("\n")).code(0);
        hero.run(&["graph", "wait", id]);
    };
    let called = |id: &str, name: &str| {
        let key = keys().graph(&id.parse().expect("legal"));
        let field = format!("{name}_job");
        wait_until("it is called", || redis.field(&key, &field).is_some());
        let job = redis.field(&key, &field).expect("called");
        hero.run(&["job", "wait", &job]).code(0).stdout
    };
    submit("a", "1", &[]);
    assert_eq!(called("a", "on_success"), "a: 600 of 600\n");
    submit("b", "throw 1", &["--all-or-none"]);
    assert_eq!(called("b", "on_failure"), "failed, 600 failed\n");
    for id in ["a", "b"] {
        let key = keys().graph(&id.parse().expect("legal"));
        assert_eq!(redis.field(&key, "ends").as_deref(), Some("1"));
        assert_eq!(redis.field(&key, "open"), None);
    }
    hero.run(&["submit", "--batch", "-", "--on-end", "none.rhai"]).code(66).says("no such file");
}

#[test]
fn line_of_a_batch_takes_the_values_of_the_options() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let line = |id: &str, more: &str| {
        format!(
            r#"{{"id": "{id}", "type": "osis", "script": "1", "priority": "urgent", "tag": "b", {more}}}"#
        )
    };
    let lines = [
        line("a", r#""timeout": "5s", "delay": "10m""#),
        line("b", r#""timeout": 5, "at": "tomorrow 03:00""#),
        line("c", r#""delay": "10m", "at": "03:00""#),
        line("d", r#""at": "10m""#),
    ];
    let done = hero.run_with_input(&["submit", "--batch", "-"], &lines.join("\n")).code(65);
    done.says("delay cannot be set beside `at`").says("is a length of time");
    for id in ["a", "b"] {
        let field = |name: &str| redis.field(&crate::support::keys::job(id), name);
        assert_eq!(field("timeout").as_deref(), Some("5"));
        assert_eq!(field("priority").as_deref(), Some("0"));
        assert_eq!(field("tags").as_deref(), Some(r#"["b"]"#));
        assert_eq!(field("status").as_deref(), Some("scheduled"));
    }
    std::fs::write(redis.folder().join("sum.rhai"), "1").expect("a file");
    let line = r#"{"id": "s", "type": "osis", "file": "sum.rhai"}"#;
    hero.run_with_input(&["submit", "--batch", "-"], line).code(0);
    let named = redis.field(&crate::support::keys::job("s"), "name");
    assert_eq!(named.as_deref(), Some("sum.rhai"));
    let graph = "[job.g]\nid = \"g\"\ntype = \"osis\"\nscript = \"1\"\npriority = \"low\"\n";
    std::fs::write(redis.folder().join("g.toml"), graph).expect("a file");
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    let field = redis.field(&crate::support::keys::job("g"), "priority");
    assert_eq!(field.as_deref(), Some("2"));
}

#[test]
fn batch_in_place_of_a_job_is_named_as_such() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let line = "{\"script_type\":\"osis\",\"script\":\"1\"}\n";
    let batch = hero.run_with_input(&["submit", "--batch", "-"], line).code(0).stdout;
    let short: String = batch.chars().take(8).collect();
    for id in [batch.trim(), &short] {
        for command in ["wait", "show", "stop"] {
            hero.run(&["job", command, id]).code(66).says("no job, but a graph or batch: ");
        }
    }
}

#[test]
fn dry_run_prints_what_would_be_submitted_and_submits_nothing() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let path = |name: &str| redis.folder().join(name).display().to_string();
    std::fs::write(path("hosts"), "web1\nweb2\n").expect("written");
    std::fs::write(path("g.toml"), "[job.a]\ntype = \"osis\"\nscript = \"1\"\n").expect("written");
    let printed = |words: &[&str]| -> Vec<Value> {
        let done = hero.run(&[&["submit", "--dry-run"], words].concat()).code(0);
        done.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    };
    let one = printed(&["--group", "io", "--timeout", "2h", "--", "rsync", "-a"]);
    assert_eq!(
        (&one[0]["queue"], &one[0]["job"]["timeout"]),
        (&json!("type:bash:group:io"), &json!(7200))
    );
    let each = printed(&["--each", &path("hosts"), "--", "ping", "{}"]);
    assert_eq!(each.iter().map(|job| &job["name"]).collect::<Vec<_>>(), ["web1", "web2"]);
    let graph = printed(&["--graph", &path("g.toml"), "--name", "nightly"]);
    assert_eq!((&graph[0]["name"], &graph[0]["jobs"][0]["name"]), (&json!("nightly"), &json!("a")));
    assert_eq!(printed(&["--every-machine", "-t", "bash", "-e", "1"])[0]["every"], "machine");
    let graph = "[job.a]\ntype = \"osis\"\nscript = \"1\"\nafter = [\"a\"]\n";
    std::fs::write(path("cycle.toml"), graph).expect("written");
    let cycle = hero.run(&["submit", "--dry-run", "--graph", &path("cycle.toml")]).code(65);
    cycle.stdout("").says("cycle.toml:1:6: jobs wait for each other in a cycle: a → a");
    let lines = "{\"script\": \"1\", \"type\": \"osis\", \"retries\": 99999999999}\n1\n\
                 {\"script\": \"1\", \"type\": \"osis\"}\n{\"script\": \"1\"}\n";
    std::fs::write(path("b.jsonl"), lines).expect("written");
    let batch = hero.run(&["submit", "--dry-run", "--batch", &path("b.jsonl")]).code(65);
    assert_eq!(batch.stdout.lines().count(), 1, "{}", batch.stdout);
    let said = batch.says("b.jsonl: 3 lines were rejected").stderr;
    for line in [
        "b.jsonl:1: invalid job: retries `99999999999` is too large",
        "b.jsonl:2: invalid job: the line is not a JSON object",
        "b.jsonl:4: invalid job: script_type is missing",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    hero.run(&["submit", "--caller", "a\nb", "-t", "osis", "-e", "1"])
        .code(65)
        .says("--caller: has control characters");
    assert!(redis.keys(&keys::prefix("JOB")).is_empty());
}
