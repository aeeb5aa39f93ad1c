//! A span while its work goes on.

use std::time::Instant;

use jiff::Timestamp;

use super::{JobSpan, SpanKind, Tracer, new_span};
use crate::proto::job::TraceParent;

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
