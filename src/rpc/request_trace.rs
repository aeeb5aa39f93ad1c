//! The place in a trace of the request that a task answers.

use crate::proto::job::TraceParent;

tokio::task_local! {
    /// The place of a request in a trace.
    pub(super) static TRACE: Option<TraceParent>;
}

/// Returns the place in a trace of the request that this task answers.
pub(super) fn trace_of_request() -> Option<TraceParent> {
    TRACE.try_with(|trace| *trace).ok().flatten()
}
