//! Publishes messages, each confirmed.

use std::time::Duration;

use jiff::Timestamp;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::error::LinkError;
use super::wire::Wire;
use crate::amqp::message::Properties;

/// The longest wait for a confirmation.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);
/// The queue that RabbitMQ uses to answer a requester directly.
pub const DIRECT_REPLY: &str = "amq.rabbitmq.reply-to";
/// The messages of a connection that are under way at once, each on a channel.
const CHANNELS_MAX: usize = 64;
/// Messages survive a restart of RabbitMQ.
const PERSISTENT: u8 = 2;

#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The exchange; empty for the queue that the key names.
    pub exchange: &'a str,
    pub key: &'a str,
    /// The body, JSON.
    pub body: &'a [u8],
    pub properties: &'a Properties,
}

/// The way to publish a delivery again. It keeps all properties except the id of its user, its
/// expiry, and headers that make RabbitMQ send copies.
#[derive(Debug, Clone)]
pub struct Again<'a> {
    /// The exchange; empty for the queue that the key names.
    pub exchange: &'a str,
    pub key: &'a str,
    /// The headers that are set.
    pub headers: Vec<(&'static str, String)>,
    /// The headers that are removed.
    pub without: &'static [&'static str],
}

/// The publishing end of a connection. A channel has one message under way: with several, the library gives a
/// message that RabbitMQ returns to any of the confirmed ones, and so counts a message that no queue has got as
/// stored.
pub(super) struct Publisher {
    pub(super) wire: Wire,
    /// The channels that publish nothing now.
    idle: Mutex<Vec<Channel>>,
    room: Semaphore,
}

impl Publisher {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, idle: Mutex::default(), room: Semaphore::new(CHANNELS_MAX) }
    }

    /// Publishes, and waits until RabbitMQ has confirmed it.
    pub(super) async fn send(
        &self,
        way: (&str, &str),
        body: &[u8],
        properties: impl FnOnce() -> BasicProperties,
    ) -> Result<(), LinkError> {
        // Nobody closes it.
        let _room = self.room.acquire().await.ok();
        let channel = self.channel().await?;
        // A message sent now would wait, and be sent again by a caller that does not wait.
        let sent = if self.wire.is_blocked().await {
            Err(LinkError::Blocked { address: self.wire.way.address.clone() })
        } else {
            send(&channel, &self.wire, way, body, properties()).await
        };
        // An answer that comes too late would be taken for the next message's: that channel is closed.
        if let Ok(())
        | Err(
            LinkError::Unroutable { .. } | LinkError::Rejected { .. } | LinkError::Blocked { .. },
        ) = &sent
        {
            self.idle.lock().push(channel);
        }
        sent
    }

    async fn channel(&self) -> Result<Channel, LinkError> {
        loop {
            let idle = self.idle.lock().pop();
            match idle {
                Some(channel) if channel.status().connected() => return Ok(channel),
                Some(_) => {}
                None => return confirming(&self.wire).await,
            }
        }
    }
}

/// Opens a channel whose messages are confirmed.
pub(super) async fn confirming(wire: &Wire) -> Result<Channel, LinkError> {
    let channel = wire.channel().await?;
    let selected = channel.confirm_select(ConfirmSelectOptions::default());
    wire.way.call("asking for confirmations", selected).await?;
    Ok(channel)
}

pub(super) async fn send(
    channel: &Channel,
    wire: &Wire,
    (exchange, key): (&str, &str),
    body: &[u8],
    properties: BasicProperties,
) -> Result<(), LinkError> {
    let doing = format!("publishing with the key {key}");
    // A direct reply is reported as unroutable though it arrives.
    let mandatory = !key.starts_with(DIRECT_REPLY);
    let options = BasicPublishOptions { mandatory, ..BasicPublishOptions::default() };
    let unroutable = || LinkError::Unroutable {
        exchange: exchange.to_owned(),
        key: key.chars().take(80).collect(),
    };
    let short = |text: &str| ShortString::try_new(text);
    let (Ok(short_exchange), Ok(short_key)) = (short(exchange), short(key)) else {
        return Err(unroutable());
    };
    let published = channel.basic_publish(short_exchange, short_key, options, body, properties);
    match timeout(CONFIRM_WITHIN, async { published.await?.await }).await {
        Err(_) => Err(wire.way.too_slow(&doing)),
        Ok(Err(error)) => Err(wire.way.error(&doing, &error)),
        Ok(Ok(Confirmation::Ack(None))) => Ok(()),
        Ok(Ok(Confirmation::Ack(Some(_)))) => Err(unroutable()),
        Ok(Ok(_)) => Err(LinkError::Rejected { key: key.to_owned() }),
    }
}

impl Again<'_> {
    pub(super) fn properties(&self, before: &BasicProperties) -> BasicProperties {
        let mut table = before.headers().clone().unwrap_or_default();
        let mut kept = FieldTable::default();
        for (name, value) in &table {
            // RabbitMQ sends a copy to each queue that these two name.
            if !matches!(name.as_str(), "CC" | "BCC") && !self.without.contains(&name.as_str()) {
                kept.insert(name.clone(), value.clone());
            }
        }
        table = kept;
        for (name, value) in &self.headers {
            table.insert((*name).into(), AMQPValue::LongString(value.as_str().into()));
        }
        // RabbitMQ checks who a user id names, and deletes expired messages.
        let mut properties =
            BasicProperties::default().with_headers(table).with_delivery_mode(PERSISTENT);
        for (text, with) in KEPT {
            if let Some(text) = text(before) {
                properties = with(properties, text.clone());
            }
        }
        if let Some(priority) = before.priority() {
            properties = properties.with_priority(*priority);
        }
        if let Some(timestamp) = before.timestamp() {
            properties = properties.with_timestamp(*timestamp);
        }
        properties
    }
}

type ReadText = fn(&BasicProperties) -> &Option<ShortString>;
type WithText = fn(BasicProperties, ShortString) -> BasicProperties;

/// The properties of text that a message keeps when it is published again.
const KEPT: [(ReadText, WithText); 8] = [
    (BasicProperties::content_type, BasicProperties::with_content_type),
    (BasicProperties::content_encoding, BasicProperties::with_content_encoding),
    (BasicProperties::correlation_id, BasicProperties::with_correlation_id),
    (BasicProperties::reply_to, BasicProperties::with_reply_to),
    (BasicProperties::message_id, BasicProperties::with_message_id),
    (BasicProperties::kind, BasicProperties::with_type),
    (BasicProperties::app_id, BasicProperties::with_app_id),
    (BasicProperties::cluster_id, BasicProperties::with_cluster_id),
];

pub(super) fn basic(properties: &Properties) -> BasicProperties {
    let mut basic = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_app_id("hero".into())
        .with_delivery_mode(PERSISTENT)
        .with_timestamp(u64::try_from(Timestamp::now().as_second()).unwrap_or_default());
    // A short text that came in fits again.
    let short = |text: &Option<String>| ShortString::try_new(text.as_deref()?).ok();
    if let Some(kind) = short(&properties.kind) {
        basic = basic.with_type(kind);
    }
    if let Some(id) = short(&properties.message_id) {
        basic = basic.with_message_id(id);
    }
    if let Some(queue) = short(&properties.reply_to) {
        basic = basic.with_reply_to(queue);
    }
    if let Some(id) = short(&properties.correlation_id) {
        basic = basic.with_correlation_id(id);
    }
    if !properties.headers.is_empty() {
        let mut table = FieldTable::default();
        for (name, value) in &properties.headers {
            if let Ok(name) = ShortString::try_new(name.as_str()) {
                table.insert(name, AMQPValue::LongString(value.as_str().into()));
            }
        }
        basic = basic.with_headers(table);
    }
    basic
}
