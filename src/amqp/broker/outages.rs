//! Outages of the stores of built-ins. A message waits for its store: an outage is no failed attempt.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::warn;

use super::shared::{BrokerCounts, Shared, note_answer};
use crate::amqp::link::Delivery;
use crate::amqp::message::AmqpMessage;
use crate::amqp::topology::Work;
use crate::config::BuiltInName;
use crate::store::Backoff;
use crate::trace::OpenSpan;

/// The code of a failure when a store is away.
const UNAVAILABLE: &str = "unavailable";
/// The code of a failure when a store refuses the login, if it may pass.
const DENIED: &str = "denied";
/// The longest wait for an answer of Redis.
const PATIENCE: Duration = Duration::from_secs(5);

impl Shared {
    /// Lets a built-in serve a delivery, and settles it. While Redis is away it holds the delivery, so
    /// that its dispatcher takes no more than its window.
    pub(super) async fn serve_built_in(
        self: &Arc<Self>,
        name: BuiltInName,
        (delivery, message): (&Delivery, &AmqpMessage),
        span: Option<OpenSpan>,
        work: &Work,
    ) {
        loop {
            let answer = self.built_ins.serve(name, message).await;
            let is_away = matches!(
                &answer,
                Err(failure)
                    if failure.code == UNAVAILABLE || failure.retryable && failure.code == DENIED
            );
            let is_database = name == BuiltInName::Relational;
            if is_database && !is_away {
                note_answer(&self.database_outage, "MariaDB");
            }
            if is_away && is_database {
                if self.database_outage.failed(Instant::now())
                    && let Some(failure) = answer.as_ref().err()
                {
                    warn!(
                        "{failure}; messages of rel.* wait in the longest retry lane until it answers"
                    );
                }
                // Others use the same queue: it returns by the longest lane, and that is no attempt.
                return self.retry_delivery(delivery, message, work, message.attempt).await;
            }
            if !is_away || !self.redis_was_away().await {
                self.end_span(span, message, None, answer.as_ref().err());
                self.settle(delivery, message, work, answer).await;
                BrokerCounts::add(&self.counts.served);
                return;
            }
            // Others get it, or this process as another delivery.
            if self.is_leaving() || !delivery.is_live() {
                return;
            }
        }
    }

    /// Waits until Redis answers, or this process is to end. Returns false if it answers at once.
    pub(super) async fn redis_was_away(&self) -> bool {
        let (mut backoff, mut was_away) = (Backoff::default(), false);
        loop {
            let presence = self.presence();
            // A Redis that is read-only answers as well.
            let probe = self.store.brokers().note(&self.scope, &presence);
            match tokio::time::timeout(PATIENCE, probe).await {
                Ok(Ok(())) => {
                    self.redis_answered();
                    return was_away;
                }
                Ok(Err(error)) => self.redis_failed("serving messages", &error),
                Err(_) => _ = self.redis_outage.failed(Instant::now()),
            }
            was_away = true;
            if self.pause(&mut backoff).await.is_none() {
                return true;
            }
        }
    }
}
