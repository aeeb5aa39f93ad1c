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
    let reject = ["submit", "-t", "osis", "--unique-key=k", "--on-duplicate=reject", "-e", "1"];
    hero.run(&reject).code(65).says(&format!("its unique key is held by job {first}"));
    // One that started is not replaced.
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
fn waiting_job_is_replaced_with_its_dependents_told() {
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
    // A refused job replaces none.
    let args = ["submit", "-t", "osis", "--unique-key=k", "--on-duplicate=replace", "-e", "1"];
    hero.run(&[&args[..], &["--id=a"]].concat()).code(65);
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

#[test]
fn job_that_runs_is_not_replaced() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    submit(&hero, &["--id=runs", "--unique-key=k", "-e", super::ENDLESS]);
    until(&redis, "runs", "started");
    let args = ["--unique-key=k", "--on-duplicate=replace", "-e", "1"];
    assert_eq!(submit(&hero, &args), "runs");
    assert_eq!(field(&redis, "runs", "status").as_deref(), Some("started"));
    hero.run(&["job", "stop", "runs"]).code(0);
    until(&redis, "runs", "error");
    assert_ne!(submit(&hero, &args), "runs");
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
    let line = r#"{"script_type":"osis","script":"1","unique_by":"script"}"#;
    hero.run_with_input(&["submit", "--batch", "-"], line).code(0).stdout(&format!("{first}\n"));
}
