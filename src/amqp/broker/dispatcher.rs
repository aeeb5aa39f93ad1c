//! A dispatcher: consumes one queue, and gives each message to a built-in or to a job. After a lost
//! connection or a deleted queue it declares and consumes again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{error, warn};

use super::repeats::Repeat;
use super::shared::Shared;
use super::window::{BATCH_MAX, Window};
use super::{control, events};
use crate::amqp::link::{Deliveries, Delivery, LinkError};
use crate::amqp::message::{AmqpMessage, Delivered, MessageFailure};
use crate::amqp::route::{LOG_KEY, Served, serves};
use crate::amqp::topology::Pool;
use crate::config::{AckMode, BrokerName};
use crate::proto::job::Job;
use crate::proto::text::counted;
use crate::store::Backoff;
use crate::trace::OpenSpan;

/// The longest time that messages which are being served hold up the end.
const DRAIN: Duration = Duration::from_secs(20);

/// The report of the first start of a dispatcher: its pool.
pub(super) type StartReport = Result<Arc<Pool>, LinkError>;

pub(super) struct Dispatcher {
    pub(super) shared: Arc<Shared>,
    pub(super) pool: Arc<Pool>,
    /// The messages that are being served. They outlive a lost connection.
    pub(super) tasks: JoinSet<()>,
}

impl Dispatcher {
    /// Consumes until the process is to end. Reports the first start, and the first error that does not
    /// pass by itself.
    pub(super) async fn run(mut self, started: mpsc::Sender<StartReport>) {
        let mut started = Some(started);
        let mut backoff = Backoff::default();
        while !self.shared.is_leaving() {
            let ended = self.consume(&mut started, &mut backoff).await;
            let Err(error) = ended else { break };
            if error.is_transient() {
                self.shared.rabbit_failed("consuming", &error);
            } else if let Some(started) = started.take() {
                // The start of the process fails with it.
                let _ = started.send(Err(error)).await;
            } else {
                error!("{} does not consume: {error}; trying again", self.pool.work.queue.name);
            }
            let _ = self.shared.pause(&mut backoff).await;
        }
    }

    /// Waits until the messages that are being served are settled.
    async fn drain(&mut self) {
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, drained).await.is_err() {
            warn!(
                "{} not settled within {} s: this process ends, and RabbitMQ delivers them again",
                counted(self.tasks.len() as u64, "message is", "messages are"),
                DRAIN.as_secs()
            );
        }
    }

    /// Consumes until the connection is lost, or the process is to end.
    async fn consume(
        &mut self,
        started: &mut Option<mpsc::Sender<StartReport>>,
        backoff: &mut Backoff,
    ) -> Result<(), LinkError> {
        let shared = Arc::clone(&self.shared);
        let work = &self.pool.work;
        shared.owned().await;
        shared.declare(work).await?;
        shared.count_old(&work.queue.name).await?;
        // Messages taken in an outage would wait beside the ones it holds already.
        if shared.redis_outage.since().is_some() {
            shared.redis_was_away().await;
        }
        let window = Window::new(shared.settings.amqp.prefetch);
        let mut deliveries = shared.link.consume(&work.queue.name, window.size()).await?;
        shared.rabbit_answered();
        backoff.succeeded();
        if let Some(started) = started.take() {
            let _ = started.send(Ok(Arc::clone(&self.pool))).await;
        }
        shared.counts.consuming.fetch_add(1, Ordering::Relaxed);
        let ended = self.serve(&mut deliveries, window).await;
        shared.counts.consuming.fetch_sub(1, Ordering::Relaxed);
        ended
    }

    async fn serve(
        &mut self,
        deliveries: &mut Deliveries,
        mut window: Window,
    ) -> Result<(), LinkError> {
        let shared = Arc::clone(&self.shared);
        loop {
            let first = tokio::select! {
                biased;
                () = shared.left() => {
                    deliveries.cancel().await;
                    // Others get them.
                    while let Some(Ok(delivery)) = deliveries.ready().await {
                        delivery.put_back().await;
                    }
                    // Their acknowledgements need the channel, which ends with the consumer.
                    self.drain().await;
                    return Ok(());
                }
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => continue,
                next = deliveries.next() => next?,
            };
            let mut batch = vec![first];
            while batch.len() < BATCH_MAX
                && let Some(next) = deliveries.ready().await
            {
                batch.push(next?);
            }
            let (number, held) = (batch.len(), self.tasks.len());
            self.take(batch).await;
            if let Some(larger) = window.grown(number, held) {
                window = larger;
                // Those that came before the change.
                let rest = deliveries.resize(window.size()).await?;
                self.take(rest).await;
            }
        }
    }

    /// Gives each message to its receiver.
    async fn take(&mut self, batch: Vec<Delivery>) {
        let mut jobs: Vec<(Repeat, Job)> = Vec::new();
        for mut delivery in batch {
            // Each of the three brokers of `log` gets every event: one of them answers.
            if matches!(self.pool.broker, Some(BrokerName::AdminSyslog | BrokerName::AdminGraph)) {
                delivery.properties.reply_to = None;
            }
            let is_old = self.shared.is_old(&self.pool.work.queue.name, &delivery);
            let message = match self.parse(&delivery) {
                Ok(message) => message,
                Err(failure) => {
                    self.refuse(delivery, None, None, failure);
                    continue;
                }
            };
            let shared = Arc::clone(&self.shared);
            let served = serves(&shared.settings.amqp, self.pool.broker, &message);
            // An event about each event would never end.
            if shared.settings.amqp.trace_on && !message.key.starts_with(LOG_KEY) {
                events::traced(&shared, &message, name_of(&served));
            }
            let span = shared.span_of(&message);
            match served {
                Ok(Served::Shutdown) => match control::check(&shared, &message, is_old) {
                    Ok(()) => self.spawn(async move |shared, pool| {
                        let answer = control::request(&shared, &message).await;
                        shared.settle(&delivery, &message, &pool.work, answer).await;
                        control::read_orders(&shared).await;
                    }),
                    Err(failure) => self.refuse(delivery, Some(message), None, failure),
                },
                Ok(Served::BuiltIn(name)) => self.spawn(async move |shared, pool| {
                    shared.serve_built_in(name, (&delivery, &message), span, &pool.work).await;
                }),
                Ok(Served::Job(place, route)) => match shared.job_of(place, route, &message) {
                    Ok(mut job) => {
                        job.spec.traceparent =
                            span.as_ref().map_or(job.spec.traceparent, |of| Some(of.own));
                        let taken = Repeat { delivery, message, route: place, span };
                        if route.ack == AckMode::Handoff {
                            jobs.push((taken, job));
                        } else {
                            self.run_job(taken, job);
                        }
                    }
                    Err(failure) => self.refuse(delivery, Some(message), span, failure),
                },
                Err(failure) => self.refuse(delivery, Some(message), span, failure),
            }
        }
        if !jobs.is_empty() {
            self.hand_over(jobs).await;
        }
    }

    fn parse(&self, delivery: &Delivery) -> Result<AmqpMessage, MessageFailure> {
        let queue = &self.pool.work.queue;
        let is_direct = delivery.exchange.is_empty();
        let bound = queue.binding.as_ref().map(|(_, key)| key.as_str()).filter(|key| *key != "#");
        let key = bound.filter(|_| is_direct).unwrap_or(&delivery.key);
        let (body, properties) = (delivery.body.as_slice(), &delivery.properties);
        let delivered = Delivered { queue: &queue.name, key, is_direct, body, properties };
        AmqpMessage::parse(delivered, self.shared.settings.amqp.message_size_max)
    }

    /// Serves a message concurrently with the others.
    fn spawn<F>(&mut self, serve: impl FnOnce(Arc<Shared>, Arc<Pool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let serving = serve(Arc::clone(&self.shared), Arc::clone(&self.pool));
        let in_work = self.shared.in_work();
        self.tasks.spawn(async move {
            let _in_work = in_work;
            serving.await;
        });
    }

    fn refuse(
        &mut self,
        delivery: Delivery,
        message: Option<AmqpMessage>,
        span: Option<OpenSpan>,
        failure: MessageFailure,
    ) {
        if let Some(message) = &message {
            self.shared.end_span(span, message, None, Some(&failure));
        }
        self.spawn(async move |shared, pool| {
            shared.refuse(&delivery, message.as_ref(), &pool.work, failure).await;
        });
    }

    /// Stores the jobs of messages, and acknowledges those that are stored.
    async fn hand_over(&mut self, taken: Vec<(Repeat, Job)>) {
        let (taken, jobs): (Vec<Repeat>, Vec<Job>) = taken.into_iter().unzip();
        let Some(submitted) = self.shared.submit_all(&jobs).await else { return };
        for (taken, submitted) in taken.into_iter().zip(submitted) {
            match submitted {
                Ok(Some(id)) => {
                    taken.delivery.ack().await;
                    self.shared.note_job(&id, &taken.message, taken.span);
                }
                Ok(None) => self.spawn(async move |shared, pool| {
                    shared.serve_repeat(taken, &pool.work).await;
                }),
                Err(failure) => {
                    self.refuse(taken.delivery, Some(taken.message), taken.span, failure);
                }
            }
        }
    }

    /// Runs a job, and acknowledges its message at its end.
    fn run_job(&mut self, mut taken: Repeat, job: Job) {
        self.spawn(async move |shared, pool| {
            let Some(submitted) = shared.submit_awaited(&job).await else { return };
            let span = taken.span.take();
            let Repeat { delivery, message, .. } = &taken;
            match submitted {
                Ok(Some(job)) => {
                    shared.note_job(&job.id, message, span);
                    shared.settle_at_end(delivery, message, &job, &pool.work).await;
                }
                Ok(None) => shared.serve_repeat(taken, &pool.work).await,
                Err(failure) => {
                    shared.end_span(span, message, None, Some(&failure));
                    shared.refuse(delivery, Some(message), &pool.work, failure).await;
                }
            }
        });
    }
}

/// Names the part that serves a message.
fn name_of(served: &Result<Served<'_>, MessageFailure>) -> &'static str {
    match served {
        Ok(Served::Shutdown) => "the end of the brokers",
        Ok(Served::BuiltIn(name)) => name.as_str(),
        Ok(Served::Job(..)) => "a job",
        Err(_) => "nobody",
    }
}
