//! Spans of jobs for OpenTelemetry, sent as OTLP in JSON over HTTP. Without a receiver nothing is made.

use hero_config as config;
use hero_http as http;
use hero_proto as proto;
use hero_store as store;

mod export;
mod span;

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::debug;

use crate::config::TraceConfig;
use crate::proto::job::{Job, TraceParent};
use crate::store::Store;
use export::{DroppedSpans, SpanExport};
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

pub struct Sending {
    task: JoinHandle<()>,
    closing: watch::Sender<bool>,
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

    pub fn dropped(&self) -> u64 {
        self.dropped.all()
    }

    /// Adds the dropped spans to the count of the namespace. Without new ones it asks Redis nothing; if Redis does not
    /// take them, the next call adds them.
    pub async fn count_dropped(&self, store: &Store) {
        let number = self.dropped.take_unreported();
        if number == 0 {
            return;
        }
        if let Err(error) = store.stats().count_dropped_spans(self.service, number).await {
            self.dropped.give_back(number);
            debug!("cannot count dropped spans: {error}");
        }
    }

    /// Returns a place in a new trace, which is recorded as often as the configuration says.
    pub fn new_trace(&self) -> Option<TraceParent> {
        TraceParent::of_random(fastrand::u128(1..), new_span(), fastrand::f64() < self.sample)
    }

    /// Returns the place of a job, and the id of the span above if there is one. The trace of a job without one follows from its id, or from its graph's, so that
    /// every process finds the same.
    pub fn place_of(&self, job: &Job) -> Option<(TraceParent, Option<String>)> {
        if let Some(above) = job.spec.traceparent {
            return Some((above, Some(above.span_id())));
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
        Some((TraceParent::of_random(trace, 1, share < self.sample)?, None))
    }
}

pub fn new_span() -> u64 {
    fastrand::u64(1..)
}

/// A piece of work that goes on, with the times of this machine.
pub struct OpenSpan {
    /// Its place in the trace, for what is done by it.
    pub own: TraceParent,
    parent: Option<String>,
    begin: Timestamp,
    begun: Instant,
}

impl OpenSpan {
    /// Begins below a place in a trace, without one in a new trace. `None` if it can have no place.
    pub fn begin(tracer: &Tracer, above: Option<TraceParent>) -> Option<Self> {
        let own = above.or_else(|| tracer.new_trace())?.below(new_span());
        let parent = above.map(|above| above.span_id());
        Some(Self { own, parent, begin: Timestamp::now(), begun: Instant::now() })
    }

    /// Sends it, if its trace is recorded: the work has ended, perhaps with this error.
    pub fn end(
        self,
        tracer: &Tracer,
        (kind, name): (SpanKind, String),
        error: Option<String>,
        attributes: Vec<(&'static str, String)>,
    ) {
        let Self { own, parent, begin, begun } = self;
        if own.is_sampled() {
            let took = begun.elapsed();
            tracer.send(JobSpan { own, parent, name, kind, begin, took, error, attributes });
        }
    }
}

impl Sending {
    /// Takes no further spans, and waits for a short time until the others are sent.
    pub async fn end(self) {
        self.closing.send_replace(true);
        let _ = self.task.await;
    }
}
