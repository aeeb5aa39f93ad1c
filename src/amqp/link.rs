//! The connections to RabbitMQ: one for publishing only, one for consuming only. Each is opened when it is
//! needed, and again after it was lost; the callers declare and consume again.

mod consume;
mod declare;
mod error;
mod frame_repair;
mod management;
mod publish;
mod stream;
mod wire;

pub use consume::{Death, Deliveries, Delivery};
pub use declare::QueueCounts;
pub use error::LinkError;
pub use management::Management;
pub use publish::{Again, DIRECT_REPLY, Outgoing};

use std::sync::Arc;
use std::time::Duration;

use lapin::Channel;
use tokio::time::timeout;

use super::message::Properties;
use crate::config::AmqpConfig;
use publish::Publisher;
use wire::{BrokerAddress, Wire};

/// The two connections of one process. Cheap to clone.
#[derive(Clone)]
pub struct Link {
    publisher: Arc<Publisher>,
    consuming: Arc<Wire>,
}

impl Link {
    /// Reads the secrets of a configuration. Connects with the first call.
    ///
    /// # Errors
    /// [`LinkError::Settings`].
    pub fn open(config: &AmqpConfig, name: &str) -> Result<Self, LinkError> {
        let way = Arc::new(BrokerAddress::of(config)?);
        let wire = |purpose: &str| Wire::new(Arc::clone(&way), format!("hero {name} {purpose}"));
        let publisher = Arc::new(Publisher::new(wire("publishes")));
        Ok(Self { publisher, consuming: Arc::new(wire("consumes")) })
    }

    /// Returns the address without the password.
    pub fn address(&self) -> &str {
        &self.consuming.way.address
    }

    pub fn management(&self, config: &AmqpConfig) -> Option<Management> {
        let is_there = !config.management_url.is_empty();
        is_there.then(|| Management::new(config, &self.consuming.way))
    }

    /// Connects, if there is no connection yet.
    pub async fn connect(&self) -> Result<(), LinkError> {
        self.consuming.channel().await.map(drop)
    }

    /// Publishes a message and waits until RabbitMQ has stored it.
    ///
    /// # Errors
    /// [`LinkError::Unroutable`], [`LinkError::Rejected`]; after [`LinkError::Unreachable`] it may be
    /// stored nevertheless.
    pub async fn publish(&self, out: Outgoing<'_>) -> Result<(), LinkError> {
        self.publisher
            .send((out.exchange, out.key), out.body, || publish::basic(out.properties))
            .await
    }

    /// Publishes a delivery again, with other headers, and waits until RabbitMQ has stored it.
    pub async fn publish_again(
        &self,
        delivery: &Delivery,
        again: &Again<'_>,
    ) -> Result<(), LinkError> {
        let properties = || again.properties(&delivery.all);
        self.publisher.send((again.exchange, again.key), &delivery.body, properties).await
    }

    /// Returns true if RabbitMQ lacks memory or disk, and has asked to publish nothing.
    pub async fn is_blocked(&self) -> bool {
        self.publisher.wire.is_blocked().await
    }

    /// Publishes a message and waits for the answer to it; `None` if none came in time.
    pub async fn request(
        &self,
        out: Outgoing<'_>,
        patience: Duration,
    ) -> Result<Option<Vec<u8>>, LinkError> {
        let wire = &self.consuming;
        let channel = publish::confirming(wire).await?;
        // The answers come on the channel that asked.
        let mut answers = Deliveries::start(channel.clone(), wire, DIRECT_REPLY, None).await?;
        let reply_to = Some(DIRECT_REPLY.to_owned());
        let properties = Properties { reply_to, ..out.properties.clone() };
        let (to, basic) = ((out.exchange, out.key), publish::basic(&properties));
        publish::send(&channel, wire, to, out.body, basic).await?;
        let answered = timeout(patience, async {
            loop {
                let answer = answers.next().await?;
                if answer.properties.correlation_id == properties.correlation_id {
                    return Ok(answer.body);
                }
            }
        });
        answered.await.ok().transpose()
    }

    /// Consumes a queue; each delivery waits for its acknowledgement.
    pub async fn consume(&self, queue: &str, prefetch: u16) -> Result<Deliveries, LinkError> {
        let channel = self.consuming.channel().await?;
        Deliveries::start(channel, &self.consuming, queue, Some(prefetch)).await
    }

    /// Opens a queue to take messages out one by one.
    pub async fn open_queue(&self, queue: &str) -> Result<Taking, LinkError> {
        let channel = self.consuming.channel().await?;
        Ok(Taking { wire: Arc::clone(&self.consuming), channel, queue: queue.to_owned() })
    }

    pub async fn close(&self) {
        self.publisher.wire.close().await;
        self.consuming.close().await;
    }
}

/// Takes messages out of a queue one by one. Those that were not acknowledged return when it is dropped.
pub struct Taking {
    wire: Arc<Wire>,
    channel: Channel,
    queue: String,
}

impl Taking {
    /// Ends it. Messages that were not acknowledged have returned by then.
    pub async fn close(self) {
        // They return as well when the connection is lost.
        let _ = timeout(wire::PATIENCE, self.channel.close(200, "bye".into())).await;
    }
}
