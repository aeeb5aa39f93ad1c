//! The start of an actor whose presence is there already: of its life before a power cut, or of a clone of the machine.

use serde_json::{Value, json};

use crate::support::{Hero, Redis, keys, wait_until};

/// Leaves the presence of an actor on a machine of this name that was started another time, for so many seconds.
fn leave_presence(redis: &Redis, mut presence: Value, heartbeat: &str, seconds: u64) {
    presence["machine"] = json!("another start");
    presence["last_heartbeat"] = json!(heartbeat);
    redis.ask_with::<(), _>(
        &format!("SETEX {} {seconds}", keys::presence("osis:default:1")),
        &[presence.to_string()],
    );
}

/// Returns the presence of an actor that has died.
fn presence_of_dead(hero: &Hero, redis: &Redis) -> Value {
    let mut actor = hero.actor("osis-default-1").start();
    let text: String = redis.ask(&format!("GET {}", keys::presence("osis:default:1")));
    actor.kill();
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn actor_waits_for_the_presence_that_a_power_cut_has_left() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let presence = presence_of_dead(&hero, &redis);
    leave_presence(&redis, presence, "2026-01-01T00:00:00.000Z", 2);
    let actor = hero.actor("osis-default-1").start();
    assert!(actor.err().contains("waiting until its presence expires"), "{}", actor.err());
    hero.run(&["exec", "-t", "osis", "-e", "40 + 2"]).code(0).stdout("42\n");
}

#[test]
fn clone_of_a_machine_is_reported_as_one() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let presence = presence_of_dead(&hero, &redis);
    leave_presence(&redis, presence.clone(), "2026-01-01T00:00:00.000Z", 60);
    let actor = hero.actor("osis-default-1").begin();
    wait_until("the actor waits", || actor.err().contains("waiting until its presence expires"));
    leave_presence(&redis, presence, "2026-01-01T00:00:05.000Z", 60);
    actor.ends().code(73).says("such as a clone of this one");
}

#[test]
fn machines_with_one_machine_id_are_reported() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut presence = presence_of_dead(&hero, &redis);
    presence["labels"]["machine"] = json!("0123456789abcdef");
    let now = u64::try_from(jiff::Timestamp::now().as_microsecond()).expect("a time");
    for (place, host) in ["one", "two"].into_iter().enumerate() {
        let actor = format!("osis:default:{}", place + 1);
        presence["hostname"] = json!(host);
        redis.ask_with::<(), _>("SET", &[keys::presence(&actor), presence.to_string()]);
        redis.put(&keys::prefix("ACTORS"), now, &actor);
    }
    let told = hero.run(&["status", "--check"]).stdout;
    let problem = "one and two have one machine id: the label machine = \"0123456789abcdef\"";
    assert!(told.contains(problem), "{told}");
}

#[test]
fn redis_with_too_many_connections_is_reported_as_that() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _held = redis.link();
    redis.run("CONFIG SET maxclients 1");
    let refused = hero.run(&["queue", "list"]);
    assert!(refused.stderr.contains("maxclients"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("roken pipe"), "{}", refused.stderr);
}
