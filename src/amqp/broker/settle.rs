//! The end of a message: its answer, a retry lane, or the dead letters.

use std::sync::Arc;
use std::time::Duration;

use tracing::{error, warn};

use super::shared::{BrokerCounts, Shared};
use crate::amqp::link::{Again, Delivery, LinkError, Outgoing};
use crate::amqp::message::{
    ATTEMPT, AmqpMessage, KEY, MessageAnswer, MessageFailure, NOT_UTF8, Properties, REASON, RUN,
};
use crate::amqp::topology::{DEAD_LETTERS, Work};
use crate::store::Backoff;

/// The longest reason that a dead letter carries.
const REASON_CHARS_MAX: usize = 1000;
/// The attempts to publish once the process is to end.
const LAST_ATTEMPTS: u32 = 3;

impl Shared {
    /// Settles a delivery that was served while it waits for its acknowledgement.
    pub(super) async fn settle(
        self: &Arc<Self>,
        delivery: &Delivery,
        message: &AmqpMessage,
        work: &Work,
        answer: MessageAnswer,
    ) {
        match answer {
            Ok(_) => {
                if self.reply(&message.properties(), &answer, true).await.is_ok() {
                    delivery.ack().await;
                    self.note_end(&message.key, "done");
                }
            }
            Err(failure) if self.may_retry(message, &failure) => {
                self.retry_delivery(delivery, message, work, message.attempt + 1).await;
            }
            Err(failure) => {
                self.refuse(delivery, Some(message), work, failure).await;
            }
        }
    }

    /// Sends a delivery to a retry lane, as this attempt, and acknowledges it.
    pub(super) async fn retry_delivery(
        &self,
        delivery: &Delivery,
        message: &AmqpMessage,
        work: &Work,
        attempt: u32,
    ) {
        match self.retry(message, work, attempt, true).await {
            Ok(()) => delivery.ack().await,
            Err(error) => {
                let trace_id = message.trace().map(|trace| trace.trace_id());
                warn!(trace_id, "cannot retry a message of {}: {error}", message.queue);
                // The same would happen again at once.
                tokio::time::sleep(Duration::from_secs(1)).await;
                delivery.put_back().await;
            }
        }
    }

    /// Makes a delivery that cannot be served a dead letter, and answers it. RabbitMQ would drop a
    /// rejected message whose dead letter queue is gone, so the letter is published, and the delivery is
    /// acknowledged once RabbitMQ has stored it.
    pub(super) async fn refuse(
        self: &Arc<Self>,
        delivery: &Delivery,
        message: Option<&AmqpMessage>,
        work: &Work,
        failure: MessageFailure,
    ) {
        let properties =
            message.map_or_else(|| delivery.properties.clone(), AmqpMessage::properties);
        let reason = dead_letter(&work.queue.name, &properties, &failure);
        if self.bury_delivery(delivery, message, work, &reason).await.is_err() {
            // This process ends. The process that gets the message next buries it.
            return;
        }
        BrokerCounts::add(&self.counts.dead);
        self.note_end(message.map_or(&delivery.key, |message| &message.key), "dead");
        let answer = Err(failure);
        // It is a dead letter also if nobody gets its answer.
        let _ = self.reply(&properties, &answer, true).await;
        delivery.ack().await;
    }

    /// Publishes a delivery as a dead letter, with all its properties.
    async fn bury_delivery(
        &self,
        delivery: &Delivery,
        message: Option<&AmqpMessage>,
        work: &Work,
        reason: &str,
    ) -> Result<(), LinkError> {
        // A message that was moved back knows its key.
        let own = delivery.properties.headers.get(KEY).filter(|_| delivery.exchange.is_empty());
        let key = message.map_or(own.unwrap_or(&delivery.key), |message| &message.key);
        let mut headers = vec![(REASON, reason.to_owned()), (KEY, key.clone())];
        if let Some(message) = message {
            headers
                .extend([(RUN, message.run.to_string()), (ATTEMPT, message.attempt.to_string())]);
        }
        let (exchange, key) = (DEAD_LETTERS, work.dead_key.as_str());
        let again = Again { exchange, key, headers, without: &[] };
        self.put(work, true, || self.link.publish_again(delivery, &again)).await
    }

    /// Settles a message that was acknowledged when its job was stored. Returns its answer; `None` if it
    /// is tried again.
    ///
    /// # Errors
    /// [`LinkError`]; nothing was published, or not for sure.
    pub(super) async fn settle_job(
        self: &Arc<Self>,
        message: &AmqpMessage,
        answer: MessageAnswer,
    ) -> Result<Option<MessageAnswer>, LinkError> {
        let work = self.work.get(&message.queue);
        if let (Err(failure), work) = (&answer, work) {
            match work {
                Some(work) if self.may_retry(message, failure) => {
                    self.retry(message, work, message.attempt + 1, false).await?;
                    return Ok(None);
                }
                Some(work) => self.bury(message, work, failure).await?,
                None => warn!(
                    "the queue {} is not in the topology any more: a failed message is no dead \
                     letter: {}",
                    message.queue, failure.message
                ),
            }
        }
        self.reply(&message.properties(), &answer, false).await?;
        Ok(Some(answer))
    }

    pub(super) fn may_retry(&self, message: &AmqpMessage, failure: &MessageFailure) -> bool {
        failure.retryable && message.attempt < self.settings.amqp.max_retries
    }

    /// Sends a message to the retry lane of its queue for the failed attempt.
    async fn retry(
        &self,
        message: &AmqpMessage,
        work: &Work,
        attempt: u32,
        insists: bool,
    ) -> Result<(), LinkError> {
        // A message that waits for a store is not counted, and waits the longest.
        let lane = if attempt > message.attempt { message.attempt } else { u32::MAX };
        let Some(lane) = work.lane(lane) else { return Ok(()) };
        let again = AmqpMessage { attempt, ..message.clone() };
        let (body, properties) = (again.body(), again.properties());
        let out = Outgoing { exchange: "", key: &lane.name, body: &body, properties: &properties };
        self.put(work, insists, || self.link.publish(out)).await?;
        BrokerCounts::add(&self.counts.retried);
        self.note_end(&message.key, "retried");
        Ok(())
    }

    /// Makes a message that was acknowledged a dead letter, with the reason.
    async fn bury(
        &self,
        message: &AmqpMessage,
        work: &Work,
        failure: &MessageFailure,
    ) -> Result<(), LinkError> {
        let (body, mut properties) = (message.body(), message.properties());
        let reason = dead_letter(&message.queue, &properties, failure);
        properties.headers.insert(REASON.to_owned(), reason);
        let (exchange, key) = (DEAD_LETTERS, work.dead_key.as_str());
        let out = Outgoing { exchange, key, body: &body, properties: &properties };
        self.put(work, false, || self.link.publish(out)).await?;
        BrokerCounts::add(&self.counts.dead);
        self.note_end(&message.key, "dead");
        Ok(())
    }

    /// Publishes into a queue of the topology, which is declared again if it or its binding is gone. With
    /// `insists` it tries until RabbitMQ has stored the message, or this process ends.
    async fn put<F>(
        &self,
        work: &Work,
        insists: bool,
        publish: impl Fn() -> F,
    ) -> Result<(), LinkError>
    where
        F: Future<Output = Result<(), LinkError>>,
    {
        let (mut backoff, mut last) = (Backoff::default(), 0);
        loop {
            let mut sent = publish().await;
            if let Err(LinkError::Unroutable { .. } | LinkError::Missing { .. }) = &sent {
                let queue = &work.queue.name;
                warn!("a queue, an exchange or a binding of {queue} is gone: declaring all again");
                sent = match self.declare(work).await {
                    Ok(()) => publish().await,
                    Err(error) => Err(error),
                };
            }
            match sent {
                Err(error) if insists && last < LAST_ATTEMPTS => {
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

    /// Declares the exchanges, and a queue with its lanes and dead letters.
    pub(super) async fn declare(&self, work: &Work) -> Result<(), LinkError> {
        let _declaring = self.declaring.lock().await;
        self.link.declare_exchanges().await?;
        self.link.declare_work(work).await
    }
}

/// Logs that a message becomes a dead letter. Returns the reason that it carries.
fn dead_letter(queue: &str, properties: &Properties, failure: &MessageFailure) -> String {
    let text = format!("{}: {}", failure.code, failure.message);
    let reason: String = text.chars().take(REASON_CHARS_MAX).collect();
    let id = properties.message_id.as_deref().unwrap_or("none");
    let trace_id = properties.trace().map(|trace| trace.trace_id());
    if failure.code == NOT_UTF8 {
        error!(queue, message_id = id, trace_id, "a message becomes a dead letter: {reason}");
    } else {
        warn!(queue, message_id = id, trace_id, "a message becomes a dead letter: {reason}");
    }
    reason
}
