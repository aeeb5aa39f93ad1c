//! The end of all dispatchers of a tag: an order in Redis, and a message that makes every process read
//! it. A process that was not connected reads it when it is again.

use std::sync::Arc;

use serde_json::{Value, json};
use tracing::{debug, info, warn};

use super::shared::Shared;
use crate::amqp::link::{Link, LinkError, Outgoing};
use crate::amqp::message::{AmqpMessage, MessageFailure, Properties};
use crate::amqp::pattern;
use crate::amqp::route::SHUTDOWN;
use crate::amqp::topology::CONTROL;
use crate::config::Node;
use crate::proto::text::shown;
use crate::store::{Backoff, Store, StoreError};

/// Listens for orders until the process is to end.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut backoff = Backoff::default();
    while !shared.is_leaving() {
        let ended = tokio::select! {
            ended = listen(&shared, &mut backoff) => ended,
            () = shared.left() => return,
        };
        if let Err(error) = ended {
            shared.rabbit_failed("listening for orders", &error);
        }
        tokio::time::sleep(backoff.failed()).await;
    }
}

async fn listen(shared: &Shared, backoff: &mut Backoff) -> Result<(), LinkError> {
    shared.link.declare_exchanges().await?;
    let mut orders = shared.link.listen(CONTROL).await?;
    backoff.succeeded();
    loop {
        // Also those that were sent while this process was not connected.
        read_orders(shared).await;
        orders.next().await?;
    }
}

/// Ends this process if it was told to since it started.
pub(super) async fn read_orders(shared: &Shared) {
    let node = shared.node.map(Node::as_str);
    match shared.store.brokers().ended_us(&shared.scope, node).await {
        Ok(at) if at > shared.started_us => {
            if !shared.leaving.send_replace(true) {
                info!("the brokers of {} were told to end", shared.scope);
            }
        }
        Ok(_) => {}
        Err(error) => debug!("{error}"),
    }
}

/// Checks that a message may end brokers.
///
/// # Errors
/// [`MessageFailure`] that lasts: its key may not, or it is from before this process.
pub(super) fn check(
    shared: &Shared,
    message: &AmqpMessage,
    is_old: bool,
) -> Result<(), MessageFailure> {
    let keys = &shared.settings.amqp.shutdown_keys;
    if !keys.iter().any(|key| pattern::takes(key, &message.key)) {
        let known = if keys.is_empty() { "no key".to_owned() } else { keys.join(", ") };
        let reason = format!(
            "shutdown is taken from {known}, not from {}; amqp.shutdown_keys says so",
            shown(&message.key)
        );
        return Err(MessageFailure::lasting("not_permitted", reason));
    }
    if is_old {
        let reason = "the order to end is from before the start of this process; give it again";
        return Err(MessageFailure::lasting("too_old", reason));
    }
    Ok(())
}

/// Passes the order of a message on: to the brokers of `data.node`, or to all.
pub(super) async fn request(
    shared: &Shared,
    message: &AmqpMessage,
) -> Result<Value, MessageFailure> {
    let name = message.data.get("node").and_then(Value::as_str);
    let node = name.map(|name| Node::of_name(name).ok_or(name)).transpose();
    let node = node.map_err(|name| MessageFailure::invalid(format!("no such node: {name}")))?;
    let ordered = end_brokers(&shared.store, &shared.link, &shared.scope, node).await;
    ordered.map_err(|error| MessageFailure::passing("unavailable", error.to_string()))?;
    Ok(json!({ "shutdown": node.map_or("all", Node::as_str) }))
}

/// Shuts down the brokers of a node, or of all nodes: writes the request and wakes every process.
pub async fn end_brokers(
    store: &Store,
    link: &Link,
    scope: &str,
    node: Option<Node>,
) -> Result<(), StoreError> {
    store.brokers().end(scope, node.map(Node::as_str)).await?;
    let properties = Properties { kind: Some(SHUTDOWN.to_owned()), ..Properties::default() };
    let out = Outgoing { exchange: CONTROL, key: "", body: b"{}", properties: &properties };
    if let Err(error) = link.publish(out).await {
        warn!("brokers are told to end by their next heartbeat: {error}");
    }
    Ok(())
}
