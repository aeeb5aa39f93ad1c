//! The place in a trace of the request that a task answers, and the span of a request that submits jobs.

use std::cell::Cell;

use axum::http::HeaderMap;
use serde_json::Value;

use super::method::MethodResult;
use super::rpc_error::Result;
use crate::proto::job::TraceParent;
use crate::trace::{OpenSpan, SpanKind, Tracer};

tokio::task_local! {
    /// The request that a task answers.
    pub(super) static TRACE: RequestTrace;
}

/// A request, as far as traces know it.
pub(super) struct RequestTrace {
    place: Option<TraceParent>,
    /// True once a job got the place.
    is_used: Cell<bool>,
}

impl From<Option<TraceParent>> for RequestTrace {
    fn from(place: Option<TraceParent>) -> Self {
        Self { place, is_used: Cell::new(false) }
    }
}

/// Returns the place that the headers of a request name. Several headers name none.
pub(super) fn trace_of_headers(headers: &HeaderMap) -> Option<TraceParent> {
    let mut all = headers.get_all(TraceParent::HEADER).iter();
    let one = all.next().filter(|_| all.next().is_none())?;
    TraceParent::inherited(one.to_str().ok()?)
}

/// Returns the place in a trace of the request that this task answers, for its jobs.
pub(super) fn trace_of_request() -> Option<TraceParent> {
    let place = TRACE.try_with(|trace| {
        trace.is_used.set(true);
        trace.place
    });
    place.ok().flatten()
}

/// Answers a call as a span of its own, which is sent if the call gave its place to jobs.
pub(super) async fn traced(
    tracer: &Tracer,
    method: &'static str,
    call: impl Future<Output = Result<Box<dyn MethodResult>>>,
) -> Result<Box<dyn MethodResult>> {
    let above = TRACE.try_with(|trace| trace.place).ok().flatten();
    let open = OpenSpan::begin(tracer, above);
    let own = open.as_ref().map(|open| open.own);
    let answered = async {
        let result = call.await;
        (result, TRACE.with(|trace| trace.is_used.get()))
    };
    let (result, is_used) = TRACE.scope(own.into(), answered).await;
    if let Some(open) = open.filter(|_| is_used) {
        let submitted =
            result.as_ref().ok().and_then(|result| id_of(&result.as_ref().json().ok()?));
        let attributes = submitted.map(|id| ("hero.submitted.id", id)).into_iter().collect();
        let error = result.as_ref().err().map(ToString::to_string);
        open.end(tracer, (SpanKind::Server, method.to_owned()), error, attributes);
    }
    result
}

/// Returns the id of what a call has submitted, if its result is about one thing.
fn id_of(result: &Value) -> Option<String> {
    let named = ["id", "job_id", "graph_id", "batch_id"];
    let id = named.iter().find_map(|name| result.get(name)).or(Some(result))?;
    id.as_str().map(str::to_owned)
}
