//! The span of a firing: each firing of a periodic job is a trace of its own.

use std::time::Instant;

use jiff::Timestamp;

use crate::config::CronEntry;
use crate::proto::job::{JobId, TraceParent};
use crate::trace::{JobSpan, SpanKind, Tracer, new_span};

/// A firing that goes on.
pub(super) struct FiringSpan {
    /// The place of its job in the new trace.
    pub(super) own: TraceParent,
    name: String,
    due: Timestamp,
    begin: Timestamp,
    begun: Instant,
}

impl FiringSpan {
    /// Begins a trace. `None` if it can have no place.
    pub(super) fn begin(tracer: &Tracer, entry: &CronEntry, due: Timestamp) -> Option<Self> {
        let own = tracer.new_trace()?.below(new_span());
        let name = entry.name.to_string();
        Some(Self { own, name, due, begin: Timestamp::now(), begun: Instant::now() })
    }

    /// Sends it: its job is submitted.
    pub(super) fn end(self, tracer: &Tracer, id: &JobId) {
        if !self.own.is_sampled() {
            return;
        }
        tracer.send(JobSpan {
            own: self.own,
            parent: None,
            name: format!("fire {}", self.name),
            kind: SpanKind::Producer,
            begin: self.begin,
            took: self.begun.elapsed(),
            error: None,
            attributes: vec![
                ("hero.submitted.id", id.to_string()),
                ("hero.cron.name", self.name),
                ("hero.cron.due", self.due.to_string()),
            ],
        });
    }
}
