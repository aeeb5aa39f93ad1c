//! The functions of `sal` on the Redis of `sal.redis_url`.

use serde_json::Value;

use crate::support::{Hero, Redis};

#[test]
fn every_example_of_redisclient_returns_its_documented_output() {
    let (redis, external) = (Redis::start(), Redis::start());
    let hero = Hero::on(&redis).set("sal.redis_url", &format!("{:?}", external.url()));
    let _sal = hero.actor("sal-default-1").start();
    let documented = hero.run(&["--json", "script", "doc", "redisclient"]).code(0).stdout;
    let documented: Value = serde_json::from_str(&documented).expect("one JSON document");
    let functions = documented.as_array().expect("functions");
    assert_eq!(functions.len(), 13);
    for function in functions {
        let example = function["example"].as_str().expect("an example");
        let (_, output) = example.rsplit_once("// → ").expect("its output");
        hero.run(&["exec", "-t", "sal", "-e", example]).code(0).stdout(&format!("{output}\n"));
    }
    assert!(external.ask::<u64>("DBSIZE") > 0);
    assert_eq!(redis.keys("greeting"), [] as [&str; 0]);
}

#[test]
fn own_keys_are_rejected_and_errors_are_named() {
    let redis = Redis::start();
    // The worst case: the Redis that holds the jobs.
    let hero = Hero::on(&redis)
        .set("sal.redis_url", &format!("{:?}", redis.url()))
        .set("type.sal.limits.string_size_max", "\"10MB\"");
    let _sal = hero.actor("sal-default-1").start();
    for call in [
        "redis_get(\"hero:job:1\")",
        "redis_set(\"hero:job:1\", 1)",
        "redis_del(\"hero:meta:boot:index\")",
        "redis_hset(\"hero:job:1\", \"status\", \"x\")",
        "redis_hgetall(\"hero:job:1\")",
        "redis_rpush(\"hero:q:work:type:osis\", \"x\")",
        "redis_lrange(\"hero:q:work:type:osis\", 0, -1)",
    ] {
        hero.run(&["exec", "-t", "sal", "-e", call])
            .code(1)
            .says("not allowed: the key is in Hero's own namespace");
    }
    for (call, message) in [
        (
            "redis_set(\"a\", 1); redis_llen(\"a\")",
            "redis_llen a: a command of a script: WRONGTYPE",
        ),
        (
            "let t = \"x\"; t.pad(6000000, \"x\"); redis_set(\"t\", t); for i in 0..2 { redis_set(\"t\", redis_get(\"t\") + redis_get(\"t\")); }",
            "string too long",
        ),
    ] {
        hero.run(&["exec", "-t", "sal", "-e", call]).code(1).says(message);
    }
    redis.run("SETRANGE large 10000000 x");
    hero.run(&["exec", "-t", "sal", "-e", "redis_get(\"large\")"])
        .code(1)
        .says("redis_get large: larger than the limit");
    let none = Hero::on(&redis);
    let _other = none.actor("sal-default-2").start();
    none.run(&["exec", "-t", "sal", "-i", "2", "-e", "redis_ping()"])
        .code(1)
        .says("sal.redis_url is not set");
}
