//! The state that the tasks of one broker process share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use super::settings::BrokerSettings;
use crate::amqp::builtin::BuiltIns;
use crate::amqp::link::{Link, LinkError};
use crate::amqp::logs::LogRecord;
use crate::amqp::topology::Work;
use crate::config::Node;
use crate::proto::text::counted;
use crate::store::{Outage, Store};

/// The parts that every task uses.
pub(super) struct Shared {
    pub(super) link: Link,
    pub(super) store: Store,
    pub(super) settings: Arc<BrokerSettings>,
    pub(super) built_ins: BuiltIns,
    /// The tag and the vhost, by which Redis knows them.
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
    pub(super) outage: Outage,
    /// True once the process is to end.
    pub(super) leaving: watch::Sender<bool>,
}

/// Counters for the status line.
#[derive(Debug, Default)]
pub(super) struct BrokerCounts {
    /// The dispatchers that consume.
    pub(super) consuming: AtomicUsize,
    /// The dispatchers there are.
    pub(super) dispatchers: AtomicUsize,
    /// Messages that became jobs.
    pub(super) jobs: AtomicU64,
    /// Messages that a built-in served.
    pub(super) served: AtomicU64,
    /// Answers that were published.
    pub(super) answers: AtomicU64,
    /// Messages that went to a retry lane.
    pub(super) retried: AtomicU64,
    /// Messages that became dead letters.
    pub(super) dead: AtomicU64,
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

impl Shared {
    pub(super) fn is_leaving(&self) -> bool {
        *self.leaving.borrow()
    }

    /// Waits until the process is to end.
    pub(super) async fn left(&self) {
        // The sender lives in this value, so the wait ends by the condition alone.
        let _ = self.leaving.subscribe().wait_for(|leaving| *leaving).await;
    }

    /// Notes a call that RabbitMQ did not serve, and logs it once in an outage.
    pub(super) fn rabbit_failed(&self, doing: &str, error: &LinkError) {
        if self.outage.failed(Instant::now()) {
            warn!("{doing}: {error}; trying again");
        } else {
            debug!("{doing}: {error}");
        }
    }

    /// Notes a call that RabbitMQ served.
    pub(super) fn rabbit_answered(&self) {
        if let Some(lasted) = self.outage.answered(Instant::now()) {
            info!("RabbitMQ is back after {:.1} s", lasted.as_secs_f64());
        }
    }

    /// Returns the part of the status line about log events; empty if none waits and none was lost.
    fn events_status(&self) -> String {
        let of = |counter: &AtomicU64, what: &str| match counter.load(Ordering::Relaxed) {
            0 => String::new(),
            number => format!(", {} {what}", counted(number, "log event", "log events")),
        };
        let spooled = of(&self.counts.spooled, "in the spool");
        let lost = of(&self.counts.lost, "lost");
        format!("{spooled}{lost}")
    }

    /// Returns the status line for systemd.
    pub(super) fn status(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        let rabbit = match self.outage.since() {
            Some(since) => format!("RabbitMQ away for {} s", since.elapsed().as_secs()),
            None => "RabbitMQ ok".to_owned(),
        };
        format!(
            "{} of {} dispatchers consume, {} messages became jobs, {} served at once, {} answered, \
             {} retried, {} dead, {rabbit}{}",
            counts.consuming.load(Ordering::Relaxed),
            counts.dispatchers.load(Ordering::Relaxed),
            of(&counts.jobs),
            of(&counts.served),
            of(&counts.answers),
            of(&counts.retried),
            of(&counts.dead),
            self.events_status(),
        )
    }
}
