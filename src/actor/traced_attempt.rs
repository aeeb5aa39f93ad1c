//! An attempt of which spans are made, while it runs.

use std::time::Instant;

use crate::proto::job::{Job, TraceParent};
use crate::trace::{Tracer, new_span};

/// An attempt of which spans are made.
pub(super) struct TracedAttempt {
    /// The trace, and the span of the attempt.
    pub(super) own: TraceParent,
    /// The id of the span above.
    pub(super) parent: Option<String>,
    /// The time of its start.
    pub(super) begun: Instant,
}

impl TracedAttempt {
    /// Begins an attempt. `None` if its job can have no place in a trace.
    pub(super) fn new(tracer: &Tracer, job: &Job) -> Option<Self> {
        let place = tracer.place_of(job)?;
        let parent = place.has_parent.then(|| place.above.span_id());
        Some(Self { own: place.above.below(new_span()), parent, begun: Instant::now() })
    }
}
