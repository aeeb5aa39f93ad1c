//! Unique keys: for a time, made of a job's content, and what happens to a second job.

use crate::support::{Hero, Redis, keys, wait_until};

use super::{field, until};

#[track_caller]
fn submit(hero: &Hero, args: &[&str]) -> String {
    let args = [&["submit", "-t", "osis"], args].concat();
    hero.run(&args).code(0).stdout.trim().to_owned()
}

fn unique(key: &str) -> String {
    format!("{}{key}", keys::prefix("UNIQUE"))
}

#[test]
fn key_is_held_for_its_time_after_the_job_finished() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let long = ["--unique-key=k", "--unique-for=1h", "-e", "1"];
    let first = submit(&hero, &long);
    until(&redis, &first, "finished");
    assert_eq!(submit(&hero, &long), first);
    assert_eq!(submit(&hero, &["--unique-key=k", "-e", "2"]), first);
    let waits = ["exec", "-t", "osis", "--unique-key=k", "-e", "2"];
    hero.run(&waits).code(0).says(&format!("no new job: job {first} holds its unique key"));
    let reject = ["submit", "-t", "osis", "--unique-key=k", "--on-duplicate=reject", "-e", "1"];
    hero.run(&reject).code(65).says(&format!("its unique key is held by job {first}"));
    // A started job is not replaced.
    assert_eq!(submit(&hero, &["--unique-key=k", "--on-duplicate=replace", "-e", "1"]), first);
    // The job itself may run again, and holds it on.
    hero.run(&["job", "retry", &first]).code(0);
    until(&redis, &first, "finished");
    assert_eq!(submit(&hero, &long), first);
    hero.run(&["job", "delete", &first]).code(0);
    let second = submit(&hero, &long);
    assert_ne!(second, first);
    let short = ["--unique-key=s", "--unique-for=1500ms", "-e", "1"];
    let third = submit(&hero, &short);
    until(&redis, &third, "finished");
    assert_eq!(submit(&hero, &short), third);
    wait_until("the time has passed", || submit(&hero, &short) != third);
}

#[test]
fn failed_job_gives_its_key_back_at_once() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let failing = ["--unique-key=k", "--unique-for=1h", "--retries=0", "-e", "throw 1"];
    let first = submit(&hero, &failing);
    until(&redis, &first, "error");
    assert_ne!(submit(&hero, &failing), first);
}

#[test]
fn content_of_a_job_makes_its_key() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let by_script =
        |args: &[&str]| submit(&hero, &[&["--unique-by=script", "-e", "args"], args].concat());
    let first = by_script(&["--", "a"]);
    assert_eq!(by_script(&["--", "a"]), first);
    assert_ne!(by_script(&["--", "b"]), first);
    assert_ne!(by_script(&["--env=A=1", "--", "a"]), first);
    let by_params = |script: &str, param: &str| {
        submit(&hero, &["--unique-by=params", "--name=report", "-e", script, "--param", param])
    };
    let report = by_params("1", "day=1");
    assert_eq!(by_params("2", "day=1"), report);
    assert_ne!(by_params("1", "day=2"), report);
    for wrong in [
        &["--unique-for=1h"][..],
        &["--on-duplicate=reject"],
        &["--unique-by=key"],
        &["--unique-by=script", "--unique-key=k"],
        &["--unique-by=text"],
        &["--unique-key=k", "--on-duplicate=merge"],
    ] {
        hero.run(&[&["submit", "-t", "osis", "-e", "1"], wrong].concat()).code(65);
    }
}

#[test]
fn waiting_job_is_replaced_with_its_dependents_released() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let replacing = |id: &str, more: &[&str]| {
        let args = ["--unique-key=k", "--on-duplicate=replace", "--id", id, "-e", "1"];
        submit(&hero, &[&args[..], more].concat())
    };
    assert_eq!(replacing("a", &[]), "a");
    submit(&hero, &["--id=needs", "--after=a", "-e", "1"]);
    submit(&hero, &["--id=cleans", "--after-any=a", "-e", "1"]);
    assert_eq!(replacing("b", &["--delay=1h"]), "b");
    let state = |id: &str| (field(&redis, id, "status"), field(&redis, id, "error"));
    let ended = |why: &str| (Some("error".to_owned()), Some(why.to_owned()));
    assert_eq!(state("a"), ended("replaced by job b"));
    assert_eq!(field(&redis, "needs", "status").as_deref(), Some("error"));
    assert_eq!(field(&redis, "cleans", "status").as_deref(), Some("dispatched"));
    assert_eq!(field(&redis, "b", "status").as_deref(), Some("scheduled"));
    // A refused job, or one that was submitted before, replaces none.
    let args = ["submit", "-t", "osis", "--unique-key=k", "--on-duplicate=replace", "-e", "1"];
    hero.run(&[&args[..], &["--id=a"]].concat()).code(0).says("job a was submitted before");
    hero.run(&[&args[..], &["--after=nobody"]].concat()).code(65);
    assert_eq!(field(&redis, "b", "status").as_deref(), Some("scheduled"));
    assert_eq!(redis.get::<String>(&unique("k")), "b");
    assert_eq!(replacing("c", &[]), "c");
    assert_eq!(state("b"), ended("replaced by job c"));
    assert_eq!(redis.list(&keys::work("type:osis")), ["cleans", "c"]);
    assert_eq!(redis.get::<String>(&unique("k")), "c");
    let _actor = hero.actor("osis-default-1").start();
    until(&redis, "c", "finished");
    assert_eq!(redis.get::<Option<String>>(&unique("k")), None);
}

/// Returns the ids of `hero job list` with these options.
fn listed(hero: &Hero, options: &[&str]) -> Vec<String> {
    let list = hero.run(&[&["job", "list", "--json"], options].concat()).code(0).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let jobs = list["jobs"].as_array().expect("jobs");
    jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn replaced_and_stopped_jobs_have_not_failed_and_run_again_only_if_they_are_named() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for id in ["old", "new"] {
        let key = "--unique-key=k";
        submit(&hero, &["--id", id, key, "--on-duplicate=replace", "--delay=1h", "-e", "1"]);
    }
    submit(&hero, &["--id=stopped", "--delay=1h", "-e", "1"]);
    hero.run(&["job", "stop", "stopped"]).code(0);
    let actor = hero.actor("osis-default-1").start();
    submit(&hero, &["--id=bad", "-e", "throw \"no\""]);
    submit(&hero, &["--id=good", "-e", "1"]);
    until(&redis, "bad", "error");
    until(&redis, "good", "finished");
    actor.signal(nix::sys::signal::Signal::SIGTERM);
    actor.ends().code(0);

    let stats = hero.run(&["stats", "--json"]).code(0).stdout;
    let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
    let osis = &stats["types"][0];
    let counted = ["finished", "failed", "cancelled", "replaced", "failed_percent"];
    assert_eq!(counted.map(|name| osis[name].as_f64()), [1.0, 1.0, 1.0, 1.0, 50.0].map(Some));
    let metrics = hero.run(&["metrics"]).code(0).stdout;
    assert!(metrics.contains("hero_jobs_replaced_total{type=\"osis\"} 1\n"), "{metrics}");
    assert!(
        metrics.contains("hero_jobs_failed_total{type=\"osis\",reason=\"other\"} 0\n"),
        "{metrics}"
    );

    let errors = hero.run(&["job", "errors"]).code(0).stdout;
    assert!(errors.contains("bad") && !errors.contains("replaced"), "{errors}");
    assert!(!errors.contains("stopped"), "{errors}");
    for (state, ids) in [("failed", "bad"), ("replaced", "old"), ("cancelled", "stopped")] {
        assert_eq!(listed(&hero, &["--status", state]), [ids], "{state}");
    }
    assert_eq!(listed(&hero, &["--failed-because", "replaced"]), ["old"]);
    assert_eq!(listed(&hero, &["--status", "error"]).len(), 3);
    assert!(hero.run(&["job", "show", "old"]).code(0).stdout.contains("replaced\n"));

    let retry = |options: &[&str]| hero.run(&[&["job", "retry"], options].concat());
    retry(&["--type", "osis", "--status", "error"]).code(0).stdout("1 job retried\n");
    assert_eq!(field(&redis, "bad", "status").as_deref(), Some("dispatched"));
    for id in ["old", "stopped"] {
        assert_eq!(field(&redis, id, "status").as_deref(), Some("error"), "{id}");
    }
    retry(&["--status", "cancelled"]).code(0).stdout("1 job retried\n");
    assert_eq!(field(&redis, "stopped", "status").as_deref(), Some("dispatched"));
    hero.run(&["job", "stop", "new"]).code(0);
    retry(&["--status", "replaced"]).code(0).stdout("1 job retried\n");
    assert_eq!(field(&redis, "old", "status").as_deref(), Some("dispatched"));
}

#[test]
fn job_that_runs_is_not_replaced() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    submit(&hero, &["--id=runs", "--unique-key=k", "-e", super::ENDLESS]);
    until(&redis, "runs", "started");
    let args = ["--unique-key=k", "--on-duplicate=replace", "-e", "1"];
    assert_eq!(submit(&hero, &args), "runs");
    let again = [&["submit", "-t", "osis"], &args[..]].concat();
    hero.run(&again).code(0).says(
        "hero: no new job: job runs holds its unique key: it has started, and only one that waits is replaced",
    );
    let json = hero.run(&[&["--json"], &again[..]].concat()).code(0).stdout;
    assert_eq!(json, "{\"id\":\"runs\",\"created\":false}\n");
    let other = ["submit", "-t", "osis", "--unique-key=k", "-e", "1"];
    hero.run(&other).code(0).says("no new job: job runs holds its unique key");
    assert_eq!(field(&redis, "runs", "status").as_deref(), Some("started"));
    hero.run(&["job", "stop", "runs"]).code(0);
    until(&redis, "runs", "error");
    assert_ne!(submit(&hero, &args), "runs");
    let own = ["--json", "submit", "-t", "osis", "--id=own", "-e", "1"];
    hero.run(&own).code(0).stdout("{\"id\":\"own\",\"created\":true}\n");
}

#[test]
fn graph_and_batch_with_a_duplicate_are_rejected_with_its_id() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let first = submit(&hero, &["--unique-by=script", "-e", "1"]);
    let graph = "[job.a]\ntype = \"osis\"\nscript = \"1\"\nunique_by = \"script\"\n";
    std::fs::write(redis.folder().join("g.toml"), graph).expect("written");
    hero.run(&["submit", "--graph", "g.toml"]).code(65).says(&first);
    let line =
        r#"{"script_type":"osis","script":"1","unique_by":"script","on_duplicate":"reject"}"#;
    hero.run_with_input(&["submit", "--batch", "-"], line).code(65).says(&first);
    let line = r#"{"script_type":"osis","script":"1","unique_key":"site","debounce":2}"#;
    hero.run_with_input(&["submit", "--batch", "-", "--all-or-none"], line)
        .code(65)
        .says("debounce")
        .says("cannot be set in an atomic batch");
    let line = r#"{"script_type":"osis","script":"1","unique_by":"script"}"#;
    let ids = ["submit", "--batch", "-", "--ids"];
    hero.run_with_input(&ids, line).code(0).stdout(&format!("{first}\n"));
}
