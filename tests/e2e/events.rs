//! The event log of jobs, and the warning about long waits.

use crate::support::{Hero, Redis, keys, wait_until};

use super::{ENDLESS, field, until};

fn with_events(redis: &Redis) -> Hero {
    Hero::on(redis).set("job.events", "true")
}

/// Returns the states that the printed events of a job name.
fn path(hero: &Hero, id: &str) -> String {
    let printed = hero.run(&["events", "--job", id]).code(0).stdout;
    let steps: Vec<String> = printed
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!((words[1], words[4]), (id, "→"), "{line}");
            format!("{}→{}", words[3], words[5])
        })
        .collect();
    steps.join(" ")
}

#[test]
fn every_transition_of_a_job_is_an_event_that_can_be_followed() {
    let redis = Redis::start();
    let hero = with_events(&redis);
    let follower = hero.begin(&["--json", "events", "-f", "--since", "2020-01-01T00:00:00Z"]);
    let first = hero.run(&["submit", "-t", "osis", "-e", "1", "--id", "a"]);
    first.code(0);
    hero.run(&[
        "submit",
        "-t",
        "osis",
        "-e",
        "throw 1",
        "--retries",
        "1",
        "--id",
        "b",
        "--after",
        "a",
    ])
    .code(0);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    until(&redis, "b", "error");
    assert_eq!(path(&hero, "a"), "-→dispatched dispatched→started started→finished");
    assert_eq!(
        path(&hero, "b"),
        "-→waiting_for_prerequisites waiting_for_prerequisites→dispatched dispatched→started \
         started→scheduled scheduled→dispatched dispatched→started started→error"
    );
    hero.run(&["job", "delete", "a"]).code(0);
    assert!(path(&hero, "a").ends_with("started→finished finished→deleted"));
    wait_until("the follower has heard of it", || follower.out().contains("\"deleted\""));
    let events: Vec<serde_json::Value> =
        follower.out().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(events.len(), 11);
    let started = &events.iter().find(|event| event["to"] == "started").expect("one started");
    assert_eq!((&started["actor"], &started["type"]), (&"osis:default:1".into(), &"osis".into()));
    assert!(hero.run(&["events", "--type", "python"]).code(0).stdout.is_empty());
    assert!(hero.run(&["events", "--since", "2999-01-01T00:00:00Z"]).code(0).stdout.is_empty());
}

#[test]
fn no_event_is_kept_unless_enabled() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
    assert_eq!(redis.all("EVENTS"), [] as [&str; 0]);
    hero.run(&["events"]).code(0).stdout("").says("job.events is false");
}

#[test]
fn jobs_run_though_the_event_log_is_broken() {
    let redis = Redis::start();
    redis.spoil(&keys().events());
    let hero = with_events(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "1"]).code(0).stdout("1\n");
}

#[test]
fn long_wait_in_a_queue_is_logged_once_at_its_begin_and_once_at_its_end() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("supervisor.wait_warning", "\"50ms\"");
    let supervisor = hero.supervisor().start();
    hero.run(&["submit", "-t", "osis", "-e", "1", "--id", "a"]).code(0);
    let long = "the first job of queue type:osis waits for longer than 50ms";
    wait_until("the wait is told", || supervisor.err().contains(long));
    let counted = || redis.field(&keys::stats("osis"), "long_waits");
    assert_eq!(counted().as_deref(), Some("1"));
    let _osis = hero.actor("osis-default-1").start();
    until(&redis, "a", "finished");
    let over = "no job of queue type:osis waits for longer than 50ms any more";
    wait_until("its end is told", || supervisor.err().contains(over));
    assert_eq!(supervisor.err().matches(long).count(), 1, "once for each time");
    assert_eq!(redis.all("SLOW"), [] as [&str; 0]);
}

#[test]
fn time_in_the_past_means_now_and_a_negative_delay_is_rejected() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "-e", "1", "--at", "2020-01-01T00:00:00Z"])
        .code(0)
        .stdout("1\n");
    hero.run(&["submit", "-t", "osis", "-e", "1", "--delay", "-5s"]).code(65).says("--delay");
    hero.run(&["submit", "-t", "osis", "-e", "1", "--delay=-5s"]).code(65).says("--delay");
    hero.run(&["submit", "-t", "osis", "-e", "1", "--at", "tomorrow"]).code(65).says("--at");
    hero.run(&["submit", "-t", "osis", "-e", "1", "--at", "2020-01-01 09:00"])
        .code(65)
        .says("has passed");
    hero.run(&["submit", "-t", "osis", "-e", ENDLESS, "--delay", "9999999d"])
        .code(65)
        .says("too far in the future");
}

#[test]
fn local_time_is_that_of_the_caller_and_the_hash_has_utc() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).in_zone("Europe/Brussels");
    let submit = |id: &str, more: &[&str]| {
        let base = ["submit", "-t", "osis", "-e", "1", "--id", id, "--at", "2100-07-01 18:00"];
        hero.run(&[&base, more].concat()).code(0);
        field(&redis, id, "run_at").expect("it is scheduled")
    };
    assert_eq!(submit("a", &[]), "2100-07-01T16:00:00.000Z");
    assert_eq!(submit("b", &["--timezone", "America/New_York"]), "2100-07-01T22:00:00.000Z");
    let shown = hero.run(&["job", "show", "a"]).code(0).stdout;
    assert!(shown.contains("  2100-07-01 18:00:00.000+02:00\n"), "{shown}");
    let shown = hero.run(&["job", "show", "a", "--json"]).code(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("one document");
    assert_eq!(shown["run_at"], "2100-07-01T16:00:00.000Z");
}
