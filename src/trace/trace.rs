//! Spans of jobs for OpenTelemetry, sent as OTLP in JSON over HTTP. Without a receiver nothing is made.

use hero_config as config;
use hero_http as http;
use hero_proto as proto;
use hero_store as store;

mod dropped;
mod export;
mod open_span;
mod span;

use std::sync::Arc;

use ring::digest::{SHA256, digest};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::debug;

use crate::config::TraceConfig;
use crate::proto::job::{Job, TraceParent};
use crate::store::Store;
use dropped::DroppedSpans;
use export::SpanExport;
pub use open_span::OpenSpan;
pub use span::{JobSpan, SpanKind};

/// The spans that wait for the receiver; further ones are dropped.
const WAITING_MAX: usize = 2048;

/// Takes spans, and sends them from a task of its own. It never waits.
#[derive(Clone)]
pub struct Tracer {
    spans: mpsc::Sender<JobSpan>,
    dropped: Arc<DroppedSpans>,
    service: &'static str,
    sample: f64,
}

/// The task that sends spans.
pub struct Sending {
    task: JoinHandle<()>,
    closing: watch::Sender<bool>,
}

#[derive(Clone, Copy)]
pub struct TracePlace {
    /// The trace, and the span above what is done here.
    pub above: TraceParent,
    /// False if there is no span above.
    pub has_parent: bool,
}

impl Tracer {
    /// Begins to send; `None` without a receiver. Needs a Tokio runtime.
    pub fn start(config: &TraceConfig, service: &'static str) -> Option<(Self, Sending)> {
        let export = SpanExport::new(config, service)?;
        let (spans, waiting) = mpsc::channel(WAITING_MAX);
        let dropped = Arc::clone(&export.dropped);
        let closing = watch::Sender::new(false);
        let task = tokio::spawn(export.run(waiting, closing.subscribe()));
        Some((Self { spans, dropped, service, sample: config.sample }, Sending { task, closing }))
    }

    /// Sends a span, or drops it if too many wait.
    pub fn send(&self, span: JobSpan) {
        if self.spans.try_send(span.shortened()).is_err() {
            self.dropped.add(1);
        }
    }

    /// Returns the number of spans that no receiver got.
    pub fn dropped(&self) -> u64 {
        self.dropped.all()
    }

    /// Adds the dropped spans to the count of the namespace. Without new ones it asks Redis nothing; if Redis does not
    /// take them, the next call adds them.
    pub async fn count_dropped(&self, store: &Store) {
        let number = self.dropped.take_untold();
        if number == 0 {
            return;
        }
        if let Err(error) = store.count_dropped_spans(self.service, number).await {
            self.dropped.give_back(number);
            debug!("cannot count dropped spans: {error}");
        }
    }

    /// Returns a place in a new trace, which is recorded as often as the configuration says.
    pub fn new_trace(&self) -> Option<TraceParent> {
        TraceParent::of_random(fastrand::u128(1..), new_span(), fastrand::f64() < self.sample)
    }

    /// Returns the place of a job. The trace of a job without one follows from its id, or from its graph's, so that
    /// every process finds the same.
    pub fn place_of(&self, job: &Job) -> Option<TracePlace> {
        if let Some(above) = job.spec.traceparent {
            return Some(TracePlace { above, has_parent: true });
        }
        let id = job.graph_id.as_ref().unwrap_or(&job.id);
        let created = job.created_at.filter(|_| job.graph_id.is_none());
        let hash = digest(&SHA256, format!("{id} {created:?}").as_bytes());
        let (trace, rest) = hash.as_ref().split_at(16);
        let trace = u128::from_be_bytes(trace.try_into().ok()?);
        let dice = u64::from_be_bytes(rest[..8].try_into().ok()?);
        // 53 bits are what a number with decimals holds.
        #[expect(clippy::cast_precision_loss, reason = "the numbers have 53 bits")]
        let share = (dice >> 11) as f64 / (1_u64 << 53) as f64;
        let above = TraceParent::of_random(trace, 1, share < self.sample)?;
        Some(TracePlace { above, has_parent: false })
    }
}

/// Returns the id of a new span.
pub fn new_span() -> u64 {
    fastrand::u64(1..)
}

impl Sending {
    /// Takes no further spans, and waits for a short time until the others are sent.
    pub async fn end(self) {
        self.closing.send_replace(true);
        let _ = self.task.await;
    }
}
