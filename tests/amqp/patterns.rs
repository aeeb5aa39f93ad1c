//! Patterns of routing keys, beside RabbitMQ's own answers.

use std::collections::BTreeMap;

use hero::amqp::link::{Link, Outgoing};
use hero::amqp::message::Properties;
use hero::amqp::pattern::takes;
use hero::amqp::topology::{AmqpQueue, EVENTS};
use hero::config::AmqpConfig;

use crate::support::rabbitmq::{has_rabbitmq, vhost};

const PATTERNS: [&str; 14] = [
    "rec.read", "rec.*", "*.read", "#", "*", "*.*", "rec.#", "#.read", "a.#.b", "#.#", "*.#",
    "#.*", "a..b", "",
];
const KEYS: [&str; 13] = [
    "rec.read",
    "rec.write",
    "rel.read",
    "rec",
    "read",
    "",
    "a.b",
    "a.x.b",
    "a.x.y.b",
    "a..b",
    ".",
    "rec.",
    "log",
];

#[test]
fn patterns_take_the_keys_that_the_topic_exchange_takes() {
    if !has_rabbitmq() {
        return;
    }
    let config = AmqpConfig { url: vhost().as_str().into(), ..AmqpConfig::default() };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let link = Link::open(&config, "patterns").expect("legal");
        link.declare_exchanges().await.expect("declared");
        for (number, pattern) in PATTERNS.into_iter().enumerate() {
            let name = format!("p{number}");
            let binding = Some((EVENTS, pattern.to_owned()));
            let queue = AmqpQueue { name, arguments: BTreeMap::new(), binding };
            link.declare_queue(&queue).await.expect("declared");
        }
        for key in KEYS {
            let properties = Properties::default();
            let out = Outgoing { exchange: EVENTS, key, body: b"{}", properties: &properties };
            // Some keys are taken by no pattern, but by `#`.
            link.publish(out).await.expect("routed");
            for (number, pattern) in PATTERNS.into_iter().enumerate() {
                let got = link.purge(&format!("p{number}")).await.expect("purged") == 1;
                assert_eq!(takes(pattern, key), got, "pattern `{pattern}`, key `{key}`");
            }
        }
        link.close().await;
    });
}
