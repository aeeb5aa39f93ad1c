//! The span of a submission, made by the command that submits if the configuration has a receiver.

use crate::config::Config;
use crate::proto::job::TraceParent;
use crate::trace::{OpenSpan, Sending, SpanKind, Tracer};

/// A submission that goes on. Without a receiver it only hands the place in the trace on.
pub(super) struct SubmitSpan {
    /// The place of the jobs in a trace.
    pub(super) place: Option<TraceParent>,
    open: Option<(OpenSpan, Tracer, Sending)>,
}

impl SubmitSpan {
    /// Begins below a place in a trace, or in a new one.
    pub(super) fn begin(config: &Config, above: Option<TraceParent>) -> Self {
        let sending = Tracer::start(&config.trace, "hero-submit");
        let open = sending.and_then(|(tracer, sending)| {
            Some((OpenSpan::begin(&tracer, above)?, tracer, sending))
        });
        let place = open.as_ref().map(|(open, ..)| open.own).or(above);
        Self { place, open }
    }

    /// Ends it, and sends it; that takes a short time at most. `what` is the id of the job, graph or batch.
    pub(super) async fn end(self, kind: &str, what: &str) {
        let Some((open, tracer, sending)) = self.open else { return };
        let attributes = vec![("hero.submitted.id", what.to_owned())];
        open.end(&tracer, (SpanKind::Producer, format!("submit {kind}")), None, attributes);
        sending.end().await;
    }
}
