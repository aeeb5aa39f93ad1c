//! A person at a Redis whose memory is full: jobs are found, shown and deleted.

use serde_json::{Value, json};

use crate::support::{Hero, Redis, Served, wait_until};
use crate::web::requests::{send, signed_in};

#[test]
fn jobs_are_found_and_deleted_while_the_memory_of_redis_is_full() {
    let redis = Redis::start();
    let site = Served::with(Hero::on(&redis).set("job.retries", "0"), &redis);
    let hero = &site.hero;
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    let actor = hero.actor("osis-default-1").start();
    for id in ["a", "b", "c"] {
        hero.run(&["exec", "-t", "osis", "--id", id, "-e", "throw \"boom\""]).code(1);
    }
    hero.run(&["exec", "-t", "osis", "--id", "done", "-e", "1"]).code(0);
    drop(actor);
    redis.run("CONFIG SET maxmemory 1mb");
    let listed = |args: &[&str]| -> Value {
        let done = hero.run(&[args, &["--json"]].concat()).code(0);
        serde_json::from_str(&done.stdout).expect("JSON")
    };
    for filter in [&["--status", "failed"][..], &["--error", "boom"], &["--since", "1h"]] {
        let found = listed(&[&["job", "list"], filter].concat());
        assert_eq!(found["complete"], true, "{filter:?}: {found}");
        assert!(found["jobs"].as_array().is_some_and(|jobs| jobs.len() >= 3), "{found}");
    }
    assert_eq!(listed(&["job", "errors"])["groups"][0]["jobs"], 3);
    assert_eq!(site.call("job.list", &json!({ "status": "failed" }))["complete"], true);
    wait_until("the page shows them", || {
        let page = send(&site, "GET", "/jobs?status=failed", &cookie, "");
        page.status == 200 && page.body.contains("boom")
    });
    let file = redis.folder().join("backup").display().to_string();
    hero.run(&["backup", &file]).code(0);
    hero.run(&["job", "delete", "a"]).code(0);
    hero.run(&["job", "delete", "--status", "failed", "--yes"]).code(0).stdout("2 jobs deleted\n");
    assert_eq!(listed(&["job", "list", "--status", "failed"])["jobs"], json!([]));
}

#[test]
fn supervisor_logs_that_the_memory_is_nearly_full_and_that_it_no_longer_is() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("supervisor.sweep_interval", "\"50ms\"");
    let supervisor = hero.supervisor().start();
    redis.run("CONFIG SET maxmemory 1mb");
    let says = |text: &str| supervisor.err().contains(text);
    wait_until("it says so", || {
        says(" % of its maxmemory: when it is full, submissions are refused")
    });
    redis.run("CONFIG SET maxmemory 0");
    wait_until("it says that it is over", || says("uses 0 % of its maxmemory again"));
}
