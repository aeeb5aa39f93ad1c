//! Messages that nobody can serve, and what an operator sees of them.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use hero::amqp::link::{Link, LinkError, Outgoing};
use hero::amqp::message::Properties;
use hero::amqp::topology::{AmqpQueue, EVENTS};
use hero::config::AmqpConfig;
use serde_json::json;

use super::Broker;
use crate::support::rabbitmq::{has_rabbitmq, shared, vhost};
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
fn each_of_many_concurrent_messages_is_confirmed_or_returned() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    let link = broker.link();
    let publish = async |n: usize| {
        // Every other one has no queue.
        let key = if n.is_multiple_of(2) { "known" } else { "unknown" };
        let properties = Properties::default();
        let out = Outgoing { exchange: "", key, body: b"{}", properties: &properties };
        match link.publish(out).await {
            Ok(()) => true,
            Err(LinkError::Unroutable { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    };
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let name = "known".to_owned();
        let queue = AmqpQueue { name, arguments: BTreeMap::new(), binding: None };
        link.declare_queue(&queue).await.expect("declared");
        for _ in 0..20 {
            let arrived = join_all((0..100).map(publish)).await;
            let expected: Vec<bool> = (0..100_usize).map(|n| n.is_multiple_of(2)).collect();
            assert_eq!(arrived, expected);
        }
        let counts = link.counts("known").await.expect("it answers").expect("it exists");
        assert_eq!(counts.messages, 1000);
        link.close().await;
    });
}

#[test]
fn a_queue_that_is_deleted_is_declared_and_consumed_again() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("");
    let _process = broker.hero.actor("broker").start();
    let asked = "these queues have 0 messages, which are lost; add --yes";
    broker.hero.run(&["amqp", "delete-queue", "prod_events"]).code(2).says(asked);
    broker.hero.run(&["amqp", "delete-queue", "--yes", "prod_events"]).code(0);
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

#[test]
fn bindings_and_all_arguments_are_compared_where_the_management_api_is_configured() {
    if !has_rabbitmq() {
        return;
    }
    let url = vhost();
    let broker = Broker::at(&url, "");
    drop(broker.hero.actor("broker").start());
    let check = broker.json(&["amqp", "check"]);
    assert_eq!(check["bindings_compared"], false, "{check}");
    let management = format!("{:?}", shared().management_url());
    let broker = broker.set("amqp.management_url", &management);
    let check = broker.json(&["amqp", "check"]);
    assert_eq!(check["differences"], json!([]), "{check}");
    assert_eq!(check["bindings_compared"], true, "{check}");

    // The same queue of another mode: it lacks its key, has another one, and differs in two arguments.
    broker.hero.run(&["amqp", "delete-queue", "--yes", "prod_events"]).code(0);
    let config = AmqpConfig { url: url.as_str().into(), ..AmqpConfig::default() };
    let link = Link::open(&config, "test").expect("legal settings");
    let other = AmqpQueue {
        name: "prod_events".to_owned(),
        arguments: [("x-max-length", 5.into())].into(),
        binding: Some((EVENTS, "log".to_owned())),
    };
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        link.declare_queue(&other).await.expect("declared");
        link.close().await;
    });
    let said = broker.hero.run(&["amqp", "check"]).code(78).stdout;
    for difference in [
        "prod_events: x-dead-letter-exchange is not set, configured is beds.dlx",
        "prod_events: x-max-length is 5, configured is none",
        "prod_events: is not bound to beds.events by #; its broker binds it within a minute",
        "prod_events: is bound to beds.events by log too",
    ] {
        assert!(said.contains(difference), "{said}");
    }
    let nobody = broker.set("amqp.management_url", "\"http://127.0.0.1:1\"");
    nobody.hero.run(&["amqp", "check"]).code(69).says("http://127.0.0.1:1 cannot be reached");
}
