//! Actors of foreign programs that write their presence in the six fields of the naming document.

use serde_json::Value;

use super::bash;
use crate::support::{Hero, Redis, wait_until};

const TYPE_LIST: &str = "hero:q:ctl:type:bash";
const LIST: &str = "hero:q:ctl:type:bash:group:default:inst:7";
const PRESENCE: &str = "hero:meta:actor:inst:bash:default:7";

/// Writes the presence of an actor that no program of Hero is.
fn appear(redis: &Redis) {
    let presence = serde_json::json!({ "pid": 4711, "hostname": "farm", "version": "0.9",
        "started_at": "2026-01-01T00:00:00Z", "capabilities": ["rhai"],
        "last_heartbeat": "2026-01-01T00:00:05Z" });
    redis.ask_with::<String, _>(&format!("SET {PRESENCE}"), &[presence.to_string()]);
}

fn state_of(hero: &Hero, actor: &str) -> Option<String> {
    let listed = hero.run(&["actor", "list", "--json"]).code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let mut actors = listed["actors"].as_array().expect("an array").iter();
    actors
        .find(|one| one["actor"] == actor)
        .and_then(|one| one["state"].as_str().map(str::to_owned))
}

#[track_caller]
fn is_found(redis: &Redis, hero: &Hero) {
    wait_until("it is listed", || {
        // It beats.
        appear(redis);
        state_of(hero, "bash:default:7").as_deref() == Some("foreign")
    });
}

#[track_caller]
fn becomes(hero: &Hero, state: &str) {
    let what = format!("the actor of Hero is {state}");
    wait_until(&what, || state_of(hero, "bash:default:1").as_deref() == Some(state));
}

#[test]
fn a_foreign_actor_is_listed_and_keeps_its_name() {
    let redis = Redis::start();
    let hero = bash(&redis);
    appear(&redis);
    let refused = hero.actor("bash-default-7").begin().ends();
    assert!(refused.stderr.contains("farm") && refused.stderr.contains("4711"), "{refused:?}");
    let _supervisor = hero.supervisor().start();
    is_found(&redis, &hero);
    let listed = hero.run(&["actor", "list"]).code(0).stdout;
    assert!(listed.contains("foreign") && listed.contains("farm"), "{listed}");
    redis.run(&format!("DEL {PRESENCE}"));
    assert_eq!(state_of(&hero, "bash:default:7"), None);
}

#[test]
fn a_stop_reaches_the_job_of_a_foreign_actor() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    appear(&redis);
    is_found(&redis, &hero);
    let fields = ["status", "started", "script_type", "bash", "script", "sleep 60"];
    redis.ask_with::<i64, _>("HSET hero:job:theirs", &fields);
    hero.run(&["job", "stop", "theirs"]).code(0);
    assert_eq!(redis.awaited(LIST), "theirs");
    assert_eq!(redis.awaited(TYPE_LIST), "theirs");
}

#[test]
fn a_message_for_a_type_reaches_foreign_actors_and_those_of_hero() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    appear(&redis);
    is_found(&redis, &hero);
    let (drain, resume) = (r#"{"cmd":"drain"}"#, r#"{"cmd":"resume"}"#);
    redis.push(TYPE_LIST, &[drain]);
    becomes(&hero, "draining");
    redis.push(TYPE_LIST, &[resume]);
    becomes(&hero, "ready");
    assert_eq!(redis.list(TYPE_LIST), [drain, resume], "they are left for the foreign program");
    assert_eq!(redis.awaited(TYPE_LIST), drain);
    redis.push(TYPE_LIST, &[drain]);
    becomes(&hero, "draining");
    assert_eq!(redis.list(TYPE_LIST), [resume, drain]);
    redis.run(&format!("DEL {PRESENCE}"));
    wait_until("nobody is left to read them", || redis.list(TYPE_LIST).is_empty());
    assert_eq!(state_of(&hero, "bash:default:1").as_deref(), Some("draining"));
}

#[test]
fn a_message_for_a_type_needs_no_supervisor() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _actor = hero.actor("bash-default-1").start();
    redis.push(TYPE_LIST, &[r#"{"cmd":"drain"}"#]);
    becomes(&hero, "draining");
    assert!(redis.list(TYPE_LIST).is_empty());
}
