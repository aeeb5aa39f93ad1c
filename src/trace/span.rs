//! A span, and its form in OTLP.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::proto::job::TraceParent;

/// The longest reason of a failure.
const ERROR_CHARS_MAX: usize = 1000;

/// A piece of work, with its start and its end.
#[derive(Debug, Clone)]
pub struct JobSpan {
    /// The trace, and its own id.
    pub own: TraceParent,
    /// The id of the span above.
    pub parent: Option<String>,
    pub name: String,
    /// The kind, as OTLP numbers it.
    pub kind: SpanKind,
    pub begin: Timestamp,
    pub took: Duration,
    pub error: Option<String>,
    pub attributes: Vec<(&'static str, String)>,
}

/// The relation of a span to the one above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of it.
    Internal = 1,
    /// It answers a request.
    Server = 2,
    /// It hands something over.
    Producer = 4,
    /// It does what was handed over.
    Consumer = 5,
}

impl JobSpan {
    /// Returns it with a short reason, so that spans that wait have a bounded size.
    pub(super) fn shortened(mut self) -> Self {
        let is_long = |error: &String| error.len() > ERROR_CHARS_MAX;
        let short = |error: String| error.chars().take(ERROR_CHARS_MAX).collect();
        if self.error.as_ref().is_some_and(is_long) {
            self.error = self.error.map(short);
        }
        self
    }

    /// Returns it as OTLP has it in JSON.
    pub(super) fn document(&self) -> Value {
        let begin = self.begin.as_nanosecond();
        let end = begin + i128::try_from(self.took.as_nanos()).unwrap_or_default();
        let status = match &self.error {
            None => json!({}),
            Some(error) => json!({ "code": 2, "message": error }),
        };
        json!({
            "traceId": self.own.trace_id(),
            "spanId": self.own.span_id(),
            "parentSpanId": self.parent.as_deref().unwrap_or_default(),
            "name": self.name,
            "kind": self.kind as u8,
            "startTimeUnixNano": begin.to_string(),
            "endTimeUnixNano": end.to_string(),
            "attributes": attributes(&self.attributes),
            "status": status,
        })
    }
}

/// Returns names with texts as OTLP has them.
pub(super) fn attributes(pairs: &[(&str, String)]) -> Value {
    let one =
        |(key, text): &(&str, String)| json!({ "key": key, "value": { "stringValue": text } });
    pairs.iter().map(one).collect()
}
