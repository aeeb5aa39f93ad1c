//! Jobs for groups and instances without live actors.

use crate::support::{Hero, Redis, keys, wait_until};

fn hero(redis: &Redis) -> Hero {
    Hero::on(redis).set("supervisor.fallback_after", "\"50ms\"")
}

#[track_caller]
fn submit(hero: &Hero, id: &str, options: &[&str]) {
    let all = [&["submit", "-t", "osis", "--id", id, "-e", "1"], options].concat();
    hero.run(&all).code(0).stdout(&format!("{id}\n"));
}

fn field(redis: &Redis, id: &str, name: &str) -> Option<String> {
    redis.field(&keys::job(id), name)
}

#[track_caller]
fn has_finished(redis: &Redis, id: &str) {
    wait_until(&format!("job {id} has finished"), || {
        field(redis, id, "status").as_deref() == Some("finished")
    });
}

#[test]
fn a_job_falls_back_to_the_next_queue_with_a_live_actor() {
    let redis = Redis::start();
    let hero = hero(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    submit(&hero, "group", &["-g", "io", "--fallback", "type"]);
    submit(&hero, "instance", &["-i", "9", "--fallback", "group", "--priority", "0"]);
    submit(&hero, "far", &["-g", "io", "-i", "9", "--fallback", "type"]);
    for (id, from) in [
        ("group", "type:osis:group:io"),
        ("instance", "type:osis:group:default:inst:9:prio:0"),
        ("far", "type:osis:group:io:inst:9"),
    ] {
        has_finished(&redis, id);
        assert_eq!(field(&redis, id, "fell_back_from").as_deref(), Some(from));
    }
    assert!(redis.members(&keys::ready("type:osis:group:io")).is_empty());
    assert!(redis.list(&keys::work("type:osis:group:io")).is_empty());
}

#[test]
fn a_job_goes_no_farther_than_it_may() {
    let redis = Redis::start();
    let hero = hero(&redis).set("type.osis.fallback", "\"type\"");
    let _actor = hero.actor("osis-default-1").start();
    // An actor that lives, though it never takes a job.
    redis.run(&format!("SET {} {{}}", keys::presence("osis:busy:1")));
    redis.put(&keys().foreign_actors(), 9_000_000_000_000_000, "osis:busy:1");
    hero.run(&["queue", "pause", "type:osis:group:held", "--force"]).code(0);
    submit(&hero, "served", &["-g", "busy"]);
    submit(&hero, "paused", &["-g", "held"]);
    submit(&hero, "none", &["-g", "io", "--fallback", "none"]);
    submit(&hero, "near", &["-g", "io", "-i", "9", "--fallback", "group"]);
    submit(&hero, "last", &["-g", "io"]);
    let _supervisor = hero.supervisor().start();
    has_finished(&redis, "last");
    wait_until("it is in its group", || field(&redis, "near", "instance").is_none());
    for (id, queue) in [
        ("served", "type:osis:group:busy"),
        ("paused", "type:osis:group:held"),
        ("none", "type:osis:group:io"),
        ("near", "type:osis:group:io"),
    ] {
        assert!(redis.list(&keys::work(queue)).contains(&id.to_owned()), "{id}");
    }
}

#[test]
fn submit_warns_if_no_live_actor_claims_jobs_of_the_queue() {
    let redis = Redis::start();
    let hero = hero(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let warned = hero.run(&["submit", "-t", "osis", "-g", "io", "-e", "1"]).code(0);
    assert!(
        warned.stderr.contains("waits for an actor: no live one claims jobs of type:osis:group:io"),
        "{warned:?}"
    );
    let silent = hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    assert_eq!(silent.stderr, "");
}
