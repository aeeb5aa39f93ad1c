//! Tests of durability: the log and `hero check` say what Redis keeps, and `redis.require_durable` refuses
//! a Redis that forgets.

use crate::support::proxy::{Lane, Mode};
use crate::support::{Hero, Redis, wait_until};

#[test]
fn log_says_what_redis_keeps_and_what_makes_it_durable() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).with_default_user();
    let osis = hero.actor("osis-default-1").start();
    let supervisor = hero.supervisor().start();
    for log in [osis.err(), supervisor.err()] {
        assert!(log.contains("keeps nothing (appendonly no, no save points)"), "{log}");
        assert!(log.contains("redis-cli CONFIG SET appendonly yes"), "{log}");
        assert!(log.contains("redis-cli CONFIG SET appendfsync everysec"), "{log}");
    }
    redis.run("CONFIG SET appendonly yes");
    redis.run("CONFIG SET appendfsync everysec");
    let sal = hero.actor("sal-default-1").start();
    assert!(sal.err().contains(
        "keeps every write, except the last second (appendonly yes, appendfsync everysec)"
    ));
    assert!(!sal.err().contains("CONFIG SET"), "{}", sal.err());
}

#[test]
fn change_of_what_redis_keeps_is_logged_and_in_the_status_of_the_supervisor() {
    let redis = Redis::that_keeps();
    let supervisor = Hero::on(&redis).with_default_user().quick_sweeps().supervisor().start();
    let said = |text: &str| wait_until(text, || supervisor.err().contains(text));
    redis.run("CONFIG RESETSTAT");
    let mut asked = 0;
    wait_until("it has checked", || {
        asked += 1;
        let stats: String = redis.ask("INFO commandstats");
        let calls = stats.split_once("cmdstat_info:calls=").map_or("0", |(_, rest)| rest);
        let calls: u32 = calls.split(',').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        // This call is not counted yet.
        calls >= asked
    });
    redis.run("CONFIG SET appendonly no");
    said("now keeps nothing");
    said("redis-cli CONFIG SET appendonly yes");
    redis.run("CONFIG SET appendonly yes");
    said("now keeps every write");
    assert_eq!(supervisor.err().matches(" now keeps ").count(), 2, "{}", supervisor.err());
}

#[test]
fn redis_that_forgets_is_refused_where_durability_is_required() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).with_default_user().set("redis.require_durable", "true");
    for unit in ["osis-default-1", "supervisor"] {
        let done = hero.actor(unit).begin().ends().code(78);
        let done = done.says("redis.require_durable is set, but").says("CONFIG SET appendonly yes");
        assert!(!done.stderr.contains("ready: "), "{}", done.stderr);
    }
    hero.run(&["check", "--redis"]).code(78).says("CONFIG SET appendonly yes");
    redis.run("CONFIG SET appendonly yes");
    redis.run("CONFIG SET appendfsync no");
    hero.supervisor().begin().ends().code(78).says("appendfsync no");
    redis.run("CONFIG SET appendfsync everysec");
    redis.run("CONFIG SET maxmemory-policy allkeys-lru");
    hero.supervisor().begin().ends().code(78).says("maxmemory-policy is allkeys-lru");
    redis.run("CONFIG SET maxmemory-policy noeviction");
    let _supervisor = hero.supervisor().start();
}

#[test]
fn unit_waits_for_a_redis_that_does_not_say_whether_it_is_durable() {
    let redis = Redis::that_keeps();
    let (lane, socket) = (redis.folder().join("lane"), redis.folder().join("redis.sock"));
    let url = format!("redis+unix://{}", lane.display());
    let lane = Lane::open(&lane, &socket);
    lane.set(Mode::Cut("\r\nINFO\r\n"));
    let hero = Hero::on(&redis).with_default_user().set("redis.require_durable", "true");
    let osis = hero.set("redis.url", &format!("{url:?}"));
    let osis = osis.actor("osis-default-1").begin();
    wait_until("it waits", || osis.err().contains("trying again until it answers"));
    lane.set(Mode::Pass);
    wait_until("it is ready", || osis.err().contains("ready: "));
}

#[test]
fn user_without_config_learns_what_info_says_and_is_refused_nothing() {
    let redis = Redis::that_keeps();
    redis.run("ACL SETUSER named on >secret ~* &* +@all -config");
    redis.run("ACL SETUSER poor on >secret ~* &* +@all -config -info");
    let file = redis.folder().join("password");
    std::fs::write(&file, "secret").expect("writing the password");
    let login = |user: &str| {
        let hero = Hero::on(&redis).with_default_user().set("redis.username", &format!("{user:?}"));
        hero.set("redis.password_file", &format!("{:?}", file.display().to_string()))
    };
    let named = login("named").set("redis.require_durable", "true");
    let osis = named.actor("osis-default-1").start();
    assert!(
        osis.err().contains("keeps every write, except the last second (appendonly yes)"),
        "{}",
        osis.err()
    );
    named.run(&["status"]).code(0);
    named.run(&["check"]).code(0);
    assert!(redis.ask::<Vec<redis::Value>>("ACL LOG").is_empty(), "redis has refused a command");

    let poor = login("poor");
    let osis = poor.actor("osis-default-2").start();
    assert!(osis.err().contains("keeps unknown: its user may not call INFO"), "{}", osis.err());
    let poor = poor.set("redis.require_durable", "true");
    poor.actor("osis-default-3").begin().ends().code(78).says("allow +info");
}

#[test]
fn check_distinguishes_a_redis_that_is_down_from_one_that_refuses_the_login() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis).with_default_user();
    let done = hero.run(&["check", "--redis"]).code(0);
    let line = "redis: keeps every write (appendonly yes, appendfsync always)\n";
    assert!(done.stdout.contains(line), "{}", done.stdout);
    redis.run("CONFIG SET requirepass secret");
    hero.run(&["check", "--redis"]).code(77).says("NOAUTH");
    hero.run(&["check"]).code(0).says("NOAUTH");
    redis.kill();
    hero.run(&["check", "--redis"]).code(69).says("cannot be reached");
    hero.run(&["check"]).code(0).says("cannot be reached");
    redis.start_again();
    wait_until("it answers again", || hero.run(&["check", "--redis"]).code == 0);
}
