//! Log events of a broker itself: milestones of its start, and each message with `trace_on`. One task
//! publishes them with the key `log`. Those that RabbitMQ cannot be given wait in the spool, and are
//! published with their ids once it takes them again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::shared::{BrokerCounts, Shared};
use crate::amqp::link::{LinkError, Outgoing};
use crate::amqp::logs::{LEVELS, LogRecord, RecordProperties, Spool, SpoolBatch};
use crate::amqp::message::{AmqpMessage, CHAIN, MessageFailure, Properties, ROOT};
use crate::amqp::route::{LOG_KEY, LOGGER};
use crate::amqp::topology::EVENTS;
use crate::config::{LogsConfig, Node, format_size};
use crate::store::Backoff;

/// The maximum number of events that wait for their task.
pub(super) const WAITING_MAX: usize = 4096;
/// The events that are published at once.
const BATCH: usize = 64;
/// The longest wait for a confirmation: then the event waits in the spool.
const PATIENCE: Duration = Duration::from_secs(2);

/// A milestone in the life of a process. Milestones of one part of it have one chain.
#[derive(Debug, Clone)]
pub(super) struct Milestone {
    /// The part: `start`, the name of a broker, or `end`.
    pub(super) part: &'static str,
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) at: Timestamp,
}

impl Milestone {
    pub(super) fn now(part: &'static str, name: &'static str, text: impl Into<String>) -> Self {
        Self { part, name, text: text.into(), at: Timestamp::now() }
    }
}

/// Reports a milestone, with its time.
pub(super) fn milestone(shared: &Shared, milestone: &Milestone) {
    let Milestone { part, name, text, at } = milestone;
    info!(root = shared.root, "{name}: {text}");
    let chain = format!("{}.{part}", shared.root);
    let beside = RecordProperties { chain: Some(&chain), ..RecordProperties::default() };
    report(shared, "info", (name, text), beside, *at);
}

/// Reports one event per level, when the node is ready.
pub(super) fn every_level(shared: &Shared) {
    for level in LEVELS {
        let text = format!("an event of the level {level}");
        report(shared, level, ("level", &text), RecordProperties::default(), Timestamp::now());
    }
}

/// Reports a message that was taken.
pub(super) fn traced(shared: &Shared, message: &AmqpMessage, by: &str) {
    let text = format!("{} {} {} by {by}", message.key, message.operation, message.template);
    let (root, chain) = (message.root.as_deref(), message.chain.as_deref());
    let beside = RecordProperties { id: None, root, chain };
    report(shared, "debug", ("trace", &text), beside, Timestamp::now());
}

/// Gives an event to its task, and does not wait.
fn report(
    shared: &Shared,
    level: &str,
    (name, text): (&str, &str),
    beside: RecordProperties<'_>,
    at: Timestamp,
) {
    let record = |beside: RecordProperties<'_>| -> Result<LogRecord, MessageFailure> {
        let mut data =
            json!({ "level": level, "event": name, "message": text, "unit": shared.unit });
        if let Some(node) = shared.node.map(Node::as_str) {
            data["node"] = node.into();
        }
        let root = Some(beside.root.unwrap_or(&shared.root));
        LogRecord::of(&data, RecordProperties { root, ..beside }, at)
    };
    // A message may have a root that no record can have.
    let Ok(record) = record(beside).or_else(|_| record(RecordProperties::default())) else {
        return;
    };
    // Counted first: the task may take it at once.
    BrokerCounts::add(&shared.counts.events_waiting);
    if shared.events.try_send(record).is_ok() {
        return;
    }
    shared.counts.events_waiting.fetch_sub(1, Ordering::Relaxed);
    if shared.lost_events(1) == 1 {
        warn!("log events are lost: {WAITING_MAX} wait to be published or kept");
    }
}

/// Opens the spool of a unit; without one, events that RabbitMQ cannot be given are lost.
pub(super) async fn open_spool(logs: &LogsConfig, unit: &str) -> Option<Spool> {
    let (folder, size_max) = (logs.spool_dir.join(unit), logs.spool_size_max);
    let open = move || (Spool::open(&folder, size_max), folder);
    let (opened, folder) = spawn_blocking(open).await.ok()?;
    let refused = |error: &std::io::Error| {
        warn!(
            "cannot use the spool of log events in {}: {error}; events that RabbitMQ cannot be \
             given are lost (amqp.logs.spool_dir)",
            folder.display()
        );
    };
    opened.inspect_err(refused).ok()
}

pub(super) struct EventTask {
    shared: Arc<Shared>,
    waiting: mpsc::Receiver<LogRecord>,
    spool: Option<Arc<Spool>>,
    /// The oldest records of the spool, while they are published.
    batch: Option<SpoolBatch>,
    backoff: Backoff,
    /// When RabbitMQ is tried again; `None` while it takes events.
    again: Option<Instant>,
    /// True once a loss of this outage is logged.
    is_loss_logged: bool,
}

impl EventTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        waiting: mpsc::Receiver<LogRecord>,
        spool: Option<Spool>,
    ) -> Self {
        // Events of an earlier process are published first.
        let again = spool.as_ref().filter(|spool| !spool.is_empty()).map(|_| Instant::now());
        let spool = spool.map(Arc::new);
        let records = spool.as_ref().map_or(0, |spool| spool.records());
        shared.counts.spooled.store(records as u64, Ordering::Relaxed);
        let backoff = Backoff::default();
        Self { shared, waiting, spool, batch: None, backoff, again, is_loss_logged: false }
    }

    /// Publishes until `last` comes, and then what waits; the rest stays in the spool.
    pub(super) async fn run(mut self, mut last: oneshot::Receiver<()>) {
        let mut is_last = false;
        loop {
            let mut records = Vec::new();
            let again = self.again.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                taken = self.waiting.recv_many(&mut records, BATCH) => if taken == 0 { return },
                _ = &mut last, if !is_last => {
                    is_last = true;
                    self.waiting.close();
                }
                () = sleep_until(again), if self.again.is_some() => {}
            }
            let taken = records.len();
            if !records.is_empty() {
                self.take(records).await;
                self.shared.counts.events_waiting.fetch_sub(taken as u64, Ordering::Relaxed);
            }
            if self.again.is_some_and(|again| again <= Instant::now()) && !is_last {
                self.replay().await;
            }
        }
    }

    /// Publishes new events, or keeps them while RabbitMQ takes none.
    async fn take(&mut self, records: Vec<LogRecord>) {
        if self.again.is_some() {
            return self.keep(records).await;
        }
        if let Err((left, error)) = self.publish(records).await {
            if self.spool.is_some() && matches!(error, LinkError::Unroutable { .. }) {
                // The node that has the queue has not started yet, or this one is about to declare it.
                info!("log events wait in the spool: {error}");
            } else if self.spool.is_some() {
                warn!("log events wait in the spool: {error}");
            } else {
                warn!("log events are lost: {error}");
            }
            self.again = Some(Instant::now() + self.backoff.failed());
            self.keep(left).await;
        }
    }

    async fn keep(&mut self, records: Vec<LogRecord>) {
        let (number, size_max) = (records.len(), self.shared.settings.amqp.logs.spool_size_max);
        let (lost, reason) = match self.on_disk(move |spool| spool.push(&records)).await {
            Some(Ok(0)) => return,
            Some(Ok(lost)) => (lost, format!("the spool has {}", format_size(size_max))),
            Some(Err(error)) => (number, format!("the spool cannot be written: {error}")),
            None => (number, "there is no spool".to_owned()),
        };
        self.shared.lost_events(lost as u64);
        if !std::mem::replace(&mut self.is_loss_logged, true) {
            warn!("log events are lost until RabbitMQ takes some: {reason}");
        }
    }

    /// Publishes the next events of the spool.
    async fn replay(&mut self) {
        if self.batch.is_none() {
            match self.on_disk(Spool::oldest).await {
                Some(Ok(Some(batch))) => self.batch = Some(batch),
                Some(Err(error)) => {
                    debug!("reading the spool of log events: {error}");
                    self.again = Some(Instant::now() + self.backoff.failed());
                    return;
                }
                Some(Ok(None)) | None => {
                    info!("log events are published again");
                    self.again = None;
                    self.is_loss_logged = false;
                    return;
                }
            }
        }
        let Some(mut batch) = self.batch.take() else { return };
        let number = batch.records.len().min(BATCH);
        let records = batch.records.drain(..number).collect();
        self.again = Some(match self.publish(records).await {
            Ok(()) => {
                self.backoff.succeeded();
                Instant::now()
            }
            Err((left, error)) => {
                debug!("publishing log events of the spool: {error}");
                left.into_iter().rev().for_each(|record| batch.records.push_front(record));
                Instant::now() + self.backoff.failed()
            }
        });
        let noted = self.on_disk(move |spool| (spool.published(&batch), batch)).await;
        let Some((result, batch)) = noted else { return };
        if let Err(error) = result {
            debug!("noting what the spool of log events has published: {error}");
            self.again = Some(Instant::now() + self.backoff.failed());
        } else if !batch.records.is_empty() {
            self.batch = Some(batch);
        }
    }

    /// Works with the spool on a thread for files; `None` without a spool.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Spool) -> T + Send + 'static,
    ) -> Option<T> {
        let spool = Arc::clone(self.spool.as_ref()?);
        let done = spawn_blocking(move || (work(&spool), spool.records() as u64)).await;
        let (result, records) = done.ok()?;
        self.shared.counts.spooled.store(records, Ordering::Relaxed);
        Some(result)
    }

    /// Publishes events at once.
    ///
    /// # Errors
    /// The events that RabbitMQ has not confirmed, in their order, and a reason.
    async fn publish(&self, records: Vec<LogRecord>) -> Result<(), (Vec<LogRecord>, LinkError)> {
        let mut tasks = JoinSet::new();
        for (place, record) in records.into_iter().enumerate() {
            let shared = Arc::clone(&self.shared);
            tasks.spawn(async move {
                let published = timeout(PATIENCE, publish(&shared, &record)).await;
                (place, record, published)
            });
        }
        let (mut left, mut reason) = (Vec::new(), None);
        while let Some(joined) = tasks.join_next().await {
            match joined {
                Ok((_, _, Ok(Ok(())))) | Err(_) => {}
                Ok((place, record, Ok(Err(error)))) => {
                    left.push((place, record));
                    reason = Some(error);
                }
                Ok((place, record, Err(_))) => left.push((place, record)),
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        left.sort_unstable_by_key(|(place, _)| *place);
        let address = self.shared.link.address().to_owned();
        let too_slow = || LinkError::Unreachable { address, reason: "does not answer".to_owned() };
        Err((left.into_iter().map(|(_, record)| record).collect(), reason.unwrap_or_else(too_slow)))
    }
}

async fn publish(shared: &Shared, record: &LogRecord) -> Result<(), LinkError> {
    let body = json!({ "template": LOGGER, "data": record.document() }).to_string().into_bytes();
    let mut properties = Properties {
        kind: Some("write".to_owned()),
        message_id: Some(record.id.to_string()),
        ..Properties::default()
    };
    for (header, field) in [(ROOT, "root"), (CHAIN, "chain")] {
        if let Some(text) = record.fields.get(field).and_then(|value| value.as_str()) {
            properties.headers.insert(header.to_owned(), text.to_owned());
        }
    }
    let out = Outgoing { exchange: EVENTS, key: LOG_KEY, body: &body, properties: &properties };
    shared.link.publish(out).await
}

/// Reports to Redis how many events wait in the spool, if that has changed.
pub(super) async fn note_spooled(shared: &Shared) {
    let (number, noted) = (
        shared.counts.spooled.load(Ordering::Relaxed),
        shared.counts.noted.load(Ordering::Relaxed),
    );
    if number == 0 && noted == 0 {
        return;
    }
    let host = nix::unistd::gethostname().unwrap_or_default();
    let place = format!("{}@{}", shared.unit, host.to_string_lossy());
    match shared.store.brokers().note_spooled(&shared.scope, &place, number).await {
        Ok(()) => shared.counts.noted.store(number, Ordering::Relaxed),
        Err(error) => debug!("{error}"),
    }
}
