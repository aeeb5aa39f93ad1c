//! Control messages to running actors: stop, drain, resume, ping, shutdown.

use crate::support::{Hero, Redis, keys, wait_until};

use super::{ENDLESS, field, ping, until};

#[test]
fn stopped_job_ends_at_once_and_the_next_one_runs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").tasks(1).start();
    let exec = hero.begin(&["exec", "-t", "osis", "--id", "a", "--retries", "3", "-e", ENDLESS]);
    until(&redis, "a", "started");
    hero.run(&["job", "stop", "a"]).code(0);
    exec.ends().code(1).says("job a was stopped by ");
    hero.run(&["job", "wait", "a"]).code(1).says("job a was stopped by ");
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("error"));
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
}

#[test]
fn stopped_job_in_a_queue_never_starts() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    hero.run(&["job", "stop", "a"]).code(0);
    hero.run(&["job", "wait", "a"]).code(1).says("stopped");
}

#[test]
fn job_that_was_asked_to_stop_in_an_earlier_attempt_does_not_begin() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", ENDLESS]).code(0);
    // As a foreign actor leaves it that gives the job back.
    redis.set_field(&keys::job("a"), "stop_requested", "1");
    let _osis = hero.actor("osis-default-1").start();
    until(&redis, "a", "error");
    assert_eq!(field(&redis, "a", "error").as_deref(), Some("stopped_by_request"));
}

#[test]
fn stop_at_the_wrong_actor_is_passed_on_to_the_actor_that_runs_the_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _runs = hero.actor("osis-default-1").start();
    let _other = hero.actor("osis-default-2").start();
    let submit = ["submit", "-t", "osis", "-i", "1", "--id", "a", "-e", ENDLESS];
    hero.run(&submit).code(0);
    until(&redis, "a", "started");
    redis.push(&keys::control("osis:default:2"), &["a"]);
    until(&redis, "a", "error");
    assert_eq!(field(&redis, "a", "error").as_deref(), Some("stopped_by_request"));
}

#[test]
fn stop_at_an_actor_ends_a_queued_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["submit", "-t", "sal", "--id", "a", "-e", "1"]).code(0);
    redis.push(&keys::control("osis:default:1"), &[r#"{"cmd":"stop","job_id":"a"}"#]);
    until(&redis, "a", "error");
    assert_eq!(field(&redis, "a", "error").as_deref(), Some("stopped"));
}

#[test]
fn drained_actor_claims_nothing_until_it_resumes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let state = |wanted: &str| {
        let text: String = redis.get(&keys::presence("osis:default:1"));
        text.contains(&format!("\"state\":\"{wanted}\""))
    };
    hero.run(&["actor", "drain", "osis-default-1"]).code(0);
    wait_until("it drains", || state("draining"));
    hero.run(&["exec", "--wait", "300ms", "-t", "osis", "--id", "a", "-e", "1"]).code(75);
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    hero.run(&["actor", "resume", "osis-default-1"]).code(0);
    hero.run(&["job", "wait", "a"]).code(0).stdout("1\n");
    wait_until("it is ready", || state("ready"));
}

#[test]
fn ping_is_answered_while_all_tasks_are_busy() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").tasks(1).start();
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", ENDLESS]).code(0);
    until(&redis, "a", "started");
    redis.push(&keys::control("osis:default:1"), &[ping(&keys::reply("me"))]);
    assert_eq!(redis.awaited(&keys::reply("me")), "pong");
}

#[test]
fn ping_to_another_list_and_malformed_messages_are_dropped() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").start();
    let (own, other) = (keys::reply("me"), keys::work("type:sal"));
    let messages = [&ping(&other), r#"{"cmd":"dance"}"#, "{", &ping(&own)];
    redis.push(&keys::control("osis:default:1"), &messages);
    redis.awaited(&own);
    assert!(redis.list(&other).is_empty());
    assert_eq!(osis.err().matches("dropped a control message").count(), 2, "{}", osis.err());
}

#[test]
fn actor_shut_down_by_a_message_exits_with_0() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").start();
    hero.run(&["actor", "stop", "osis-default-1"]).code(0);
    osis.ends().code(0);
    hero.run(&["actor", "drain", "osis-default-1"]).code(66);
}

#[test]
fn one_process_serves_several_actors_of_several_types() {
    let redis = Redis::start();
    let actors = r#"[{ type = "osis", instance = 1, tasks = 2 }, { type = "sal", group = "io", instance = 3 }]"#;
    let hero =
        Hero::on(&redis).set("unit.mixed.role", "\"actor\"").set("unit.mixed.actors", actors);
    let _mixed = hero.actor("mixed").start();
    assert_eq!(redis.all("PRESENCE"), ["osis:default:1", "sal:io:3"].map(keys::presence));
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
    let sal = ["exec", "-t", "sal", "-g", "io", "-i", "3", "-e", "run_command(\"echo 2\").stdout"];
    hero.run(&sal).code(0).stdout("2\n");
    // A busy type does not block the others.
    for id in ["a", "b", "c"] {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", ENDLESS]).code(0);
    }
    until(&redis, "b", "started");
    hero.run(&sal).code(0).stdout("2\n");
    assert_eq!(field(&redis, "c", "status").as_deref(), Some("dispatched"));
}

#[test]
fn live_actor_answers_a_ping() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["actor", "ping", "osis-default-1"]).code(66).says("it is not live");
    let _osis = hero.actor("osis-default-1").start();
    let pinged = hero.run(&["actor", "ping", "osis:default:1"]).code(0).stdout;
    assert!(pinged.starts_with("osis:default:1 answered after "), "{pinged}");
    hero.run(&["actor", "ping", "osis"]).code(65).says("osis");
}

#[test]
fn stop_pushed_while_its_actor_is_down_is_obeyed_before_the_job_starts() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for id in ["a", "b", "c"] {
        hero.run(&["submit", "-t", "osis", "-i", "1", "--id", id, "-e", "1"]).code(0);
    }
    let stops = ["a", r#"{"cmd":"stop","job_id":"b"}"#];
    redis.push(&keys::control("osis:default:1"), &stops);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["job", "wait", "c"]).code(0).stdout("1\n");
    for id in ["a", "b"] {
        assert_eq!(field(&redis, id, "error").as_deref(), Some("stopped"), "{id}");
        assert_eq!(field(&redis, id, "started_at"), None, "{id}");
    }
}

#[test]
fn message_for_a_group_is_forwarded_by_the_supervisor() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _io = hero.actor("osis-io-1").start();
    let _other = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    let list = keys::control("osis:io:1").replace(":inst:1", "");
    redis.push(&list, &["drain"]);
    let is_draining = |actor: &str| {
        let text: String = redis.get(&keys::presence(actor));
        text.contains("\"state\":\"draining\"")
    };
    wait_until("it drains", || is_draining("osis:io:1"));
    assert!(!is_draining("osis:default:1"));
}

#[test]
fn bare_words_are_orders_and_an_empty_text_is_refused() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").start();
    let list = keys::control("osis:default:1");
    let says = |text: &str| wait_until(text, || osis.err().contains(text));
    redis.push(&list, &["", "ping", "drain"]);
    says("it is empty");
    says("answers a ping");
    says("drains: claims no more jobs");
    redis.push(&list, &["resume"]);
    says("resumes");
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
    redis.push(&list, &["shutdown"]);
    osis.ends().code(0);
}
