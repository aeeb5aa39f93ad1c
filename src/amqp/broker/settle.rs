//! The end of a message: its answer, a retry lane, or the dead letters.

use std::time::Duration;

use tracing::{debug, warn};

use super::shared::{BrokerCounts, Shared};
use crate::amqp::link::{Delivery, LinkError, Outgoing};
use crate::amqp::message::{
    AmqpMessage, CHAIN, MessageAnswer, MessageFailure, Properties, REASON, ROOT, TRACEPARENT,
};
use crate::amqp::topology::{DEAD_LETTERS, Work};
use crate::store::Backoff;

/// The longest reason that a dead letter carries.
const REASON_CHARS_MAX: usize = 1000;
/// The attempts to publish once the process is to end.
const LAST_ATTEMPTS: u32 = 3;

impl Shared {
    /// Publishes until RabbitMQ has stored the message, or this process ends.
    async fn publish(&self, out: Outgoing<'_>) -> Result<(), LinkError> {
        let mut backoff = Backoff::default();
        let mut last = 0;
        loop {
            match self.link.publish(out).await {
                Err(error) if error.is_transient() && last < LAST_ATTEMPTS => {
                    self.rabbit_failed("publishing", &error);
                    last += u32::from(self.is_leaving());
                    tokio::time::sleep(backoff.failed()).await;
                }
                done => {
                    if done.is_ok() {
                        self.rabbit_answered();
                    }
                    return done;
                }
            }
        }
    }

    /// Settles a delivery that was served while it waits for its acknowledgement.
    pub(super) async fn settle(
        &self,
        delivery: &Delivery,
        message: &AmqpMessage,
        work: &Work,
        answer: MessageAnswer,
    ) {
        match answer {
            MessageAnswer::Done(_) => {
                if self.reply(&message.properties(), &answer, true).await.is_ok() {
                    delivery.ack().await;
                }
            }
            MessageAnswer::Failed(failure) if self.may_retry(message, &failure) => {
                match self.retry(message, work, true).await {
                    Ok(()) => delivery.ack().await,
                    Err(error) => {
                        warn!("cannot retry a message of {}: {error}", message.queue);
                        // The same would happen again at once.
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        delivery.put_back().await;
                    }
                }
            }
            MessageAnswer::Failed(failure) => {
                self.refuse(delivery, &message.properties(), &message.queue, failure).await;
            }
        }
    }

    /// Answers a delivery that cannot be served, and makes it a dead letter.
    pub(super) async fn refuse(
        &self,
        delivery: &Delivery,
        properties: &Properties,
        queue: &str,
        failure: MessageFailure,
    ) {
        let reason = short(&failure);
        warn!(queue, "a message becomes a dead letter: {reason}");
        if let Some(id) = &properties.message_id
            && let Err(error) = self.store.keep_reason(&self.scope, id, &reason).await
        {
            debug!("{error}");
        }
        // It is a dead letter also if nobody gets its answer.
        let _ = self.reply(properties, &MessageAnswer::Failed(failure), true).await;
        delivery.reject().await;
        BrokerCounts::add(&self.counts.dead);
    }

    /// Settles a message that was acknowledged when its job was stored.
    ///
    /// # Errors
    /// [`LinkError`]; nothing was published, or not for sure.
    pub(super) async fn settle_job(
        &self,
        message: &AmqpMessage,
        answer: MessageAnswer,
    ) -> Result<(), LinkError> {
        let work = self.work.get(&message.queue);
        match (answer, work) {
            (MessageAnswer::Failed(failure), Some(work)) if self.may_retry(message, &failure) => {
                self.retry(message, work, false).await
            }
            (MessageAnswer::Failed(failure), work) => {
                if let Some(work) = work {
                    self.bury(message, work, &failure).await?;
                } else {
                    warn!(
                        "the queue {} is not in the topology any more: a failed message is no dead \
                         letter: {}",
                        message.queue, failure.message
                    );
                }
                self.reply(&message.properties(), &MessageAnswer::Failed(failure), false).await
            }
            (answer, _) => self.reply(&message.properties(), &answer, false).await,
        }
    }

    fn may_retry(&self, message: &AmqpMessage, failure: &MessageFailure) -> bool {
        failure.retryable && message.attempt < self.settings.amqp.max_retries
    }

    /// Publishes the answer, if one is asked for. An answer that cannot be delivered is dropped.
    async fn reply(
        &self,
        asked: &Properties,
        answer: &MessageAnswer,
        insists: bool,
    ) -> Result<(), LinkError> {
        let Some(to) = asked.reply_to.as_deref().filter(|to| !to.is_empty()) else {
            return Ok(());
        };
        if to.starts_with(&self.settings.amqp.queue_tag) || to.starts_with("beds.") {
            warn!("an answer was asked for in the queue {to}, which is no queue of answers");
            return Ok(());
        }
        let traced = |name: &&str| asked.headers.contains_key(*name);
        let headers = [ROOT, CHAIN, TRACEPARENT].into_iter().filter(traced);
        let properties = Properties {
            kind: Some("reply".to_owned()),
            correlation_id: asked.correlation_id.clone(),
            headers: headers.map(|name| (name.to_owned(), asked.headers[name].clone())).collect(),
            ..Properties::default()
        };
        let body = answer.body();
        let out = Outgoing { exchange: "", key: to, body: &body, properties: &properties };
        let sent = if insists { self.publish(out).await } else { self.link.publish(out).await };
        match sent {
            Ok(()) => {
                BrokerCounts::add(&self.counts.answers);
                Ok(())
            }
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                debug!("nobody waits for an answer: {error}");
                Ok(())
            }
        }
    }

    /// Sends a message to the retry lane of its queue.
    async fn retry(
        &self,
        message: &AmqpMessage,
        work: &Work,
        insists: bool,
    ) -> Result<(), LinkError> {
        let Some(lane) = work.lane(message.attempt) else { return Ok(()) };
        let again = AmqpMessage { attempt: message.attempt + 1, ..message.clone() };
        let (body, properties) = (again.body(), again.properties());
        let out = Outgoing { exchange: "", key: &lane.name, body: &body, properties: &properties };
        self.put(out, work, insists).await?;
        BrokerCounts::add(&self.counts.retried);
        Ok(())
    }

    /// Makes a message that was acknowledged a dead letter, with the reason.
    async fn bury(
        &self,
        message: &AmqpMessage,
        work: &Work,
        failure: &MessageFailure,
    ) -> Result<(), LinkError> {
        let reason = short(failure);
        warn!(queue = message.queue, "a message becomes a dead letter: {reason}");
        let (body, mut properties) = (message.body(), message.properties());
        properties.headers.insert(REASON.to_owned(), reason);
        let (exchange, key) = (DEAD_LETTERS, work.dead_key.as_str());
        let out = Outgoing { exchange, key, body: &body, properties: &properties };
        self.put(out, work, false).await?;
        BrokerCounts::add(&self.counts.dead);
        Ok(())
    }

    /// Publishes into a queue of the topology, which is declared again if it was deleted.
    async fn put(&self, out: Outgoing<'_>, work: &Work, insists: bool) -> Result<(), LinkError> {
        let send = async || {
            if insists { self.publish(out).await } else { self.link.publish(out).await }
        };
        match send().await {
            Err(LinkError::Unroutable { .. }) => {
                self.link.declare_work(work).await?;
                send().await
            }
            other => other,
        }
    }
}

fn short(failure: &MessageFailure) -> String {
    let text = format!("{}: {}", failure.code, failure.message);
    text.chars().take(REASON_CHARS_MAX).collect()
}
