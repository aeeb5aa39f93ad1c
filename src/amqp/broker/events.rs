//! Log events of a broker itself: milestones of its start, and each message with `trace_on`. They are
//! published with the key `log`, and stand in the journal.

use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::{debug, info};

use super::shared::Shared;
use crate::amqp::link::Outgoing;
use crate::amqp::logs::LEVELS;
use crate::amqp::message::{AmqpMessage, CHAIN, Properties, ROOT};
use crate::amqp::route::{LOG_KEY, LOGGER};
use crate::amqp::topology::EVENTS;
use crate::config::Node;

/// Reports a milestone of the start.
pub(super) async fn milestone(shared: &Shared, name: &str, text: &str) {
    info!(root = shared.root, "{name}: {text}");
    publish(shared, "info", name, text, &shared.root, None).await;
}

/// Reports one event per level, when the node is ready.
pub(super) async fn every_level(shared: &Shared) {
    for level in LEVELS {
        let text = format!("an event of the level {level}");
        publish(shared, level, "level", &text, &shared.root, None).await;
    }
}

/// Reports a message that a built-in served.
pub(super) async fn traced(shared: &Shared, message: &AmqpMessage, by: &str) {
    let text = format!("{} {} {} by {by}", message.key, message.operation, message.template);
    let root = message.root.as_deref().unwrap_or(&shared.root);
    publish(shared, "debug", "trace", &text, root, message.chain.as_deref()).await;
}

async fn publish(
    shared: &Shared,
    level: &str,
    name: &str,
    text: &str,
    root: &str,
    chain: Option<&str>,
) {
    let data: Value = json!({
        "time": format!("{:.3}", Timestamp::now()),
        "level": level,
        "event": name,
        "message": text,
        "node": shared.node.map(Node::as_str),
        "unit": shared.unit,
        "root": root,
        "chain": chain,
    });
    let body = json!({ "template": LOGGER, "data": data }).to_string().into_bytes();
    let mut properties = Properties {
        kind: Some("write".to_owned()),
        message_id: Some(uuid::Uuid::new_v4().to_string()),
        ..Properties::default()
    };
    properties.headers.insert(ROOT.to_owned(), root.to_owned());
    if let Some(chain) = chain {
        properties.headers.insert(CHAIN.to_owned(), chain.to_owned());
    }
    let out = Outgoing { exchange: EVENTS, key: LOG_KEY, body: &body, properties: &properties };
    if let Err(error) = shared.link.publish(out).await {
        debug!("a log event was not published: {error}");
    }
}
