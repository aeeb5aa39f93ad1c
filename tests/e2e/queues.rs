//! Commands for queues: pause, resume, purge.

use serde_json::{Value, json};

use crate::support::{Hero, Redis, Served, keys};

use super::{field, until};

#[test]
fn paused_queue_keeps_its_jobs_until_it_is_resumed() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["queue", "pause", "type:osis"]).code(0).stdout("type:osis paused\n");
    hero.run(&["queue", "pause", "type:osis:prio:1"])
        .code(0)
        .stdout("type:osis:prio:1 was paused already\n");
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "osis", "--id", "b", "--priority", "0", "-e", "2"]).code(0);
    hero.run(&["exec", "-t", "osis", "-g", "default", "-e", "3"]).code(0).stdout("3\n");
    for id in ["a", "b"] {
        assert_eq!(field(&redis, id, "status").as_deref(), Some("dispatched"));
    }
    let listed = hero.run(&["queue", "list", "--json"]).code(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let paused =
        listed["queues"].as_array().expect("a list").iter().filter(|q| q["paused"] == true);
    assert_eq!(paused.count(), 3);
    hero.run(&["queue", "resume", "type:osis:prio:0"]).code(0).stdout("type:osis:prio:0 resumed\n");
    hero.run(&["job", "wait", "b"]).code(0).stdout("2\n");
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    hero.run(&["queue", "resume", "--json", "type:osis"])
        .code(0)
        .stdout("{\"resumed\":[\"type:osis\",\"type:osis:prio:2\"]}\n");
    hero.run(&["job", "wait", "a"]).code(0).stdout("1\n");
}

#[test]
fn pause_of_all_queues_or_of_a_group_holds_for_those_that_come_later() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["queue", "pause", "--type", "osiss"]).code(65).says("did you mean `type:osis`?");
    hero.run(&["queue", "pause", "--type", "later", "--force"]).code(0);
    hero.run(&["queue", "resume", "--type", "later"]).code(0);
    hero.run(&["queue", "pause", "--all"]).code(0).stdout("all queues paused\n");
    hero.run(&["queue", "pause", "--all"]).code(0).stdout("all queues were paused already\n");
    // A group that nobody knew.
    let _new = hero.actor("osis-new-1").start();
    hero.run(&["submit", "-t", "osis", "-g", "new", "--id", "a", "-e", "1"]).code(0);
    let first = |args: &[&str]| {
        let text = hero.run(args).code(0).stdout;
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first(&["status"]), "PAUSED  all queues: hero queue resume --all");
    let list = hero.run(&["queue", "list"]).code(0).stdout;
    assert!(list.ends_with("PAUSED  all queues: hero queue resume --all\n"), "{list}");
    let list = hero.run(&["--json", "queue", "list"]).code(0).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["pauses"], serde_json::json!(["*"]));
    hero.run(&["job", "show", "a"])
        .code(0)
        .says("hero: job a waits for its queue, which is paused: hero queue resume --all");
    hero.run(&["queue", "resume", "type:osis:group:new"]).code(65).says("stays paused");
    hero.run(&["queue", "pause", "--group", "new"])
        .code(0)
        .stdout("all queues of group new paused\n");
    hero.run(&["queue", "pause", "type:sal"]).code(0);
    hero.run(&["queue", "resume", "--json", "--type", "sal"])
        .code(0)
        .stdout("{\"resumed\":[\"type:sal:prio:0\",\"type:sal\",\"type:sal:prio:2\"]}\n");
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    redis.ask::<i64>(&format!("SREM {} *", keys().paused()));
    // The queue of the type is no queue of the group.
    hero.run(&["exec", "-t", "osis", "-e", "3"]).code(0).stdout("3\n");
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    hero.run(&["queue", "resume", "--all"]).code(0).stdout("all queues of group new resumed\n");
    until(&redis, "a", "finished");
    hero.run(&["queue", "resume", "--all"]).code(0).stdout("");
}

/// Another client, or an older Hero, wakes no actor.
#[test]
fn actor_finds_a_resumed_queue_without_a_message() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["queue", "pause", "type:osis"]).code(0);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    let _osis = hero.actor("osis-default-1").start();
    assert_eq!(field(&redis, "a", "status").as_deref(), Some("dispatched"));
    redis.delete(&keys().paused());
    until(&redis, "a", "finished");
}

#[test]
fn purge_ends_waiting_jobs_and_prints_their_number() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for id in ["a", "b"] {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", "1"]).code(0);
    }
    hero.run(&["submit", "-t", "osis", "--id", "urgent", "--priority", "0", "-e", "1"]).code(0);
    hero.run(&["queue", "purge", "type:osis:prio:1"]).code(2).stdout("").says("--yes");
    hero.run(&["queue", "purge", "--yes", "type:osis:prio:1"]).code(0).stdout("2 jobs purged\n");
    hero.run(&["job", "wait", "a"]).code(1).says("stopped");
    assert_eq!(field(&redis, "urgent", "status").as_deref(), Some("dispatched"));
    hero.run(&["queue", "purge", "--yes", "--json", "type:osis"])
        .code(0)
        .stdout("{\"purged\":1}\n");
    hero.run(&["queue", "purge", "osis"]).code(65).says("type:T");
}

#[test]
fn waiting_job_shows_its_place_in_the_queue_until_a_limit_holds_it_or_it_starts() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    for (id, priority) in [("a", "1"), ("b", "1"), ("c", "1"), ("u", "0"), ("z", "2")] {
        site.hero
            .run(&["submit", "-t", "osis", "--id", id, "--priority", priority, "-e", "1"])
            .code(0);
    }
    let place = |id: &str| site.call("job.get", &json!({ "id": id }))["queue_place"].clone();
    let shown = |id: &str| {
        let text = site.hero.run(&["job", "show", id]).code(0).stdout;
        let line = text.lines().find_map(|line| line.strip_prefix("queue_place"));
        line.map(|line| line.trim().to_owned())
    };
    for (id, expected) in [
        ("a", "1 of 3 in type:osis, behind 1 more urgent"),
        ("c", "3 of 3 in type:osis, behind 1 more urgent"),
        ("u", "1 of 1 in type:osis:prio:0"),
        ("z", "1 of 1 in type:osis:prio:2, behind 4 more urgent"),
    ] {
        assert_eq!(place(id), expected, "{id}");
        assert_eq!(shown(id).as_deref(), Some(expected), "{id}");
    }
    site.hero.run(&["job", "stop", "a"]).code(0);
    assert_eq!((place("a"), shown("a")), (Value::Null, None));
    assert_eq!(place("c"), "2 of 2 in type:osis, behind 1 more urgent");
    let _osis = site.hero.actor("osis-default-1").start();
    until(&redis, "c", "finished");
    assert_eq!(place("c"), Value::Null);
}

#[test]
fn pause_and_resume_at_once_leave_all_priorities_in_one_state() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for _ in 0..6 {
        std::thread::scope(|scope| {
            for verb in ["pause", "resume"] {
                let hero = &hero;
                scope.spawn(move || hero.run(&["queue", verb, "type:osis"]).code(0));
            }
        });
        let paused: usize = redis.ask(&format!("SCARD {}", keys().paused()));
        assert!([0, 3].contains(&paused), "{paused} of 3 priorities are paused");
    }
    // What has changed nothing is not recorded.
    hero.run(&["queue", "resume", "type:osis"]).code(0);
    let records = || hero.run(&["audit", "--json"]).code(0).stdout.matches("queue.resume").count();
    let before = records();
    hero.run(&["queue", "resume", "type:osis"]).code(0);
    hero.run(&["queue", "resume", "--all"]).code(0).stdout("").says("all queues: none was paused");
    assert_eq!(records(), before);
}
