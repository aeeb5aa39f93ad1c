//! Webhooks: what they get, and that none is lost.

use serde_json::json;

use super::{Receiver, fail, finish, hero, wanted};
use crate::support::{Redis, wait_until};

#[test]
fn failed_job_is_told_to_a_webhook_with_its_error() {
    let redis = Redis::start();
    let receiver = Receiver::start(&redis, "receiver.py");
    let hero = hero(&redis, &receiver, "");
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    finish(&hero, &["--id", "good"]);
    fail(&hero, &["--id", "bad", "--name", "backup", "--tag", "nightly", "--caller", "ann"]);
    receiver.awaits(1);
    let told = &receiver.received()[0];
    assert_eq!(told["path"], "/hook");
    assert_eq!(told["headers"]["content-type"], "application/json");
    let message = &receiver.messages()[0];
    assert_eq!(told["headers"]["hero-message-id"], message["id"]);
    assert_eq!(message["title"], "failed: backup (osis job bad)");
    assert_eq!(message["counts"], json!({ "failed": 1 }));
    let event = &message["events"][0];
    for (key, value) in [
        ("event", "failed"),
        ("job", "bad"),
        ("type", "osis"),
        ("name", "backup"),
        ("caller", "ann"),
    ] {
        assert_eq!(event[key], value, "{event}");
    }
    assert_eq!(event["tags"], json!(["nightly"]));
    assert!(event["error"].as_str().expect("text").contains("broken disk"), "{event}");
}

#[test]
fn message_is_delivered_once_the_receiver_is_back_with_the_same_id() {
    let redis = Redis::start();
    let mut receiver = Receiver::start(&redis, "receiver.py");
    let hero = hero(&redis, &receiver, "every = \"0s\"\ntimeout = \"500ms\"");
    let _osis = hero.actor("osis-default-1").start();
    let mut supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    receiver.answers("503");
    fail(&hero, &["--id", "a"]);
    receiver.awaits(1);
    receiver.kill();
    fail(&hero, &["--id", "b"]);
    supervisor.kill();
    fail(&hero, &["--id", "c"]);
    receiver.answers("204");
    receiver.start_again();
    let _supervisor = hero.supervisor().start();
    let jobs = || {
        let messages = receiver.messages();
        let of = |job: &str| {
            let of_job = messages.iter().filter(|of| of["events"][0]["job"] == job);
            of_job.map(|of| of["id"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
        };
        [of("a"), of("b"), of("c")]
    };
    wait_until("all are delivered", || {
        let [a, b, c] = jobs();
        a.len() >= 2 && !b.is_empty() && !c.is_empty()
    });
    for ids in jobs() {
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
    wait_until("nothing is left", || redis.all("NOTIFY_DUE").is_empty());
}
