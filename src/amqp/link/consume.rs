//! Consumes a queue: deliveries, and their acknowledgements.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_core::Stream;
use lapin::message::Delivery as RawDelivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Acker, BasicProperties, Channel, Consumer};
use tokio::time::timeout;

use super::error::LinkError;
use super::wire::{BrokerAddress, PATIENCE, Wire};
use crate::amqp::message::Properties;

/// A consumer of one queue. It has ended after an error.
pub struct Deliveries {
    consumer: Consumer,
    channel: Channel,
    way: std::sync::Arc<BrokerAddress>,
    queue: String,
    options: BasicConsumeOptions,
    doing: String,
}

/// A message that waits for its acknowledgement.
pub struct Delivery {
    /// The exchange that it came through; empty for a queue by its name.
    pub exchange: String,
    pub key: String,
    pub body: Vec<u8>,
    pub properties: Properties,
    /// True if it was delivered before, and not acknowledged.
    pub is_redelivered: bool,
    /// When its publisher has sent it, in seconds since 1970, if that says so.
    pub sent_s: Option<u64>,
    /// The last queue that gave it up, and why, if it has come out of one.
    pub death: Option<Death>,
    /// All its properties, as it is published again.
    pub(super) all: BasicProperties,
    acker: Acker,
}

/// The reason why a queue gave a message up, as RabbitMQ notes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    pub queue: String,
    /// `rejected`, `expired`, `maxlen` or `delivery_limit`.
    pub reason: String,
}

impl Deliveries {
    /// Starts to consume a queue on a channel. Without a prefetch nothing waits for an acknowledgement: RabbitMQ
    /// forgets a message as it sends it.
    pub(super) async fn start(
        channel: Channel,
        wire: &Wire,
        queue: &str,
        prefetch: Option<u16>,
    ) -> Result<Self, LinkError> {
        let no_ack = prefetch.is_none();
        let prefetch = prefetch.unwrap_or_default();
        let options = BasicConsumeOptions { no_ack, ..BasicConsumeOptions::default() };
        let doing = format!("consuming the queue {queue}");
        let way = std::sync::Arc::clone(&wire.way);
        let consumer = consumer(&channel, &way, queue, prefetch, options, &doing).await?;
        Ok(Self { consumer, channel, way, queue: queue.to_owned(), options, doing })
    }

    /// Consumes with another prefetch, which RabbitMQ takes for a new consumer alone. Returns the
    /// deliveries of the former consumer that had arrived.
    ///
    /// # Errors
    /// [`LinkError`]; then RabbitMQ delivers all of them again.
    pub async fn resize(&mut self, prefetch: u16) -> Result<Vec<Delivery>, LinkError> {
        self.cancel().await;
        let mut left = Vec::new();
        while let Some(Ok(delivery)) = self.ready().await {
            left.push(delivery);
        }
        let Self { channel, way, queue, options, doing, .. } = self;
        self.consumer = consumer(channel, way, queue, prefetch, *options, doing).await?;
        Ok(left)
    }

    /// Waits for the next delivery. Cancelling the call loses none.
    ///
    /// # Errors
    /// [`LinkError`] once the connection, the channel or the queue is gone.
    pub async fn next(&mut self) -> Result<Delivery, LinkError> {
        let next = poll_fn(|context| Pin::new(&mut self.consumer).poll_next(context)).await;
        self.read(next)
    }

    /// Returns a delivery that has arrived already.
    pub async fn ready(&mut self) -> Option<Result<Delivery, LinkError>> {
        let polled = poll_fn(|context| {
            Poll::Ready(match Pin::new(&mut self.consumer).poll_next(context) {
                Poll::Ready(next) => Some(next),
                Poll::Pending => None,
            })
        });
        let next = polled.await?;
        Some(self.read(next))
    }

    fn read(&self, next: Option<lapin::Result<RawDelivery>>) -> Result<Delivery, LinkError> {
        match next {
            Some(Ok(raw)) => Ok(Delivery::of(raw)),
            Some(Err(error)) => Err(self.way.error(&self.doing, &error)),
            None => {
                let reason = "the queue was deleted, or its consumer cancelled".to_owned();
                Err(LinkError::Ended { doing: self.doing.clone(), reason })
            }
        }
    }

    /// Stops further deliveries. Those that have arrived can still be taken and acknowledged.
    pub async fn cancel(&self) {
        let cancelled =
            self.channel.basic_cancel(self.consumer.tag(), BasicCancelOptions::default());
        // A channel that is lost sends nothing any more.
        let _ = timeout(PATIENCE, cancelled).await;
    }
}

async fn consumer(
    channel: &Channel,
    way: &BrokerAddress,
    queue: &str,
    prefetch: u16,
    options: BasicConsumeOptions,
    doing: &str,
) -> Result<Consumer, LinkError> {
    let started = async {
        channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
        channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await
    };
    way.call(doing, started).await
}

impl Delivery {
    pub(super) fn of(raw: RawDelivery) -> Self {
        Self {
            exchange: raw.exchange.to_string(),
            key: raw.routing_key.to_string(),
            body: raw.data,
            properties: read_properties(&raw.properties),
            is_redelivered: raw.redelivered,
            sent_s: *raw.properties.timestamp(),
            death: raw.properties.headers().as_ref().and_then(death),
            all: raw.properties,
            acker: raw.acker,
        }
    }

    /// Acknowledges the message. After a lost connection it is delivered again.
    pub async fn ack(&self) {
        let _ = self.acker.ack(BasicAckOptions::default()).await;
    }

    /// Returns false if its channel is gone: RabbitMQ delivers it again.
    pub fn is_live(&self) -> bool {
        self.acker.usable()
    }

    pub async fn put_back(&self) {
        let options = BasicNackOptions { multiple: false, requeue: true };
        let _ = self.acker.nack(options).await;
    }
}

fn read_properties(basic: &BasicProperties) -> Properties {
    let text = |value: &Option<lapin::types::ShortString>| value.as_ref().map(ToString::to_string);
    let headers = basic.headers().as_ref().map(|table| {
        let known = table
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_string(), header_text(value)?)));
        known.collect::<BTreeMap<_, _>>()
    });
    Properties {
        kind: text(basic.kind()),
        message_id: text(basic.message_id()),
        reply_to: text(basic.reply_to()),
        correlation_id: text(basic.correlation_id()),
        headers: headers.unwrap_or_default(),
    }
}

/// Reads the newest entry of `x-death`.
fn death(headers: &FieldTable) -> Option<Death> {
    let AMQPValue::FieldArray(entries) = headers.inner().get("x-death")? else { return None };
    let AMQPValue::FieldTable(newest) = entries.as_slice().first()? else { return None };
    let text = |name: &str| header_text(newest.inner().get(name)?);
    Some(Death { queue: text("queue")?, reason: text("reason")? })
}

fn header_text(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        AMQPValue::Boolean(value) => Some(value.to_string()),
        AMQPValue::ShortShortInt(value) => Some(value.to_string()),
        AMQPValue::ShortShortUInt(value) => Some(value.to_string()),
        AMQPValue::ShortInt(value) => Some(value.to_string()),
        AMQPValue::ShortUInt(value) => Some(value.to_string()),
        AMQPValue::LongInt(value) => Some(value.to_string()),
        AMQPValue::LongUInt(value) => Some(value.to_string()),
        AMQPValue::LongLongInt(value) => Some(value.to_string()),
        _ => None,
    }
}
