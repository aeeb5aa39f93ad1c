//! Submissions that are answered, and ends that are replied to, only once Redis has them where they must be.

use crate::support::{Hero, Monitor, Redis, keys, wait_until};

use super::field;

#[test]
fn durable_job_is_confirmed_before_its_submission_and_its_end_are_answered() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis).with_default_user();
    let _osis = hero.actor("osis-default-1").start();
    let mut monitor = Monitor::of(&redis);
    hero.run(&["exec", "--durable", "-t", "osis", "--id", "a", "-e", "6 * 7"])
        .code(0)
        .stdout("42\n");
    assert_eq!(field(&redis, "a", "durable").as_deref(), Some("true"));
    // The submission, and the end. An older Redis confirms by its answers.
    let known: Vec<redis::Value> = redis.ask("COMMAND INFO waitaof");
    if known.iter().any(|one| !matches!(one, redis::Value::Nil)) {
        let asks = |command: &&String| command.starts_with("\"WAITAOF\" \"1\" \"0\" \"5000\"");
        assert!(monitor.commands().iter().filter(asks).count() >= 2);
    }
    hero.run(&["submit", "--durable", "-t", "osis", "--id", "b", "-e", "throw 1"]).code(0);
    hero.run(&["job", "wait", "b"]).code(1);
}

#[test]
fn job_that_a_program_pushes_is_durable_if_its_hash_says_so() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis).with_default_user();
    let osis = hero.actor("osis-default-1").start();
    redis.set_job("a", "script 1 script_type osis status dispatched durable 1");
    redis.push(&keys::work("type:osis"), &["a"]);
    assert!(redis.awaited(&keys::reply("a")).contains("\"output\":\"1\""));
    assert!(!osis.err().contains("cannot confirm"), "{}", osis.err());
}

#[test]
fn configuration_confirms_every_submission_alone_and_in_batches() {
    let redis = Redis::that_keeps();
    let hero = Hero::on(&redis).with_default_user().set("redis.ack", "\"disk\"");
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
    let lines = "{\"script\":\"1\",\"script_type\":\"osis\"}\n".repeat(3);
    hero.run_with_input(&["submit", "--batch", "-"], &lines).code(0);
    hero.run_with_input(&["submit", "--all-or-none", "--batch", "-"], &lines).code(0);
    let graph = redis.folder().join("g.toml");
    std::fs::write(&graph, "[job.a]\ntype = \"osis\"\nscript = \"1\"\n").expect("written");
    hero.run(&["submit", "--graph", graph.to_str().expect("text")]).code(0);
}

#[test]
fn redis_that_cannot_confirm_gets_no_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).with_default_user();
    let durable = ["submit", "--durable", "-t", "osis", "--id", "a", "-e", "1"];
    hero.run(&durable).code(69).says("CONFIG SET appendonly yes");
    let all = Hero::on(&redis).with_default_user().set("redis.ack", "\"disk\"");
    all.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(69).says("appendonly");
    assert_eq!(field(&redis, "a", "status"), None);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
}

#[test]
fn job_without_its_replica_is_stored_and_named_and_its_end_pushes_no_reply() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).with_default_user().set("redis.ack", "\"replicas:1\"");
    let submit = ["submit", "-t", "osis", "--id", "a", "-e", "1"];
    hero.run(&submit)
        .code(69)
        .says("job a is stored in the memory of redis, but this is not confirmed")
        .says("0 of 1 replicas");
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    // For one who waits.
    redis.run(&format!("HDEL {} reply", keys::job("a")));
    let osis = hero.actor("osis-default-1").start();
    wait_until("it ends", || field(&redis, "a", "status").as_deref() == Some("finished"));
    hero.run(&["job", "wait", "a"]).code(69).says("job a has ended in the memory of redis");
    wait_until("the actor has given up", || osis.err().contains("cannot confirm how jobs ended"));
    assert!(redis.list(&keys::reply("a")).is_empty());
}
