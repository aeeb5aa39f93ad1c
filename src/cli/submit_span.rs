//! The span of a submission, made by the command that submits if the configuration has a receiver.

use std::time::Instant;

use jiff::Timestamp;

use crate::config::Config;
use crate::proto::job::TraceParent;
use crate::trace::{JobSpan, Sending, SpanKind, Tracer, new_span};

/// A submission that goes on. Without a receiver it only hands the place in the trace on.
pub(super) struct SubmitSpan {
    /// The place of the jobs in a trace.
    pub(super) place: Option<TraceParent>,
    parent: Option<String>,
    sending: Option<(Tracer, Sending)>,
    begin: Timestamp,
    begun: Instant,
}

impl SubmitSpan {
    /// Begins below a place in a trace, or in a new one.
    pub(super) fn begin(config: &Config, above: Option<TraceParent>) -> Self {
        let sending = Tracer::start(&config.trace, "hero-submit");
        let new = || sending.as_ref().and_then(|(tracer, _)| tracer.new_trace());
        let place = above.or_else(new);
        let place = if sending.is_some() { place.map(|of| of.below(new_span())) } else { place };
        let parent = above.map(|above| above.span_id());
        Self { place, parent, sending, begin: Timestamp::now(), begun: Instant::now() }
    }

    /// Ends it, and sends it; that takes a short time at most. `what` is the id of the job, graph or batch.
    pub(super) async fn end(self, kind: &str, what: &str) {
        let (Some((tracer, sending)), Some(own)) = (self.sending, self.place) else { return };
        if own.is_sampled() {
            tracer.send(JobSpan {
                own,
                parent: self.parent,
                name: format!("submit {kind}"),
                kind: SpanKind::Producer,
                begin: self.begin,
                took: self.begun.elapsed(),
                error: None,
                attributes: vec![("hero.submitted.id", what.to_owned())],
            });
        }
        sending.end().await;
    }
}
