//! Log events that RabbitMQ cannot be given: none is lost, none is stored twice.

use std::collections::BTreeSet;

use hero::amqp::link::Outgoing;
use hero::amqp::message::Properties;
use hero::amqp::topology::EVENTS;

use super::Broker;
use crate::support::rabbitmq::has_rabbitmq;
use crate::support::wait_until;

/// More than the queue of log events takes.
const EVENTS_OF_TEST: usize = 60;
const LENGTH_MAX: &str = "5";

impl Broker {
    /// Publishes pings whose templates are `{name}0`, `{name}1`, ….
    fn ping_all(&self, name: &str, number: usize) {
        let link = self.link();
        tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
            for n in 0..number {
                let body = format!("{{\"template\": \"{name}{n}\"}}");
                let kind = Some("ping".to_owned());
                let properties = Properties { kind, ..Properties::default() };
                let (exchange, key) = (EVENTS, "rec.read");
                let out =
                    Outgoing { exchange, key, body: body.as_bytes(), properties: &properties };
                link.publish(out).await.expect("published");
            }
            link.close().await;
        });
    }

    /// Returns the texts of the stored events of pings, in order.
    fn traces(&self) -> Vec<String> {
        let page = self.json(&["amqp", "logs", "--level", "debug", "--limit", "1000"]);
        let records = page["records"].as_array().expect("records").iter();
        let of_pings = records.filter(|record| record["event"] == "trace");
        let mut texts: Vec<String> =
            of_pings.map(|record| record["message"].as_str().expect("a text").to_owned()).collect();
        texts.sort_unstable();
        texts
    }
}

/// Returns the events of the pings of [`Broker::ping_all`].
fn traced(names: &[&str]) -> Vec<String> {
    let of = |name: &str| {
        let name = name.to_owned();
        (0..EVENTS_OF_TEST).map(move |n| format!("rec.read ping {name}{n} by ping"))
    };
    let all: BTreeSet<String> = names.iter().flat_map(|name| of(name)).collect();
    all.into_iter().collect()
}

#[test]
fn a_slow_admin_loses_no_log_event_and_stores_each_once() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("")
        .set("amqp.mode", "\"matrix\"")
        .set("amqp.trace_on", "true")
        .set("amqp.log_length_max", LENGTH_MAX);
    // The admin node was there once, so its queues are, and nobody consumes them.
    drop(broker.hero.actor("broker-admin").start());
    let app = broker.hero.actor("broker-appServer").start();
    broker.ping_all("a", EVENTS_OF_TEST);
    // The queue takes five, and RabbitMQ may accept one more.
    let all = EVENTS_OF_TEST as u64;
    wait_until("most events wait in the spool", || broker.spooled() >= all);
    wait_until("it says so", || {
        app.err().contains("log events wait in the spool: a queue of the key `log` is full")
    });
    let said = broker.hero.run(&["amqp", "status"]).code(69).stdout;
    assert!(said.contains("log events wait in the spool of broker-appServer@"), "{said}");
    // They outlive the process, with those that it has just reported.
    app.signal(nix::sys::signal::Signal::SIGTERM);
    app.ends().code(0);
    let app = broker.hero.actor("broker-appServer").start();
    broker.ping_all("b", EVENTS_OF_TEST);
    wait_until("the events of the next life too", || broker.spooled() >= 2 * all);

    let _admin = broker.hero.actor("broker-admin").start();
    wait_until("the spool is empty", || broker.spooled() == 0);
    let expected = traced(&["a", "b"]);
    wait_until("each is stored", || broker.traces().len() >= expected.len());
    assert_eq!(broker.traces(), expected);
    wait_until("it says so", || app.err().contains("log events are published again"));
    assert!(broker.dead().is_empty());
}

#[test]
fn a_full_spool_loses_its_oldest_events_and_says_so_once() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with("")
        .set("amqp.mode", "\"matrix\"")
        .set("amqp.trace_on", "true")
        .set("amqp.logs.spool_size_max", "\"64KiB\"");
    // No node has declared the queue of log events.
    let app = broker.hero.actor("broker-appServer").start();
    broker.ping_all("a", 400);
    wait_until("events are lost", || app.err().contains("log events are lost until"));
    assert!(app.err().contains("no queue takes the key `log`"), "{}", app.err());
    assert!(app.err().contains("the spool has 64KiB"), "{}", app.err());
    let admin = broker.hero.actor("broker-admin").start();
    wait_until("the spool is empty", || app.err().contains("log events are published again"));
    let last = "rec.read ping a399 by ping".to_owned();
    wait_until("the newest is stored", || broker.traces().contains(&last));
    assert!(broker.traces().len() < 400, "some were lost");
    assert_eq!(app.err().matches("log events are lost until").count(), 1);
    drop(admin);
}
