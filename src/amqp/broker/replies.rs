//! Answers. If its queue rejects an answer, it is retried for a bounded time beside the work, then dropped:
//! a client that reads no answers holds up nobody.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{debug, warn};

use super::shared::{BrokerCounts, Shared};
use crate::amqp::link::{DIRECT_REPLY, LinkError, Outgoing};
use crate::amqp::message::{CHAIN, MessageAnswer, Properties, ROOT, answer_body};
use crate::amqp::topology::OWNER;
use crate::proto::job::TraceParent;
use crate::proto::pattern::matches;
use crate::proto::text::counted;
use crate::store::Backoff;

/// The time that an answer holds up its message.
const QUICK: Duration = Duration::from_secs(1);
/// The time that an answer is tried after that.
const WITHIN: Duration = Duration::from_secs(30);
/// The bytes of all answers that are tried beside the work, in KiB.
pub(super) const WAITING_KIB_MAX: usize = 16 << 10;
/// The attempts to publish once the process is to end.
const LAST_ATTEMPTS: u32 = 3;
/// The longest time that answers which are tried beside the work hold up the end.
const LAST_WITHIN: Duration = Duration::from_secs(5);

struct PendingAnswer {
    to: String,
    body: Vec<u8>,
    properties: Properties,
}

impl PendingAnswer {
    fn out(&self) -> Outgoing<'_> {
        let Self { to, body, properties } = self;
        Outgoing { exchange: "", key: to, body, properties }
    }
}

impl Shared {
    /// Publishes the answer, if one is asked for. If its queue rejects it, or does not confirm it, it is retried
    /// beside the work; an answer that cannot be delivered is dropped. `insists` tries again while RabbitMQ is
    /// away.
    ///
    /// # Errors
    /// [`LinkError`] if RabbitMQ is away.
    pub(super) async fn reply(
        self: &Arc<Self>,
        asked: &Properties,
        answer: &MessageAnswer,
        insists: bool,
    ) -> Result<(), LinkError> {
        let Some(reply) = self.reply_of(asked, answer) else { return Ok(()) };
        let (mut backoff, mut last) = (Backoff::default(), 0);
        loop {
            let error = match timeout(QUICK, self.link.publish(reply.out())).await {
                Ok(Ok(())) => {
                    BrokerCounts::add(&self.counts.answers);
                    self.rabbit_answered();
                    return Ok(());
                }
                Ok(Err(LinkError::Rejected { .. } | LinkError::NotPermitted { .. })) => {
                    self.try_beside(reply);
                    return Ok(());
                }
                Ok(Err(error @ LinkError::Unroutable { .. })) => {
                    debug!("nobody waits for an answer: {error}");
                    return Ok(());
                }
                // Another message may have closed the channel, as its exchange is gone.
                Ok(Err(error)) => error,
                // RabbitMQ confirms nothing for a queue that has lost its majority.
                Err(_) => match timeout(QUICK, self.link.counts(OWNER)).await {
                    Ok(Ok(_)) if !self.link.is_blocked().await => {
                        self.try_beside(reply);
                        return Ok(());
                    }
                    Ok(Err(error)) => error,
                    _ => LinkError::Unreachable {
                        address: self.link.address().to_owned(),
                        reason: "does not confirm an answer".to_owned(),
                    },
                },
            };
            if !insists || last >= LAST_ATTEMPTS {
                return Err(error);
            }
            self.rabbit_failed("publishing an answer", &error);
            last += u32::from(self.is_leaving());
            tokio::time::sleep(backoff.failed()).await;
        }
    }

    fn reply_of(&self, asked: &Properties, answer: &MessageAnswer) -> Option<PendingAnswer> {
        let to = asked.reply_to.as_deref().filter(|to| !to.is_empty())?;
        let allowed = &self.settings.amqp.reply_queues;
        let is_allowed = to.starts_with(DIRECT_REPLY) || allowed.iter().any(|one| matches(one, to));
        if self.is_own_queue(to) || !is_allowed {
            warn!("an answer was asked for in the queue {to}, which is not a queue of answers");
            return None;
        }
        let trace = asked.trace().map(|trace| (TraceParent::HEADER.to_owned(), trace.to_string()));
        let others = [ROOT, CHAIN].into_iter();
        let others =
            others.filter_map(|name| Some((name.to_owned(), asked.headers.get(name)?.clone())));
        let properties = Properties {
            kind: Some("reply".to_owned()),
            correlation_id: asked.correlation_id.clone(),
            headers: others.chain(trace).collect(),
            ..Properties::default()
        };
        Some(PendingAnswer { to: to.to_owned(), body: answer_body(answer), properties })
    }

    /// Returns true for a queue of the topology: an answer there would be a message.
    fn is_own_queue(&self, name: &str) -> bool {
        let is_of = |queue: &crate::amqp::topology::AmqpQueue| queue.name == name;
        name.starts_with(OWNER) || self.work.values().any(|work| work.queues().any(is_of))
    }

    fn try_beside(self: &Arc<Self>, reply: PendingAnswer) {
        let kib = u32::try_from(reply.body.len() >> 10).unwrap_or(u32::MAX).saturating_add(1);
        match Arc::clone(&self.replies).try_acquire_many_owned(kib) {
            Ok(room) => {
                BrokerCounts::add(&self.counts.answers_waiting);
                tokio::spawn(Arc::clone(self).try_for_a_time(reply, room));
            }
            Err(_) => self.drop_reply(&reply, "too many answers wait for queues that reject them"),
        }
    }

    /// Waits until no answer is tried beside the work, for a short time: the process ends, and drops the others.
    pub(super) async fn end_replies(&self) {
        let all = u32::try_from(WAITING_KIB_MAX).unwrap_or(u32::MAX);
        if timeout(LAST_WITHIN, self.replies.acquire_many(all)).await.is_ok() {
            return;
        }
        let left = self.counts.answers_waiting.load(Ordering::Relaxed);
        self.counts.dropped.fetch_add(left, Ordering::Relaxed);
        warn!(
            "{} dropped: this process ends, and RabbitMQ has not taken them within {} s",
            counted(left, "answer is", "answers are"),
            LAST_WITHIN.as_secs()
        );
    }

    async fn try_for_a_time(self: Arc<Self>, reply: PendingAnswer, room: OwnedSemaphorePermit) {
        let (end, mut backoff) = (Instant::now() + WITHIN, Backoff::default());
        let reason = loop {
            tokio::time::sleep(backoff.failed()).await;
            match timeout_at(end, self.link.publish(reply.out())).await {
                Ok(Ok(())) => break None,
                Ok(Err(error @ LinkError::Unroutable { .. })) => break Some(error.to_string()),
                Ok(Err(error)) if Instant::now() >= end => break Some(error.to_string()),
                Ok(Err(error)) => debug!("publishing an answer: {error}; trying again"),
                Err(_) => break Some("RabbitMQ does not confirm it".to_owned()),
            }
        };
        self.counts.answers_waiting.fetch_sub(1, Ordering::Relaxed);
        match reason {
            None => BrokerCounts::add(&self.counts.answers),
            Some(reason) => self.drop_reply(&reply, &reason),
        }
        drop(room);
    }

    fn drop_reply(&self, reply: &PendingAnswer, reason: &str) {
        let dropped = self.counts.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        // A client that reads no answer is one line, then one per doubling.
        if dropped.is_power_of_two() {
            warn!(
                "an answer to the queue {} is dropped: {reason}; {dropped} dropped since the start",
                reply.to
            );
        }
    }
}
