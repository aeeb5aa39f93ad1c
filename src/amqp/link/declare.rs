//! Declares exchanges and queues, and asks about them. Each call has a channel of its own, since RabbitMQ
//! closes the channel of a call that fails.

use lapin::options::{
    BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
    QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind};
use serde_json::Value;

use super::consume::Delivery;
use super::error::LinkError;
use super::{Deliveries, Link, Taking};
use crate::amqp::topology::{AmqpQueue, EXCHANGES, Work};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCounts {
    /// Messages that are ready.
    pub messages: u32,
    pub consumers: u32,
}

impl Link {
    pub async fn declare_exchanges(&self) -> Result<(), LinkError> {
        for (name, kind) in EXCHANGES {
            let options =
                ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
            let doing = format!("declaring the exchange {name}");
            let kind = ExchangeKind::Custom(kind.to_owned());
            self.declare_exchange(&doing, name, kind, options).await?;
        }
        Ok(())
    }

    async fn declare_exchange(
        &self,
        doing: &str,
        name: &str,
        kind: ExchangeKind,
        options: ExchangeDeclareOptions,
    ) -> Result<(), LinkError> {
        let channel = self.consuming.channel().await?;
        let declared = channel.exchange_declare(name.into(), kind, options, FieldTable::default());
        self.consuming.way.call(doing, declared).await
    }

    /// Declares a queue with its retry lanes and its dead letters, which come first.
    ///
    /// # Errors
    /// [`LinkError::OtherArguments`].
    pub async fn declare_work(&self, work: &Work) -> Result<(), LinkError> {
        let channel = self.consuming.channel().await?;
        for queue in work.queues() {
            self.declare_on(&channel, queue).await?;
        }
        Ok(())
    }

    pub async fn declare_queue(&self, queue: &AmqpQueue) -> Result<(), LinkError> {
        self.declare_on(&self.consuming.channel().await?, queue).await
    }

    async fn declare_on(&self, channel: &Channel, queue: &AmqpQueue) -> Result<(), LinkError> {
        let name = queue.name.as_str();
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        let declared = channel.queue_declare(name.into(), options, arguments(queue));
        let doing = format!("declaring the queue {name}");
        self.consuming.way.call(&doing, declared).await?;
        match &queue.binding {
            Some((exchange, key)) => self.bind(channel, name, exchange, key).await,
            None => Ok(()),
        }
    }

    async fn bind(
        &self,
        channel: &Channel,
        name: &str,
        exchange: &str,
        key: &str,
    ) -> Result<(), LinkError> {
        let (options, arguments) = (QueueBindOptions::default(), FieldTable::default());
        let bound =
            channel.queue_bind(name.into(), exchange.into(), key.into(), options, arguments);
        self.consuming.way.call(&format!("binding the queue {name}"), bound).await
    }

    /// Takes a lock: a queue that no other connection can use; it ends with this one, or when it is deleted.
    ///
    /// # Errors
    /// [`LinkError::Locked`] while another connection has it.
    pub async fn lock(&self, name: &str) -> Result<(), LinkError> {
        let channel = self.consuming.channel().await?;
        let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
        let declared = channel.queue_declare(name.into(), options, classic());
        self.consuming.way.call(&format!("locking the queue {name}"), declared).await.map(drop)
    }

    /// Consumes a queue that ends with its last consumer.
    pub async fn stay(&self, name: &str) -> Result<Deliveries, LinkError> {
        let channel = self.consuming.channel().await?;
        let options =
            QueueDeclareOptions { durable: true, auto_delete: true, ..Default::default() };
        let declared = channel.queue_declare(name.into(), options, classic());
        self.consuming.way.call(&format!("declaring the queue {name}"), declared).await?;
        Deliveries::start(channel, &self.consuming, name, None).await
    }

    /// Consumes all messages of an exchange, by a queue that belongs to this one consumer.
    pub async fn listen(&self, exchange: &str) -> Result<Deliveries, LinkError> {
        let channel = self.consuming.channel().await?;
        let options =
            QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() };
        let declared = channel.queue_declare("".into(), options, FieldTable::default());
        let queue = self.consuming.way.call("declaring a queue of its own", declared).await?;
        let name = queue.name().to_string();
        self.bind(&channel, &name, exchange, "").await?;
        Deliveries::start(channel, &self.consuming, &name, None).await
    }

    /// Counts the messages and consumers of a queue; `None` if it does not exist.
    pub async fn counts(&self, name: &str) -> Result<Option<QueueCounts>, LinkError> {
        let channel = self.consuming.channel().await?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let declared = channel.queue_declare(name.into(), options, FieldTable::default());
        let doing = format!("looking at the queue {name}");
        let queue = unless_missing(self.consuming.way.call(&doing, declared).await)?;
        Ok(queue.map(|queue| QueueCounts {
            messages: queue.message_count(),
            consumers: queue.consumer_count(),
        }))
    }

    pub async fn has_exchange(&self, name: &str) -> Result<bool, LinkError> {
        let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
        let doing = format!("looking at the exchange {name}");
        let found = self.declare_exchange(&doing, name, ExchangeKind::Topic, options).await;
        Ok(unless_missing(found)?.is_some())
    }

    /// Deletes the messages of a queue. Returns their number.
    pub async fn purge(&self, name: &str) -> Result<u32, LinkError> {
        let channel = self.consuming.channel().await?;
        let purged = channel.queue_purge(name.into(), QueuePurgeOptions::default());
        self.consuming.way.call(&format!("purging the queue {name}"), purged).await
    }

    /// Deletes a queue with its messages. Returns their number.
    pub async fn delete(&self, name: &str) -> Result<u32, LinkError> {
        let channel = self.consuming.channel().await?;
        let deleted = channel.queue_delete(name.into(), QueueDeleteOptions::default());
        self.consuming.way.call(&format!("deleting the queue {name}"), deleted).await
    }
}

impl Taking {
    /// Takes the next message; `None` if there is none.
    pub async fn next(&self) -> Result<Option<Delivery>, LinkError> {
        let name = &self.queue;
        let got = self.channel.basic_get(name.as_str().into(), BasicGetOptions::default());
        let got = self.wire.way.call(&format!("reading the queue {name}"), got).await?;
        Ok(got.map(|message| Delivery::of(message.delivery)))
    }
}

/// Returns what was found; `None` if it does not exist.
fn unless_missing<T>(found: Result<T, LinkError>) -> Result<Option<T>, LinkError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(LinkError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The arguments of a queue that lives as long as a connection: a vhost may have another type by default.
fn classic() -> FieldTable {
    let mut table = FieldTable::default();
    table.insert("x-queue-type".into(), AMQPValue::LongString("classic".into()));
    table
}

fn arguments(queue: &AmqpQueue) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in &queue.arguments {
        let value = match value {
            Value::String(text) => AMQPValue::LongString(text.as_str().into()),
            number => AMQPValue::LongLongInt(number.as_i64().unwrap_or_default()),
        };
        table.insert((*name).into(), value);
    }
    table
}
