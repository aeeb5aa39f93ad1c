//! Foreign programs: producers and actors that speak the protocol, and those that break it.

use crate::support::{Hero, Redis, wait_until};

use super::{field, until};

#[test]
fn job_of_a_foreign_producer_runs_from_either_end_of_the_queue() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    for (id, push) in [("a", "RPUSH"), ("b", "LPUSH")] {
        redis.ask_with::<i64, _>(
            &format!("HSET hero:job:{id} id {id} status dispatched script"),
            &["6 * 7"],
        );
        redis.run(&format!("{push} hero:q:work:type:osis {id}"));
        let (_, reply): (String, String) = redis.ask(&format!("BLPOP hero:q:reply:{id} 20"));
        let reply: serde_json::Value = serde_json::from_str(&reply).expect("a reply is JSON");
        let expected = serde_json::json!({"job_id": id, "status": "finished", "output": "42"});
        assert_eq!(reply, expected);
        assert_eq!(field(&redis, id, "status").as_deref(), Some("finished"));
        assert_eq!(field(&redis, id, "actor").as_deref(), Some("osis:default:1"));
    }
}

#[test]
fn output_of_a_foreign_actor_is_printed() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let exec = hero.begin(&["exec", "-t", "python", "-e", "echo hi"]);
    let (_, id): (String, String) = redis.ask("BLPOP hero:q:work:type:python 20");
    redis.run(&format!("HSET hero:job:{id} status started"));
    assert_eq!(field(&redis, &id, "script").as_deref(), Some("echo hi"));
    redis.ask_with::<i64, _>(&format!("HSET hero:job:{id} status finished output"), &["hi there"]);
    let reply = format!(r#"{{"job_id":"{id}","status":"finished","output":"hi there"}}"#);
    redis.ask_with::<i64, _>(&format!("LPUSH hero:q:reply:{id}"), &[reply]);
    exec.ends().code(0).stdout("hi there\n");
}

#[test]
fn end_by_a_foreign_actor_without_a_reply_is_noticed() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let exec = hero.begin(&["exec", "-t", "python", "-e", "false"]);
    let (_, id): (String, String) = redis.ask("BLPOP hero:q:work:type:python 20");
    redis.ask_with::<i64, _>(&format!("HSET hero:job:{id} status error error"), &["it broke"]);
    exec.ends().code(1).says("it broke");
}

#[test]
fn invalid_job_ends_in_error_with_the_name_of_its_field() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let invalid: [&[u8]; 1] = [b"\xff\xfe"];
    redis.ask_with::<i64, _>("HSET hero:job:utf8 status dispatched script", &invalid);
    redis.run("HSET hero:job:empty status dispatched");
    redis.run("HSET hero:job:soon status dispatched script 1 timeout soon");
    redis.run("HSET hero:job:long status dispatched script 1 timeout 999999999");
    redis.run("HSET hero:job:group status dispatched script 1 group a:b");
    redis.run("HSET hero:job:prio status dispatched script 1 priority 9");
    redis.run("HSET hero:job:fine status dispatched script 1");
    redis.run("RPUSH hero:q:work:type:osis utf8 empty soon long group prio fine");
    let _osis = hero.actor("osis-default-1").start();
    until(&redis, "fine", "finished");
    for (id, error) in [
        ("utf8", "invalid job: script is not UTF-8"),
        ("empty", "invalid job: script is missing"),
        ("soon", "invalid job: timeout `soon`"),
        ("long", "invalid job: timeout `999999999`"),
        ("group", "invalid job: group `a:b`"),
        ("prio", "invalid job: priority `9`"),
    ] {
        until(&redis, id, "error");
        let said = field(&redis, id, "error").unwrap_or_default();
        assert!(said.starts_with(error), "{id}: {said}");
    }
    assert!(redis.list("hero:q:dead:type:osis").is_empty(), "none of them is worth a retry");
}

#[test]
fn invalid_ids_in_a_queue_are_skipped_and_logged_once() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    redis.run("HSET hero:job:done status finished script 1 leftover always");
    redis.run("HSET hero:job:fine status dispatched script 1");
    redis.run("SET hero:job:text text");
    let garbage: [&[u8]; 8] =
        [b"gone", b"done", b"text", b"\xff\x00", b"a:b", b"fine", b"fine", b"fine"];
    redis.ask_with::<i64, _>("RPUSH hero:q:work:type:osis", &garbage);
    let osis = hero.actor("osis-default-1").start();
    until(&redis, "fine", "finished");
    wait_until("all of them are counted", || {
        redis.field("hero:meta:queue:stats:type:osis", "skipped").as_deref() == Some("7")
    });
    wait_until("they are logged", || osis.err().contains("skipped ids in work queues"));
    assert_eq!(osis.err().matches("skipped ids in work queues").count(), 1);
    assert_eq!(field(&redis, "fine", "attempt").as_deref(), Some("1"));
}

#[test]
fn queue_with_the_wrong_redis_type_is_logged_and_the_others_are_served() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    redis.run("SET hero:q:work:type:osis:group:default text");
    let osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
    wait_until("the key is named", || osis.err().contains("hero:q:work:type:osis:group:default"));
    assert_eq!(osis.err().matches("cannot read a work queue").count(), 1, "{}", osis.err());
    hero.run(&["submit", "-t", "osis", "-g", "default", "-e", "1"])
        .code(69)
        .says("hero:q:work:type:osis:group:default");
}

#[test]
fn presence_shows_process_host_and_capabilities() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-io-3").tasks(2).start();
    let key = "hero:meta:actor:inst:osis:io:3";
    let read = || -> serde_json::Value {
        serde_json::from_str(&redis.ask::<String>(&format!("GET {key}"))).expect("JSON")
    };
    let presence = read();
    assert_eq!(presence["pid"], osis.pid());
    assert_eq!((&presence["tasks"], &presence["running"]), (&2.into(), &0.into()));
    assert_eq!(presence["state"], "ready");
    assert!(presence["hostname"].as_str().is_some_and(|name| !name.is_empty()));
    assert!(presence["boot_id"].as_str().is_some_and(|id| uuid::Uuid::parse_str(id).is_ok()));
    let capabilities = presence["capabilities"].as_array().expect("a list");
    assert!(!capabilities.is_empty());
    for time in ["started_at", "last_heartbeat"] {
        let time = presence[time].as_str().expect("a time");
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
    wait_until("it is refreshed", || read()["last_heartbeat"] != presence["last_heartbeat"]);
    let ttl_s: i64 = redis.ask(&format!("TTL {key}"));
    assert!((1..=15).contains(&ttl_s), "{ttl_s}");
    let listed = hero.run(&["--json", "actor", "list"]).code(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["actors"].as_array().map(Vec::len), Some(1));
}
