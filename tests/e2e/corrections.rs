//! Jobs that run again with a corrected script or other settings.

use serde_json::Value;

use super::{field, until};
use crate::support::{Hero, Redis};

fn json(hero: &Hero, args: &[&str]) -> Value {
    let done = hero.run(&[args, &["--json"]].concat()).code(0);
    serde_json::from_str(&done.stdout).expect("JSON")
}

/// Writes a file in the folder of the test.
fn file(redis: &Redis, name: &str, text: &str) {
    std::fs::write(redis.folder().join(name), text).expect("writing a file");
}

#[test]
fn graph_is_resumed_with_a_corrected_script_and_setting() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    file(
        &redis,
        "g.toml",
        "[defaults]\ntype = \"osis\"\n[job.load]\nscript = '20'\n\
         [job.transform]\nscript = 'throw \"old\"'\nafter = [\"load\"]\n\
         [job.save]\nscript = 'result(\"transform\") + 1'\nafter = [\"transform\"]\n",
    );
    file(&redis, "tr.rhai", "result(\"load\") * 2");
    let _unit = hero.actor("osis-default-1").start();
    let id = hero.run(&["submit", "--graph", "g.toml"]).code(0).stdout;
    let id = id.trim();
    hero.run(&["graph", "wait", id]).code(1);
    hero.run(&["graph", "retry", id, "--file", "nothing=tr.rhai"]).code(65).says("load");
    hero.run(&["graph", "retry", id, "--file", "load=tr.rhai"]).code(65).says("--from");
    hero.run(&["graph", "retry", id, "--set", "transform.type=sal"])
        .code(65)
        .says("hero job clone");
    hero.run(&["graph", "retry", id, "--set", "transform.timeout=2000d"]).code(65).says("timeout");
    let again =
        ["graph", "retry", id, "--file", "transform=tr.rhai", "--set", "transform.timeout=5s"];
    assert_eq!(hero.run(&again).code(0).stdout, "2 jobs retried\n");
    hero.run(&["graph", "wait", id]).code(0);
    let shown = json(&hero, &["graph", "show", id]);
    let job = |name: &str| {
        let jobs = shown["jobs"].as_array().expect("jobs");
        let of = jobs.iter().find(|job| job["name"] == name).expect(name);
        json(&hero, &["job", "show", of["id"].as_str().expect("an id")])
    };
    let transform = job("transform");
    assert_eq!(transform["script"], "result(\"load\") * 2");
    assert_eq!(transform["timeout"], 5.0);
    assert_eq!(transform["attempts"][0]["script"], "throw \"old\"");
    assert_eq!(transform["attempts"][1]["script"], Value::Null, "the last ran what the job has");
    assert_eq!(job("save")["output"], "41");
    assert_eq!(job("load")["attempts"].as_array().map(Vec::len), Some(1), "it finished before");
    assert_eq!(
        hero.run(&["graph", "retry", id, "--from", "transform"]).code(0).stdout,
        "2 jobs retried\n"
    );
    hero.run(&["graph", "wait", id]).code(0);
    let all = hero.run(&["audit", "--what", "graph.retry"]).code(0).stdout;
    assert!(all.contains("2 jobs, changed transform") && all.contains("from transform"), "{all}");
}

#[test]
fn ended_job_runs_again_with_a_corrected_script_however_it_ended() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    file(&redis, "new.rhai", "40 + 2");
    let _unit = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "1", "--id", "good"]).code(0);
    hero.run(&["exec", "-t", "osis", "-e", "throw \"x\"", "--id", "bad"]).code(1);
    for id in ["good", "bad"] {
        hero.run(&["job", "retry", id, "--file", "new.rhai"]).code(0);
        assert_eq!(hero.run(&["job", "wait", id]).code(0).stdout.trim(), "42", "{id}");
    }
    let shown = json(&hero, &["job", "show", "good"]);
    assert_eq!(
        (&shown["attempts"][0]["script"], &shown["script"]),
        (&"1".into(), &"40 + 2".into())
    );
    hero.run(&["job", "retry", "bad", "--file", "none.rhai"]).code(66).says("none.rhai");
    hero.run(&["job", "retry", "bad", "--set", "unique_key=a"]).code(65).says("hero job clone");
}

#[test]
fn waiting_jobs_are_edited_with_a_script_one_or_many() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    file(&redis, "new.rhai", "42");
    for id in ["a", "b"] {
        hero.run(&["submit", "-t", "osis", "-e", "1", "--id", id, "--delay", "1h", "--tag", "x"])
            .code(0);
    }
    hero.run(&["job", "edit", "a", "--file", "new.rhai"]).code(0);
    assert_eq!(field(&redis, "a", "script").as_deref(), Some("42"));
    assert_eq!(field(&redis, "b", "script").as_deref(), Some("1"));
    let dry = hero.run(&["job", "edit", "--tag", "x", "--set", "timeout=9s", "--dry-run"]).code(0);
    assert_eq!(field(&redis, "a", "timeout"), None, "{}", dry.stdout);
    let many = hero.run(&["job", "edit", "--tag", "x", "--set", "timeout=9s", "--priority", "low"]);
    assert_eq!(many.code(0).stdout, "2 jobs edited\n");
    for id in ["a", "b"] {
        assert_eq!(field(&redis, id, "timeout").as_deref(), Some("9"));
        assert_eq!(field(&redis, id, "priority").as_deref(), Some("2"));
    }
    hero.run(&["job", "edit", "a"]).code(2).says("nothing to change");
}

#[test]
fn timeout_of_a_running_job_stays_and_one_that_is_edited_after_its_actor_died_is_obeyed() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"1s\"");
    let _supervisor = hero.supervisor().start();
    let mut actor = hero.actor("bash-default-1").start();
    let words = ["submit", "-t", "bash", "--id", "a", "--timeout", "1h", "--retries", "0"];
    hero.run(&[&words[..], &["-e", "exec sleep 600"]].concat()).code(0);
    until(&redis, "a", "started");
    let edit = ["job", "edit", "a", "--set", "timeout=1s"];
    hero.run(&edit).code(65).says("only a job that has not started can be changed");
    assert_eq!(field(&redis, "a", "timeout").as_deref(), Some("3600"));
    actor.kill();
    until(&redis, "a", "dispatched");
    hero.run(&edit).code(0);
    let _actor = hero.actor("bash-default-1").start();
    hero.run(&["job", "wait", "a"]).code(1).says("timeout");
    assert_eq!(field(&redis, "a", "crashes").as_deref(), Some("1"));
    drop(actor);
}

#[test]
fn graph_and_batch_take_both_spellings_of_a_setting() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    file(
        &redis,
        "g.toml",
        "[job.a]\nid = \"a\"\nscript = '1'\nscript_type = \"osis\"\nenv_vars = { A = \"b\" }\n\
         [job.b]\nid = \"b\"\nscript = '1'\ntype = \"osis\"\nenv = { A = \"b\" }\n",
    );
    file(
        &redis,
        "b.jsonl",
        "{\"id\":\"c\",\"script\":\"1\",\"type\":\"osis\",\"env\":{\"A\":\"b\"}}\n\
         {\"id\":\"d\",\"script\":\"1\",\"script_type\":\"osis\",\"env_vars\":{\"A\":\"b\"}}\n",
    );
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    hero.run(&["submit", "--batch", "b.jsonl"]).code(0);
    for id in ["a", "b", "c", "d"] {
        assert_eq!(field(&redis, id, "env_vars").as_deref(), Some(r#"{"A":"b"}"#), "{id}");
    }
}
