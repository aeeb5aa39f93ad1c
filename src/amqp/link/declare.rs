//! Declares exchanges and queues, and asks about them. Each call has a channel of its own, since RabbitMQ
//! closes the channel of a call that fails.

use lapin::options::{
    BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
    QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind};
use tokio::time::timeout;

use super::consume::Delivery;
use super::error::LinkError;
use super::wire::{PATIENCE, Wire};
use crate::amqp::topology::{AmqpQueue, Argument, EXCHANGES, ExchangeType, Work};

/// The messages and the consumers of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCounts {
    /// Messages that are ready.
    pub messages: u32,
    /// Consumers.
    pub consumers: u32,
}

/// Runs one call with its time and its error.
async fn call<T>(
    wire: &Wire,
    doing: &str,
    future: impl Future<Output = lapin::Result<T>>,
) -> Result<T, LinkError> {
    let about = wire.way.about(doing);
    let answered = timeout(PATIENCE, future).await;
    answered.map_err(|_| about.too_slow())?.map_err(|error| about.error(&error))
}

pub(super) async fn exchanges(wire: &Wire) -> Result<(), LinkError> {
    for (name, kind) in EXCHANGES {
        let kind = match kind {
            ExchangeType::Topic => ExchangeKind::Topic,
            ExchangeType::Direct => ExchangeKind::Direct,
            ExchangeType::Fanout => ExchangeKind::Fanout,
        };
        let channel = wire.channel().await?;
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let declared = channel.exchange_declare(name.into(), kind, options, FieldTable::default());
        call(wire, &format!("declaring the exchange {name}"), declared).await?;
    }
    Ok(())
}

/// Declares a queue of work after its dead letters and its lanes.
pub(super) async fn work(wire: &Wire, work: &Work) -> Result<(), LinkError> {
    let channel = wire.channel().await?;
    for queue in work.queues() {
        one(wire, &channel, queue).await?;
    }
    Ok(())
}

async fn one(wire: &Wire, channel: &Channel, queue: &AmqpQueue) -> Result<(), LinkError> {
    let name = queue.name.as_str();
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(name.into(), options, arguments(queue));
    call(wire, &format!("declaring the queue {name}"), declared).await?;
    if let Some((exchange, key)) = &queue.binding {
        let bound = channel.queue_bind(
            name.into(),
            (*exchange).into(),
            key.as_str().into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        );
        call(wire, &format!("binding the queue {name}"), bound).await?;
    }
    Ok(())
}

/// Declares one queue.
pub(super) async fn queue(wire: &Wire, queue: &AmqpQueue) -> Result<(), LinkError> {
    let channel = wire.channel().await?;
    one(wire, &channel, queue).await
}

/// Declares a queue that no other connection can use; it ends with this one.
pub(super) async fn lock(wire: &Wire, channel: &Channel, name: &str) -> Result<(), LinkError> {
    let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(name.into(), options, classic());
    call(wire, &format!("locking the queue {name}"), declared).await.map(drop)
}

/// Declares a queue that ends with its last consumer.
pub(super) async fn presence(wire: &Wire, channel: &Channel, name: &str) -> Result<(), LinkError> {
    let options =
        QueueDeclareOptions { durable: true, auto_delete: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(name.into(), options, classic());
    call(wire, &format!("declaring the queue {name}"), declared).await.map(drop)
}

/// The arguments of a queue that lives as long as a connection: a vhost may have another type by default.
fn classic() -> FieldTable {
    let mut table = FieldTable::default();
    table.insert("x-queue-type".into(), AMQPValue::LongString("classic".into()));
    table
}

/// Returns the name of a new queue that belongs to one consumer and gets all of an exchange.
pub(super) async fn own_queue(
    wire: &Wire,
    channel: &Channel,
    exchange: &str,
) -> Result<String, LinkError> {
    let options = QueueDeclareOptions {
        exclusive: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel.queue_declare("".into(), options, FieldTable::default());
    let queue = call(wire, "declaring a queue of its own", declared).await?;
    let name = queue.name().to_string();
    let bound = channel.queue_bind(
        name.as_str().into(),
        exchange.into(),
        "".into(),
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    call(wire, "binding a queue of its own", bound).await?;
    Ok(name)
}

/// Counts the messages and the consumers of a queue; `None` if it does not exist.
pub(super) async fn counts(wire: &Wire, name: &str) -> Result<Option<QueueCounts>, LinkError> {
    let channel = wire.channel().await?;
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(name.into(), options, FieldTable::default());
    match call(wire, &format!("looking at the queue {name}"), declared).await {
        Ok(queue) => Ok(Some(QueueCounts {
            messages: queue.message_count(),
            consumers: queue.consumer_count(),
        })),
        Err(LinkError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if an exchange exists.
pub(super) async fn has_exchange(wire: &Wire, name: &str) -> Result<bool, LinkError> {
    let channel = wire.channel().await?;
    let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
    let kind = ExchangeKind::Topic;
    let declared = channel.exchange_declare(name.into(), kind, options, FieldTable::default());
    match call(wire, &format!("looking at the exchange {name}"), declared).await {
        Ok(()) => Ok(true),
        Err(LinkError::Missing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes the messages of a queue. Returns their number.
pub(super) async fn purge(wire: &Wire, name: &str) -> Result<u32, LinkError> {
    let channel = wire.channel().await?;
    let purged = channel.queue_purge(name.into(), QueuePurgeOptions::default());
    call(wire, &format!("purging the queue {name}"), purged).await
}

/// Deletes a queue. Returns the number of its messages.
pub(super) async fn delete(wire: &Wire, name: &str) -> Result<u32, LinkError> {
    let channel = wire.channel().await?;
    let deleted = channel.queue_delete(name.into(), QueueDeleteOptions::default());
    call(wire, &format!("deleting the queue {name}"), deleted).await
}

/// Takes one message out of a queue. An unacknowledged message returns when the channel is dropped.
pub(super) async fn get(
    wire: &Wire,
    channel: &Channel,
    name: &str,
) -> Result<Option<Delivery>, LinkError> {
    let got = channel.basic_get(name.into(), BasicGetOptions::default());
    let got = call(wire, &format!("reading the queue {name}"), got).await?;
    Ok(got.map(|message| Delivery::of(message.delivery)))
}

fn arguments(queue: &AmqpQueue) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in &queue.arguments {
        let value = match value {
            Argument::Text(text) => AMQPValue::LongString(text.as_str().into()),
            Argument::Number(number) => AMQPValue::LongLongInt(*number),
        };
        table.insert((*name).into(), value);
    }
    table
}
