//! Settings of `[amqp]` that change how queues are declared and what a start does.

use nix::sys::signal::Signal;
use serde_json::json;

use super::{Broker, LATER_AND_POISON};
use crate::support::rabbitmq::has_rabbitmq;
use crate::support::wait_until;

#[test]
fn quorum_queues_retry_bury_and_bound_as_classic_ones_do() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with(LATER_AND_POISON)
        .set("amqp.mode", "\"matrix\"")
        .set("amqp.queue_type", "\"quorum\"")
        .set("amqp.log_length_max", "1000");
    let _actor = broker.hero.actor("osis-default-1").start();
    let processes =
        ["broker-appServer", "broker-admin"].map(|unit| broker.hero.actor(unit).start());
    assert_eq!(broker.result("rec.read", "ping", "", "null")["key"], "rec.read");
    assert_eq!(broker.result("adm", "later", "", "null"), 2, "it came through the retry lane");
    assert_eq!(broker.ask("adm", "poison", "", "null")["ok"], false);
    wait_until("it is a dead letter", || broker.dead().len() == 1);
    broker.hero.run(&["amqp", "dlq", "delete", "--all"]).code(0);
    let check = broker.json(&["amqp", "check"]);
    assert_eq!(check["differences"], json!([]), "{check}");
    drop(processes);
    let classic = broker.set("amqp.queue_type", "\"classic\"");
    let said = classic.hero.run(&["amqp", "check"]).code(78).stdout;
    assert!(said.contains("prod_adm: ") && said.contains("x-queue-type"), "{said}");
    let said = classic.hero.actor("broker-admin").begin().ends().code(78).stderr;
    assert!(said.contains("it exists with other arguments"), "{said}");
}

#[test]
fn a_start_of_development_deletes_messages_and_log_records_of_before() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("").set("amqp.queue_tag", "\"dev_\"");
    let first = broker.hero.actor("broker").start();
    broker.result("rec.write", "write", "Logger", r#"{"id": "old", "message": "of before"}"#);
    drop(first);
    let publish = ["amqp", "publish", "rec.write", "--type", "write", "--template", "person"];
    broker.hero.run(&publish).code(0);

    let broker = broker.set("amqp.purge_on_start", "true");
    let process = broker.hero.actor("broker").start();
    assert!(process.err().contains("deleted 1 messages of dev_events"), "{}", process.err());
    assert!(process.err().contains(" log records: amqp.purge_on_start"), "{}", process.err());
    let found = broker.result("rec.read", "fetch", "person", "{}");
    assert_eq!(found["objects"], json!([]), "the message was deleted");
    let logs = broker.hero.run(&["amqp", "logs", "--limit", "1000"]).code(0).stdout;
    assert!(!logs.contains("of before"), "{logs}");
}

#[test]
fn a_reload_names_what_of_a_broker_needs_a_restart() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    let script = broker.redis.folder().join("script.rhai");
    std::fs::write(&script, "1").expect("written");
    let path = script.display();
    let route =
        format!("[[amqp.route]]\nkey = \"adm\"\ntype = \"osis\"\nscript_file = \"{path}\"\n");
    let hero = broker.hero.add(&route);
    let file = hero.config_file();
    let process = hero.actor("broker").env("HERO_CONFIG", &file).start();
    let text = std::fs::read_to_string(&file).expect("readable");
    let text = text.replace("retry_delays = [\"20ms\"]", "retry_delays = [\"30ms\"]");
    let text = text.replace("retry_backoff = \"20ms\"", "retry_backoff = \"30ms\"");
    std::fs::write(&file, text).expect("written");
    std::fs::write(&script, "2").expect("written");
    process.signal(Signal::SIGHUP);
    let said = "need a restart: [amqp], [job], the scripts of [[amqp.route]]";
    wait_until("the changes are named", || process.err().contains(said));
}
