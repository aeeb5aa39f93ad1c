//! Messages that come again with the id of one whose job exists: from a client that has lost its
//! connection, from a shovel, or from RabbitMQ after a broker has died.
//!
//! A repeat of a running job is answered with it, one of an ended job with its kept answer. A failed
//! message, which was a dead letter, runs again. The same id with another message is a dead letter.

use std::sync::Arc;

use tracing::debug;

use super::jobs::{HandedOver, answer_of, chain_id, job_id};
use super::shared::Shared;
use crate::amqp::link::Delivery;
use crate::amqp::message::{AmqpMessage, MessageAnswer, MessageFailure};
use crate::amqp::topology::Work;
use crate::client::AwaitedJob;
use crate::config::AckMode;
use crate::proto::job::{JobId, JobStatus};
use crate::store::{Attached, Backoff, StoreError};
use crate::trace::OpenSpan;

/// The maximum number of runs of one message.
const RUNS_MAX: u32 = 100;

/// A delivery of a message whose job exists.
pub(super) struct Repeat {
    pub(super) delivery: Delivery,
    pub(super) message: AmqpMessage,
    /// The place of its route.
    pub(super) route: usize,
    /// Its span, until its job is stored.
    pub(super) span: Option<OpenSpan>,
}

/// The state of a run of a message, by its newest job.
enum RunState {
    /// No job of it exists.
    Nothing,
    /// It will have an answer: its job runs, or comes again from a retry lane.
    Coming { job: JobId, status: String, next: JobId, asked: Box<AmqpMessage> },
    /// It was answered so.
    Ended { answer: MessageAnswer, asked: Box<AmqpMessage> },
    /// It cannot be known how it ended, for this reason.
    Lost(String),
}

impl Shared {
    /// Serves a repeat until its delivery is settled, or this process is to end.
    pub(super) async fn serve_repeat(self: &Arc<Self>, repeat: Repeat, work: &Work) {
        let Repeat { delivery, mut message, route, .. } = repeat;
        let (first_run, mut backoff) = (message.run, Backoff::default());
        let failure = loop {
            if message.run - first_run > RUNS_MAX {
                let reason = format!("it has failed {RUNS_MAX} times");
                break MessageFailure::lasting("failed_too_often", reason);
            }
            let known = match self.known(&message).await {
                Ok(known) => known,
                Err(error) if self.waited_for_redis(&error, &mut backoff).await => continue,
                Err(_) => return,
            };
            match known {
                RunState::Lost(reason) => break MessageFailure::lasting("unknown_end", reason),
                RunState::Coming { asked, .. } | RunState::Ended { asked, .. }
                    if !message.asks_as(&asked) =>
                {
                    let reason = "another message with this id came before; each message needs an id of its own";
                    break MessageFailure::lasting("id_reused", reason);
                }
                RunState::Nothing => match self.submit_route(route, &message).await {
                    None => return,
                    Some(Err(failure)) => break failure,
                    Some(Ok(None)) => {}
                    Some(Ok(Some(job))) => {
                        return self.stored(&delivery, &message, (route, &job), work).await;
                    }
                },
                RunState::Coming { job, status, next, asked } => {
                    let is_same = delivery.is_redelivered && message.is_answered_as(&asked);
                    if is_same && self.ends_itself(route) {
                        return self.settle_at_end(&delivery, &asked, &job.into(), work).await;
                    }
                    if is_same || message.reply_to.is_none() {
                        return delivery.ack().await;
                    }
                    match self.attach(&message, (&job, &status), &next).await {
                        Ok(Attached::Yes) => return delivery.ack().await,
                        Ok(Attached::Changed) => {}
                        Err(error) if self.waited_for_redis(&error, &mut backoff).await => {}
                        Err(_) => return,
                        Ok(Attached::Full) => {
                            let reason = "too many repeats of it wait for its answer";
                            break MessageFailure::lasting("repeated_too_often", reason);
                        }
                    }
                }
                // A message that RabbitMQ delivers again was dealt with when its job failed.
                RunState::Ended { answer: Err(_), .. } if !delivery.is_redelivered => {
                    message.run += 1;
                    message.attempt = 0;
                }
                RunState::Ended { answer: answer @ Err(_), asked } if self.ends_itself(route) => {
                    return self.settle_end(&delivery, &asked, work, answer).await;
                }
                RunState::Ended { answer, .. } => {
                    if self.reply(&message.properties(), &answer, true).await.is_ok() {
                        delivery.ack().await;
                    }
                    return;
                }
            }
        };
        self.refuse(&delivery, Some(&message), work, failure).await;
    }

    /// Returns true if a message of this route is acknowledged when its job has ended.
    fn ends_itself(&self, route: usize) -> bool {
        self.settings.amqp.routes.get(route).is_some_and(|route| route.ack == AckMode::End)
    }

    /// Stores the job of a message. `None` if this process is to end first.
    async fn submit_route(
        &self,
        route: usize,
        message: &AmqpMessage,
    ) -> Option<HandedOver<AwaitedJob>> {
        let Some(of_route) = self.settings.amqp.routes.get(route) else {
            return Some(Err(MessageFailure::lasting("no_route", "its route is gone")));
        };
        match self.job_of(route, of_route, message) {
            Ok(job) => self.submit_awaited(&job).await,
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Acknowledges a message whose job is stored, or waits for the end of the job.
    async fn stored(
        self: &Arc<Self>,
        delivery: &Delivery,
        message: &AmqpMessage,
        (route, job): (usize, &AwaitedJob),
        work: &Work,
    ) {
        self.note_job(&job.id, message, None);
        if self.ends_itself(route) {
            self.settle_at_end(delivery, message, job, work).await;
        } else {
            delivery.ack().await;
        }
    }

    /// Settles a delivery that waits for the end of its job.
    pub(super) async fn settle_at_end(
        self: &Arc<Self>,
        delivery: &Delivery,
        message: &AmqpMessage,
        job: &AwaitedJob,
        work: &Work,
    ) {
        if let Some(answer) = self.end_of(job).await {
            self.settle_end(delivery, message, work, answer).await;
        }
    }

    /// Settles a delivery whose job has ended so, and answers its repeats.
    async fn settle_end(
        self: &Arc<Self>,
        delivery: &Delivery,
        message: &AmqpMessage,
        work: &Work,
        answer: MessageAnswer,
    ) {
        let comes_again = matches!(
            &answer, Err(failure) if self.may_retry(message, failure)
        );
        let mut backoff = Backoff::default();
        while !comes_again && !self.answer_repeats(message, &answer).await {
            if self.is_leaving() {
                return;
            }
            tokio::time::sleep(backoff.failed()).await;
        }
        self.settle(delivery, message, work, answer).await;
    }

    /// Waits a little after a failed call to Redis. Returns false if this process is to end.
    async fn waited_for_redis(&self, error: &StoreError, backoff: &mut Backoff) -> bool {
        self.redis_failed("looking at a message that came again", error);
        self.pause(backoff).await.is_some()
    }

    /// Reads the state of this run of a message, from its newest attempt.
    async fn known(&self, message: &AmqpMessage) -> Result<RunState, StoreError> {
        let mut newest = None;
        let mut of = AmqpMessage { attempt: message.attempt, ..message.clone() };
        let next = loop {
            let id = job_id(&self.scope, &of);
            match self.store.brokers().message_job(&id).await? {
                Some(job) if of.attempt <= message.attempt + self.settings.amqp.max_retries => {
                    newest = Some((id, job));
                    of.attempt += 1;
                }
                _ => break id,
            }
        };
        let Some((job, found)) = newest else { return Ok(RunState::Nothing) };
        let Ok(asked) = serde_json::from_str::<AmqpMessage>(&found.message) else {
            return Ok(RunState::Lost(format!("the job {job} has its id, but not its message")));
        };
        let asked = Box::new(asked);
        let status = found.status;
        let coming =
            |asked| RunState::Coming { job: job.clone(), status: status.clone(), next, asked };
        let Some(end) = self.store.brokers().message_end(&job).await? else {
            // Its submission may not have been confirmed, here or in an earlier process.
            if self.store.acks().confirms_all() {
                self.store.acks().confirm(std::slice::from_ref(&job)).await?;
            }
            return Ok(coming(asked));
        };
        if status == JobStatus::Finished.as_str() && !end.is_finished {
            return Ok(RunState::Lost(end.text));
        }
        let answer = answer_of(end);
        Ok(match &answer {
            Err(failure) if self.may_retry(&asked, failure) => coming(asked),
            _ => RunState::Ended { answer, asked },
        })
    }

    async fn attach(
        &self,
        message: &AmqpMessage,
        job: (&JobId, &str),
        next: &JobId,
    ) -> Result<Attached, StoreError> {
        let Some(chain) = chain_id(&self.scope, message) else { return Ok(Attached::Yes) };
        let asked = serde_json::to_string(message).unwrap_or_default();
        self.store.brokers().attach_repeat(&self.scope, &chain, job, next, &asked).await
    }

    /// Answers the repeats of a message that has ended. Returns false if that has to be tried again.
    pub(super) async fn answer_repeats(
        self: &Arc<Self>,
        message: &AmqpMessage,
        answer: &MessageAnswer,
    ) -> bool {
        let Some(chain) = chain_id(&self.scope, message) else { return true };
        let repeats = match self.store.brokers().repeats(&self.scope, &chain).await {
            Ok(repeats) if repeats.is_empty() => return true,
            Ok(repeats) => repeats,
            Err(error) => {
                debug!("reading the repeats of a message: {error}");
                return false;
            }
        };
        for asked in &repeats {
            let Ok(repeat) = serde_json::from_str::<AmqpMessage>(asked) else { continue };
            if self.reply(&repeat.properties(), answer, false).await.is_err() {
                return false;
            }
        }
        self.store.brokers().drop_repeats(&self.scope, &chain).await.is_ok()
    }
}
