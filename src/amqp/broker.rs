//! The role `broker`: pools of dispatchers that consume the queues of a node, and a task that answers the
//! messages whose jobs have ended.

mod answers;
mod control;
mod dispatcher;
mod events;
mod jobs;
mod outages;
mod owner;
mod repeats;
mod replies;
mod settle;
mod shared;
mod watch;
mod window;

pub use control::end_brokers;
pub use shared::BrokerSettings;

use crate::error::{Error, Exit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch::{Receiver, Sender};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::builtin::BuiltIns;
use super::link::{Deliveries, Link, LinkError};
use super::logs::{LogRecord, PurgedLogs};
use super::topology::{Pool, all_work, pools};
use crate::client::Client;
use crate::config::{AmqpMode, ConfigError, Node};
use crate::proto::report::{Reporter, ServiceReport, Shutdown};
use crate::proto::text::counted;
use crate::store::{Backoff, Outage, Store, StoreError};
use crate::trace::Tracer;
use dispatcher::Dispatcher;
use events::{EventTask, Milestone};
use shared::{BrokerCounts, Shared};

/// The time between two heartbeats.
const BEAT: Duration = Duration::from_secs(5);
/// The longest time that an orderly end takes.
const END_WITHIN: Duration = Duration::from_secs(25);
/// The longest time that the last log events take.
const EVENTS_WITHIN: Duration = Duration::from_secs(3);

/// A broker before it starts.
pub struct Broker {
    /// Redis, which has answered.
    pub store: Store,
    /// The same Redis for applications.
    pub client: Client,
    pub unit: String,
    pub node: Option<Node>,
    pub settings: Arc<BrokerSettings>,
    pub report: Reporter,
    /// The longest time between two reports that systemd's watchdog allows.
    pub beat_within: Option<Duration>,
    pub tracer: Option<Tracer>,
}

#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A secret cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

fn report_now(shared: &Shared, part: &'static str, name: &'static str, text: impl Into<String>) {
    events::milestone(shared, &Milestone::now(part, name, text));
}

impl Broker {
    /// Runs until `shutdown` requests the end, or all brokers are asked to end.
    pub async fn run(self, mut shutdown: Receiver<Shutdown>) -> Result<(), BrokerError> {
        let text = format!(
            "the unit {} has the tag {} and {} routes",
            self.unit,
            self.settings.amqp.queue_tag,
            self.settings.amqp.routes.len()
        );
        let mut milestones = vec![Milestone::now("start", "config.read", text)];
        let started_us = self.store.now().await?.as_microsecond();
        let (events, waiting) = mpsc::channel(events::WAITING_MAX);
        let prepared = self.prepare(started_us, events, &mut milestones, &mut shutdown).await?;
        let Some((shared, claim)) = prepared else {
            return Ok(());
        };
        for one in &milestones {
            events::milestone(&shared, one);
        }
        self.purge_logs(&shared).await;
        let spool = events::open_spool(&self.settings.amqp.logs, &self.unit).await;
        let (last, is_last) = oneshot::channel();
        let events = EventTask::new(Arc::clone(&shared), waiting, spool);
        let events = tokio::spawn(events.run(is_last));
        let mut tasks = JoinSet::new();
        tasks.spawn(answers::run(Arc::clone(&shared)));
        tasks.spawn(control::run(Arc::clone(&shared)));
        tasks.spawn(owner::hold(Arc::clone(&shared), claim));
        tasks.spawn(watch::run(Arc::clone(&shared), self.pools()));
        let mut dispatchers = JoinSet::new();
        let started = self.start_pools(&shared, &mut dispatchers, &mut shutdown).await;
        if started.is_ok() && *shutdown.borrow() == Shutdown::No {
            info!("ready: {} dispatchers", dispatchers.len());
            (self.report)(ServiceReport::Ready);
            report_now(&shared, "start", "node.green", "every dispatcher consumes");
            events::every_level(&shared);
            self.beat(&shared, &mut shutdown).await;
        }
        report_now(&shared, "end", "shutdown.begun", "no more messages are taken");
        self.end(&shared, dispatchers, &mut shutdown).await;
        report_now(&shared, "end", "shutdown.drained", "the messages are settled");
        tasks.shutdown().await;
        if *shutdown.borrow() != Shutdown::Now {
            shared.end_replies().await;
        }
        report_now(&shared, "end", "shutdown.ended", "the last event of this process");
        // Nothing reports an event any more.
        drop(last);
        if tokio::time::timeout(EVENTS_WITHIN, events).await.is_err() {
            let left = shared.counts.events_waiting.load(Ordering::Relaxed);
            shared.lost_events(left);
            warn!(
                "{} lost: this process ends, and they could be neither published nor kept within {} s",
                counted(left, "log event is", "log events are"),
                EVENTS_WITHIN.as_secs()
            );
        }
        let name = shared.presence().name();
        let _ = tokio::time::timeout(EVENTS_WITHIN, async {
            events::note_spooled(&shared).await;
            let _ = shared.store.brokers().forget(&shared.scope, &name).await;
        })
        .await;
        shared.link.close().await;
        info!("stopped");
        match shared.refused.get() {
            Some(error) => Err(error.clone().into()),
            None => started,
        }
    }

    /// Connects, claims the vhost and declares the exchanges. `None` if the end was requested first.
    async fn prepare(
        &self,
        started_us: i64,
        events: mpsc::Sender<LogRecord>,
        milestones: &mut Vec<Milestone>,
        shutdown: &mut Receiver<Shutdown>,
    ) -> Result<Option<(Arc<Shared>, Deliveries)>, BrokerError> {
        let amqp = &self.settings.amqp;
        let link = Link::open(amqp, &self.unit)?;
        let mut backoff = Backoff::default();
        let mut is_reported = false;
        let claim = loop {
            let error = match self.declare(&link, milestones).await {
                Ok(claim) => break claim,
                Err(error) => error,
            };
            if !error.is_transient() {
                return Err(error.into());
            }
            if !std::mem::replace(&mut is_reported, true) {
                warn!("{error}; trying again until it answers");
            }
            (self.report)(ServiceReport::Alive(format!("not ready: {error}; trying again")));
            tokio::select! {
                () = tokio::time::sleep(backoff.failed()) => {}
                _ = shutdown.wait_for(|asked| *asked > Shutdown::No) => return Ok(None),
            }
        };
        let work = all_work(amqp).into_iter().map(|work| (work.queue.name.clone(), work));
        let shared = Arc::new(Shared {
            built_ins: BuiltIns::new(&self.client, &self.settings.amqp, &self.settings.osis)?,
            store: self.store.clone(),
            client: self.client.clone(),
            settings: Arc::clone(&self.settings),
            tracer: self.tracer.clone(),
            scope: amqp.scope(),
            unit: self.unit.clone(),
            node: self.node,
            work: work.collect(),
            started_us,
            root: uuid::Uuid::new_v4().to_string(),
            events,
            // An earlier process may have noted some.
            ends: Mutex::default(),
            counts: BrokerCounts { noted: AtomicU64::new(1), ..BrokerCounts::default() },
            letters: Mutex::default(),
            last_loss: Mutex::default(),
            outage: Outage::default(),
            redis_outage: Outage::default(),
            database_outage: Outage::default(),
            replies: Arc::new(Semaphore::new(replies::WAITING_KIB_MAX)),
            old: Mutex::default(),
            declaring: tokio::sync::Mutex::default(),
            owns: Sender::new(true),
            refused: OnceLock::new(),
            leaving: Sender::new(false),
            link,
        });
        Ok(Some((shared, claim)))
    }

    /// Deletes the log records where a start of development deletes old ones, on the node that stores
    /// them.
    async fn purge_logs(&self, shared: &Shared) {
        let amqp = &self.settings.amqp;
        let stores = amqp.mode == AmqpMode::Unified || self.node == Some(Node::Admin);
        if !amqp.purge_on_start || !stores {
            return;
        }
        match shared.built_ins.purge_logs().await {
            Ok(PurgedLogs { deleted: 0, is_complete: true }) => {}
            Ok(PurgedLogs { deleted, is_complete }) => {
                let rest = if is_complete { "" } else { ", and there are more" };
                warn!("deleted {deleted} log records: amqp.purge_on_start{rest}");
            }
            Err(failure) => warn!("cannot delete the log records: {failure}"),
        }
    }

    fn pools(&self) -> Vec<Arc<Pool>> {
        pools(&self.settings.amqp, self.node).into_iter().map(Arc::new).collect()
    }

    async fn declare(
        &self,
        link: &Link,
        milestones: &mut Vec<Milestone>,
    ) -> Result<Deliveries, LinkError> {
        let amqp = &self.settings.amqp;
        // Removes the milestones of a failed attempt.
        milestones.truncate(1);
        link.connect().await?;
        let text = format!("connected to RabbitMQ at {}", link.address());
        milestones.push(Milestone::now("start", "amqp.connected", text));
        let claim = owner::claim(link, amqp).await?;
        link.declare_exchanges().await?;
        milestones.push(Milestone::now("start", "ipl.exchanges", "the exchanges are declared"));
        if amqp.purge_on_start {
            for pool in pools(amqp, self.node) {
                for queue in pool.work.queues() {
                    if link.counts(&queue.name).await?.is_some_and(|counts| counts.messages > 0) {
                        let number = link.purge(&queue.name).await?;
                        warn!("deleted {number} messages of {}: amqp.purge_on_start", queue.name);
                    }
                }
            }
        }
        Ok(claim)
    }

    /// Starts every dispatcher, and waits until each consumes.
    async fn start_pools(
        &self,
        shared: &Arc<Shared>,
        dispatchers: &mut JoinSet<()>,
        shutdown: &mut Receiver<Shutdown>,
    ) -> Result<(), BrokerError> {
        let pools = self.pools();
        let number: usize = pools.iter().map(|pool| pool.size).sum();
        shared.counts.dispatchers.store(number as u64, Ordering::Relaxed);
        let (started, mut reports) = mpsc::channel(number.max(1));
        for pool in &pools {
            for _ in 0..pool.size {
                let (shared, pool) = (Arc::clone(shared), Arc::clone(pool));
                let dispatcher = Dispatcher { shared, pool, tasks: JoinSet::new() };
                dispatchers.spawn(dispatcher.run(started.clone()));
            }
            let (name, queue) = (pool.name(), &pool.work.queue.name);
            info!("{name}: {} dispatchers of {queue}", pool.size);
        }
        drop(started);
        let mut consuming: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            tokio::select! {
                report = reports.recv() => match report {
                    Some(Ok(pool)) => {
                        let queue = &pool.work.queue.name;
                        let number = consuming.entry(queue.clone()).or_default();
                        *number += 1;
                        if *number == pool.size {
                            let text = format!("{number} dispatchers consume {queue}");
                            report_now(shared, pool.name(), "broker.queue", text);
                        }
                    }
                    Some(Err(error)) => return Err(error.into()),
                    // Each has reported.
                    None => return Ok(()),
                },
                _ = shutdown.wait_for(|asked| *asked > Shutdown::No) => return Ok(()),
            }
        }
    }

    /// Reports the state until the end is requested.
    async fn beat(&self, shared: &Arc<Shared>, shutdown: &mut Receiver<Shutdown>) {
        let every = self.beat_within.unwrap_or(BEAT).min(BEAT);
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    (self.report)(ServiceReport::Alive(shared.status()));
                    let asked = async {
                        control::read_orders(shared).await;
                        events::note_spooled(shared).await;
                        if let Some(tracer) = &shared.tracer {
                            tracer.count_dropped(&shared.store).await;
                        }
                        let noted = shared.store.brokers().note(&shared.scope, &shared.presence()).await;
                        match noted {
                            Ok(()) => shared.redis_answered(),
                            Err(error) => shared.redis_failed("telling its state", &error),
                        }
                    };
                    // Redis may be away: the beat goes on.
                    let _ = tokio::time::timeout(every / 2, asked).await;
                }
                () = shared.left() => return,
                _ = shutdown.wait_for(|asked| *asked > Shutdown::No) => return,
            }
        }
    }

    /// Ends the dispatchers: each settles its messages.
    async fn end(
        &self,
        shared: &Shared,
        mut dispatchers: JoinSet<()>,
        shutdown: &mut Receiver<Shutdown>,
    ) {
        // systemd starts it again only after a failure.
        let why = if *shared.leaving.borrow() { "told to end by an order, " } else { "" };
        let status = format!("{why}settling the messages that are being served");
        (self.report)(ServiceReport::Stopping { status, within: END_WITHIN });
        shared.leaving.send_replace(true);
        let drained = async { while dispatchers.join_next().await.is_some() {} };
        tokio::select! {
            _ = tokio::time::timeout(END_WITHIN, drained) => {}
            _ = shutdown.wait_for(|asked| *asked == Shutdown::Now) => {}
        }
    }
}

impl From<BrokerError> for Error {
    fn from(error: BrokerError) -> Self {
        let exit = match &error {
            BrokerError::Store(StoreError::NotPermitted { .. })
            | BrokerError::Link(LinkError::NotPermitted { .. } | LinkError::NoVhost { .. }) => {
                Exit::NotPermitted
            }
            BrokerError::Config(_)
            | BrokerError::Link(LinkError::Settings(_) | LinkError::OtherArguments { .. }) => {
                Exit::Config
            }
            _ => Exit::Unavailable,
        };
        Self::new(exit, error.to_string())
    }
}
