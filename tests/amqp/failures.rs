//! Messages that nobody can serve, and what an operator sees of them.

use serde_json::json;

use super::Broker;
use crate::support::rabbitmq::{has_rabbitmq, vhost};
use crate::support::wait_until;

#[test]
fn what_cannot_be_served_becomes_a_dead_letter_with_its_reason() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with(
        "[[amqp.route]]\nkey = \"adm\"\noperation = \"poison\"\ntype = \"osis\"\n\
         script = 'throw \"no such bill\"'\n",
    );
    let _actor = broker.hero.actor("osis-default-1").start();
    let _process = broker.hero.actor("broker").start();
    let error = broker.ask("mig", "load", "x", "null")["error"].clone();
    assert_eq!((&error["code"], &error["retryable"]), (&json!("no_route"), &json!(false)));
    let error = broker.ask("adm", "poison", "", "null")["error"].clone();
    assert_eq!(error["code"], "job_failed");
    wait_until("both are dead letters", || broker.dead().len() == 2);
    let list = broker.hero.run(&["amqp", "dlq", "list"]).code(0).stdout;
    assert!(list.contains("no_route: no [[amqp.route]] takes the key `mig`"), "{list}");
    assert!(list.contains("job_failed: ") && list.contains("no such bill"), "{list}");

    let ids = broker.dead();
    let shown = broker.json(&["amqp", "dlq", "show", &ids[0]]);
    assert_eq!((&shown["queue"], &shown["operation"]), (&json!("prod_events"), &json!("load")));
    broker.hero.run(&["amqp", "dlq", "delete", &ids[0]]).code(0);
    broker.hero.run(&["amqp", "dlq", "delete", "no-such"]).code(66);
    // It fails again, as another attempt.
    broker.hero.run(&["amqp", "dlq", "retry", "--all"]).code(0);
    wait_until("it is a dead letter again", || broker.dead() == [ids[1].clone()]);
    let jobs = broker.json(&["job", "list", "--status", "error"]);
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_message_that_no_queue_takes_is_an_error_to_its_publisher() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    let hero = broker.hero.set("amqp.mode", "\"matrix\"");
    let broker = Broker { hero, ..broker };
    let _app = broker.hero.actor("broker-appServer").start();
    let publish = ["amqp", "publish", "mig", "--type", "load"];
    broker.hero.run(&publish).code(65).says("no queue takes the key `mig`");
}

#[test]
fn a_queue_that_is_deleted_is_declared_and_consumed_again() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    let _process = broker.hero.actor("broker").start();
    broker.hero.run(&["amqp", "delete-queue", "prod_events"]).code(0);
    wait_until("it has its consumers again", || {
        broker.consumers() == [("prod_events".to_owned(), 4)]
    });
    broker.result("rec.read", "ping", "", "null");
}

#[test]
fn a_vhost_has_one_tag_and_one_mode_while_its_brokers_run() {
    if !has_rabbitmq() {
        return;
    }
    let url = vhost();
    let first = Broker::at(&url, "");
    let process = first.hero.actor("broker").start();
    let second = Broker::at(&url, "");
    let second = Broker { hero: second.hero.set("amqp.queue_tag", "\"qa_\""), ..second };
    let refused = second.hero.actor("broker").begin().ends().code(78).stderr;
    assert!(
        refused.contains("has the tag prod_ in the mode unified, whose queue prod_events has 4")
    );
    drop(process);
    wait_until("the first has no consumers", || first.consumers()[0].1 == 0);
    let process = second.hero.actor("broker").start();
    assert!(process.err().contains("hero amqp delete-queue prod_events"), "{}", process.err());
}

#[test]
fn other_arguments_of_a_queue_are_a_sentence_with_the_way_out() {
    if !has_rabbitmq() {
        return;
    }
    let url = vhost();
    let first = Broker::at(&url, "");
    drop(first.hero.actor("broker").start());
    let changed = Broker { hero: first.hero.set("amqp.retry_delays", "[\"1s\"]"), ..first };
    let said = changed.hero.actor("broker").begin().ends().code(78).stderr;
    assert!(said.contains("declaring the queue prod_events.retry: it exists with other arguments"));
    assert!(said.contains("set the configuration back, or let the queue run empty"), "{said}");
    let check = changed.hero.run(&["amqp", "check"]).code(78).stdout;
    assert!(check.contains("prod_events.retry: ") && check.contains("x-message-ttl"), "{check}");
}

#[test]
fn a_wrong_login_or_vhost_is_named_and_ends_the_broker() {
    if !has_rabbitmq() {
        return;
    }
    let url = vhost();
    let wrong = Broker::at(&url.replace(":secret@", ":wrong@"), "");
    wrong.hero.actor("broker").begin().ends().code(77).says("denies the login");
    let (start, _) = url.rsplit_once('/').expect("a vhost");
    let missing = Broker::at(&format!("{start}/nowhere"), "");
    missing.hero.actor("broker").begin().ends().code(77).says("has no vhost `nowhere`");
}
