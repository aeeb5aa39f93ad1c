//! The state that the tasks of one broker process share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, watch};
use tracing::{debug, info, warn};

use crate::amqp::builtin::BuiltIns;
use crate::amqp::link::{Delivery, Link, LinkError};
use crate::amqp::logs::LogRecord;
use crate::amqp::message::{AmqpMessage, MessageFailure};
use crate::amqp::topology::Work;
use crate::client::Client;
use crate::config::{AmqpConfig, BrokerName, JobConfig, Node, OsisConfig};
use crate::proto::job::JobId;
use crate::proto::text::counted;
use crate::store::{BrokerPresence, Outage, Store, StoreError};
use crate::trace::{OpenSpan, SpanKind, Tracer};

#[derive(Debug, Clone)]
pub struct BrokerSettings {
    pub amqp: AmqpConfig,
    pub job: JobConfig,
    /// `[osis]`, for objects.
    pub osis: OsisConfig,
    /// The text of the script of each route; empty for a built-in.
    pub scripts: Vec<Arc<str>>,
}

pub(super) struct Shared {
    pub(super) link: Link,
    pub(super) store: Store,
    /// The same Redis for what is not of brokers alone.
    pub(super) client: Client,
    pub(super) settings: Arc<BrokerSettings>,
    pub(super) tracer: Option<Tracer>,
    pub(super) built_ins: BuiltIns,
    /// The tag and the vhost: their name in Redis.
    pub(super) scope: String,
    pub(super) unit: String,
    pub(super) node: Option<Node>,
    /// Every queue of the topology, by its name.
    pub(super) work: BTreeMap<String, Work>,
    /// When this process started, in microseconds of Redis's clock.
    pub(super) started_us: i64,
    /// The id of this start, which its log events carry.
    pub(super) root: String,
    /// The way of log events to their task.
    pub(super) events: mpsc::Sender<LogRecord>,
    pub(super) counts: BrokerCounts,
    /// The messages by routing key and end.
    pub(super) ends: Mutex<BTreeMap<String, BTreeMap<String, u64>>>,
    /// The dead letters in each queue of this process, as they were last counted.
    pub(super) letters: Mutex<BTreeMap<String, u64>>,
    pub(super) last_loss: Mutex<Option<Instant>>,
    pub(super) outage: Outage,
    pub(super) redis_outage: Outage,
    pub(super) database_outage: Outage,
    /// Room for the answers that are tried beside the work, in KiB.
    pub(super) replies: Arc<Semaphore>,
    /// The messages that were in each queue before this process consumed it, as far as they have not come.
    pub(super) old: Mutex<BTreeMap<String, u64>>,
    /// Held by the task that declares: RabbitMQ fails where a quorum queue is declared twice at once.
    pub(super) declaring: tokio::sync::Mutex<()>,
    /// False while the vhost has to be claimed again.
    pub(super) owns: watch::Sender<bool>,
    /// The reason why the vhost cannot be claimed again.
    pub(super) refused: OnceLock<LinkError>,
    pub(super) leaving: watch::Sender<bool>,
}

/// Counters for the status line.
#[derive(Debug, Default)]
pub(super) struct BrokerCounts {
    /// The dispatchers that consume.
    pub(super) consuming: AtomicU64,
    pub(super) dispatchers: AtomicU64,
    /// Messages that are being served.
    pub(super) in_work: AtomicU64,
    /// Messages that became jobs.
    pub(super) jobs: AtomicU64,
    /// Messages that a built-in served.
    pub(super) served: AtomicU64,
    pub(super) answers: AtomicU64,
    /// Answers that are tried beside the work.
    pub(super) answers_waiting: AtomicU64,
    /// Answers that were dropped.
    pub(super) dropped: AtomicU64,
    /// Messages that went to a retry lane.
    pub(super) retried: AtomicU64,
    /// Messages that became dead letters.
    pub(super) dead: AtomicU64,
    /// Log events that their task has not published or kept yet.
    pub(super) events_waiting: AtomicU64,
    /// Log events that wait in the spool.
    pub(super) spooled: AtomicU64,
    /// The number of these that Redis was told.
    pub(super) noted: AtomicU64,
    /// Log events that are neither published nor kept.
    pub(super) lost: AtomicU64,
}

impl BrokerCounts {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts a message as being served until it is dropped.
pub(super) struct InWork(Arc<Shared>);

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.counts.in_work.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The keys that are counted each; a publisher may invent any other.
const OTHER: &str = "other";

impl Shared {
    pub(super) fn in_work(self: &Arc<Self>) -> InWork {
        self.counts.in_work.fetch_add(1, Ordering::Relaxed);
        InWork(Arc::clone(self))
    }

    /// Counts the end of a message: `job`, `done`, `retried` or `dead`.
    pub(super) fn note_end(&self, key: &str, end: &str) {
        let is_known = |broker: &BrokerName| broker.keys().contains(&key);
        let key = if BrokerName::ALL.iter().any(is_known) { key } else { OTHER };
        let mut ends = self.ends.lock();
        *ends.entry(key.to_owned()).or_default().entry(end.to_owned()).or_default() += 1;
    }

    /// Counts a message whose job is stored, and ends its span.
    pub(super) fn note_job(&self, id: &JobId, message: &AmqpMessage, span: Option<OpenSpan>) {
        BrokerCounts::add(&self.counts.jobs);
        self.note_end(&message.key, "job");
        self.end_span(span, message, Some(id), None);
    }

    /// Begins the span of a message. `None` if it is in no trace, or no spans are made.
    pub(super) fn span_of(&self, message: &AmqpMessage) -> Option<OpenSpan> {
        OpenSpan::begin(self.tracer.as_ref()?, Some(message.trace()?))
    }

    /// Ends the span of a message: its job is stored, a built-in has served it, or that has failed.
    pub(super) fn end_span(
        &self,
        span: Option<OpenSpan>,
        message: &AmqpMessage,
        job: Option<&JobId>,
        failure: Option<&MessageFailure>,
    ) {
        let Some((tracer, span)) = self.tracer.as_ref().zip(span) else { return };
        let mut attributes = vec![
            ("hero.amqp.queue", message.queue.clone()),
            ("hero.amqp.key", message.key.clone()),
            ("hero.amqp.operation", message.operation.clone()),
            ("messaging.system", "rabbitmq".to_owned()),
            ("messaging.destination.name", message.queue.clone()),
            ("messaging.rabbitmq.destination.routing_key", message.key.clone()),
        ];
        attributes.extend(job.map(|id| ("hero.submitted.id", id.to_string())));
        let error = failure.map(ToString::to_string);
        span.end(tracer, (SpanKind::Consumer, "message".to_owned()), error, attributes);
    }

    /// Notes that log events are lost. Returns how many were lost since the start.
    pub(super) fn lost_events(&self, number: u64) -> u64 {
        *self.last_loss.lock() = Some(Instant::now());
        self.counts.lost.fetch_add(number, Ordering::Relaxed) + number
    }

    pub(super) fn presence(&self) -> BrokerPresence {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        let outages = [
            ("rabbitmq", &self.outage),
            ("redis", &self.redis_outage),
            ("mariadb", &self.database_outage),
        ];
        let lasting = |(name, of): (&str, &Outage)| {
            of.since().map(|since| (name.to_owned(), since.elapsed().as_secs()))
        };
        let last_loss = *self.last_loss.lock();
        BrokerPresence {
            unit: self.unit.clone(),
            host: nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned(),
            pid: std::process::id(),
            node: self.node.map(|node| node.as_str().to_owned()),
            dispatchers: of(&counts.dispatchers),
            consuming: of(&counts.consuming),
            in_work: of(&counts.in_work),
            messages: self.ends.lock().clone(),
            answers: of(&counts.answers),
            answers_dropped: of(&counts.dropped),
            spooled: of(&counts.spooled),
            log_events_lost: of(&counts.lost),
            lost_ago_s: last_loss.map(|at| at.elapsed().as_secs()),
            dead_letters: self.letters.lock().clone(),
            outages: outages.into_iter().filter_map(lasting).collect(),
            ..BrokerPresence::default()
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        *self.leaving.borrow()
    }

    /// Waits until the process is to end.
    pub(super) async fn left(&self) {
        // The sender lives in this value, so the wait ends by the condition alone.
        let _ = self.leaving.subscribe().wait_for(|leaving| *leaving).await;
    }

    /// Waits until this tag and mode have the vhost, or the process is to end.
    pub(super) async fn owned(&self) {
        let mut owns = self.owns.subscribe();
        tokio::select! {
            _ = owns.wait_for(|owns| *owns) => {}
            () = self.left() => {}
        }
    }

    /// Notes how many messages a queue has before this process first consumes it.
    pub(super) async fn count_old(&self, queue: &str) -> Result<(), LinkError> {
        if self.old.lock().contains_key(queue) {
            return Ok(());
        }
        let counts = self.link.counts(queue).await?;
        let messages = counts.map_or(0, |counts| counts.messages);
        self.old.lock().entry(queue.to_owned()).or_insert(messages.into());
        Ok(())
    }

    /// Notes that a message came out of a queue. Returns true if it was there before this process: by the
    /// time of its sending, else by its place in the queue.
    pub(super) fn is_old(&self, queue: &str, delivery: &Delivery) -> bool {
        let mut old = self.old.lock();
        let left = old.entry(queue.to_owned()).or_default();
        let by_place = *left > 0 || delivery.is_redelivered;
        if !delivery.is_redelivered {
            *left = left.saturating_sub(1);
        }
        let started_s = u64::try_from(self.started_us / 1_000_000).unwrap_or_default();
        delivery.sent_s.map_or(by_place, |sent_s| sent_s < started_s)
    }

    /// Notes a call that RabbitMQ did not serve, and logs it once in an outage.
    pub(super) fn rabbit_failed(&self, doing: &str, error: &LinkError) {
        if self.outage.failed(Instant::now()) {
            warn!("{doing}: {error}; trying again");
        } else {
            debug!("{doing}: {error}");
        }
    }

    pub(super) fn rabbit_answered(&self) {
        note_answer(&self.outage, "RabbitMQ");
    }

    /// Notes a call that Redis did not serve, and logs it once in an outage.
    pub(super) fn redis_failed(&self, doing: &str, error: &StoreError) {
        if self.redis_outage.failed_by(Instant::now(), error) {
            warn!("{doing}: {error}; messages wait until Redis answers");
        } else {
            debug!("{doing}: {error}");
        }
    }

    pub(super) fn redis_answered(&self) {
        if !self.store.is_refused() {
            note_answer(&self.redis_outage, "Redis");
        }
    }

    /// Returns the status line for systemd.
    pub(super) fn status(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        let unless_zero =
            |counter: &AtomicU64, (one, many): (&str, &str), what: &str| match of(counter) {
                0 => String::new(),
                number => format!(", {} {what}", counted(number, one, many)),
            };
        let events = ("log event", "log events");
        let away = |of: &Outage, name: &str| {
            if of.is_refused() {
                return Some(format!("{name} refuses the login"));
            }
            of.since().map(|since| format!("{name} away for {} s", since.elapsed().as_secs()))
        };
        let rabbit = away(&self.outage, "RabbitMQ").unwrap_or("RabbitMQ ok".to_owned());
        let stores = [(&self.redis_outage, "Redis"), (&self.database_outage, "MariaDB")];
        let stores = stores.into_iter().filter_map(|(of, name)| away(of, name));
        let stores = stores.map(|text| format!(", {text}")).collect::<Vec<_>>().concat();
        format!(
            "{} of {} dispatchers consume, {} messages became jobs, {} served at once, {} answered, \
             {} retried, {} dead, {rabbit}{stores}{}{}{}",
            of(&counts.consuming),
            of(&counts.dispatchers),
            of(&counts.jobs),
            of(&counts.served),
            of(&counts.answers),
            of(&counts.retried),
            of(&counts.dead),
            unless_zero(&counts.dropped, ("answer", "answers"), "dropped"),
            unless_zero(&counts.spooled, events, "in the spool"),
            unless_zero(&counts.lost, events, "lost"),
        )
    }
}

/// Notes that a server has answered, and logs the end of its outage.
pub(super) fn note_answer(outage: &Outage, server: &str) {
    if let Some(lasted) = outage.over(Instant::now()) {
        info!("{server} is back after {:.1} s", lasted.as_secs_f64());
    }
}
