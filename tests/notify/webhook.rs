//! Webhooks: what they get, and that none is lost.

use nix::sys::signal::Signal;
use serde_json::json;

use super::{Receiver, fail, finish, hero, wanted};
use crate::support::{Redis, keys, wait_until};

#[test]
fn failed_job_is_notified_to_a_webhook_with_its_error() {
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

#[test]
fn supervisor_that_ends_waits_for_its_deliveries_and_counts_those_it_leaves() {
    for (answer, recorded, left) in [("204", 1, 0), ("hang", 0, 1)] {
        let redis = Redis::start();
        let receiver = Receiver::start(&redis, "receiver.py");
        receiver.answers("hang");
        let hero = hero(&redis, &receiver, "every = \"0s\"\ntimeout = \"1m\"");
        let _osis = hero.actor("osis-default-1").start();
        let supervisor = hero.supervisor().start();
        wanted(&redis, &["failed"]);
        fail(&hero, &[]);
        // Its score is the end of its lease, which is longer than the timeout.
        let lease_s = || -> Option<u64> {
            let due: Vec<String> =
                redis.ask(&format!("ZRANGE {} 0 0 WITHSCORES", keys::keys().notify_due()));
            let (now_s, _): (u64, u64) = redis.ask("TIME");
            let due_us: u64 = due.get(1)?.parse().ok()?;
            Some((due_us / 1_000_000).saturating_sub(now_s))
        };
        wait_until("it is being delivered", || lease_s() > Some(30));
        wait_until("the receiver has it", || receiver.hangs());
        supervisor.signal(Signal::SIGTERM);
        receiver.answers(answer);
        let done = supervisor.ends().code(0);
        let told = |text: &str| done.stderr.matches(text).count();
        assert_eq!(told("cannot deliver to ops"), recorded, "{}", done.stderr);
        assert_eq!(told("ends while 1 notification is being delivered"), left, "{}", done.stderr);
    }
}
