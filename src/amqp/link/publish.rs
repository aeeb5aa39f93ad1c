//! Publishes messages, each confirmed.

use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::error::LinkError;
use super::wire::{PATIENCE, Wire};
use crate::amqp::message::Properties;

/// The longest wait for a confirmation.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);
/// The queue by which RabbitMQ answers a requester directly.
pub const DIRECT_REPLY: &str = "amq.rabbitmq.reply-to";
/// Messages survive a restart of RabbitMQ.
const PERSISTENT: u8 = 2;

/// A message to publish.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The exchange; empty for the queue that the key names.
    pub exchange: &'a str,
    /// The routing key.
    pub key: &'a str,
    /// The body, JSON.
    pub body: &'a [u8],
    /// The properties.
    pub properties: &'a Properties,
}

/// The publishing end of a connection.
pub(super) struct Publisher {
    wire: Wire,
    channel: Mutex<Option<Channel>>,
}

impl Publisher {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, channel: Mutex::default() }
    }

    /// Publishes a message and waits until RabbitMQ has confirmed it.
    pub(super) async fn publish(&self, out: Outgoing<'_>) -> Result<(), LinkError> {
        let channel = self.channel().await?;
        // What is sent now would wait, and be sent again by a caller that does not wait.
        if self.wire.is_blocked().await {
            return Err(LinkError::Blocked { address: self.wire.way.address.clone() });
        }
        publish_on(&channel, &self.wire, out).await
    }

    async fn channel(&self) -> Result<Channel, LinkError> {
        let mut current = self.channel.lock().await;
        if let Some(channel) = current.as_ref().filter(|channel| channel.status().connected()) {
            return Ok(channel.clone());
        }
        let channel = confirming(&self.wire).await?;
        *current = Some(channel.clone());
        Ok(channel)
    }

    pub(super) async fn is_blocked(&self) -> bool {
        self.wire.is_blocked().await
    }

    pub(super) async fn close(&self) {
        self.wire.close().await;
    }
}

/// Opens a channel whose messages are confirmed.
pub(super) async fn confirming(wire: &Wire) -> Result<Channel, LinkError> {
    let about = wire.way.about("asking for confirmations");
    let channel = wire.channel().await?;
    let selected = timeout(PATIENCE, channel.confirm_select(ConfirmSelectOptions::default())).await;
    selected.map_err(|_| about.too_slow())?.map_err(|error| about.error(&error))?;
    Ok(channel)
}

pub(super) async fn publish_on(
    channel: &Channel,
    wire: &Wire,
    out: Outgoing<'_>,
) -> Result<(), LinkError> {
    let doing = format!("publishing with the key {}", out.key);
    let about = wire.way.about(&doing);
    // A direct reply is reported as unroutable though it arrives.
    let mandatory = !out.key.starts_with(DIRECT_REPLY);
    let options = BasicPublishOptions { mandatory, ..BasicPublishOptions::default() };
    let short = |text: &str| ShortString::try_new(text);
    let (Ok(exchange), Ok(key)) = (short(out.exchange), short(out.key)) else {
        let key = out.key.chars().take(80).collect();
        return Err(LinkError::Unroutable { exchange: out.exchange.to_owned(), key });
    };
    let confirmed = async {
        let properties = basic(out.properties);
        channel.basic_publish(exchange, key, options, out.body, properties).await?.await
    };
    match timeout(CONFIRM_WITHIN, confirmed).await {
        Err(_) => Err(about.too_slow()),
        Ok(Err(error)) => Err(about.error(&error)),
        Ok(Ok(Confirmation::Ack(None))) => Ok(()),
        Ok(Ok(Confirmation::Ack(Some(_)))) => Err(LinkError::Unroutable {
            exchange: out.exchange.to_owned(),
            key: out.key.to_owned(),
        }),
        Ok(Ok(_)) => Err(LinkError::Rejected { key: out.key.to_owned() }),
    }
}

fn basic(properties: &Properties) -> BasicProperties {
    let mut basic = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_app_id("hero".into())
        .with_delivery_mode(PERSISTENT);
    // What came in as a short text fits again.
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
