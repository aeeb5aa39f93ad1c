//! A span, and its form in OTLP.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::proto::job::TraceParent;

/// The attributes that are whole numbers.
const NUMBERS: [&str; 1] = ["hero.attempt"];
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

impl SpanKind {
    /// Returns what it does to a message, as the semantic conventions of messaging name it.
    fn operation(self) -> Option<&'static str> {
        match self {
            Self::Producer => Some("send"),
            Self::Consumer => Some("process"),
            Self::Internal | Self::Server => None,
        }
    }
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
        let (mut all, mut events) = (self.attributes.clone(), json!([]));
        let mut add = |key, text: &str| {
            if !all.iter().any(|(of, _)| *of == key) {
                all.push((key, text.to_owned()));
            }
        };
        if let Some(operation) = self.kind.operation() {
            add("messaging.system", "hero");
            add("messaging.operation.type", operation);
            add("messaging.operation.name", self.name.split(' ').next().unwrap_or_default());
        }
        let status = match &self.error {
            None => json!({}),
            Some(error) => {
                add("error.type", "_OTHER");
                let about = attributes(&[("exception.message", error.clone())]);
                events = json!([
                    { "name": "exception", "timeUnixNano": end.to_string(), "attributes": about },
                ]);
                json!({ "code": 2, "message": error })
            }
        };
        json!({
            "traceId": self.own.trace_id(),
            "spanId": self.own.span_id(),
            "parentSpanId": self.parent.as_deref().unwrap_or_default(),
            "name": self.name,
            "kind": self.kind as u8,
            "startTimeUnixNano": begin.to_string(),
            "endTimeUnixNano": end.to_string(),
            "attributes": attributes(&all),
            "events": events,
            "status": status,
        })
    }
}

/// Returns names with texts and numbers as OTLP has them.
pub(super) fn attributes(pairs: &[(&str, String)]) -> Value {
    let one = |(key, text): &(&str, String)| {
        let kind = if NUMBERS.contains(key) { "intValue" } else { "stringValue" };
        json!({ "key": key, "value": { kind: text } })
    };
    pairs.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_has_the_attributes_of_the_conventions_and_its_error_as_an_event() {
        let own = TraceParent::of_random(1, 2, true).expect("a place");
        let span = |kind, error: Option<&str>| {
            let attributes =
                vec![("hero.attempt", "2".to_owned()), ("error.type", "timeout".to_owned())];
            let (name, error) = ("attempt bash".to_owned(), error.map(str::to_owned));
            let (begin, took, parent) = (Timestamp::UNIX_EPOCH, Duration::from_secs(1), None);
            JobSpan { own, parent, name, kind, begin, took, error, attributes }.document()
        };
        let value = |span: &Value, key: &str| {
            let all = span["attributes"].as_array().expect("a list").clone();
            all.into_iter().find(|of| of["key"] == key).map(|of| of["value"].clone())
        };
        let failed = span(SpanKind::Consumer, Some("boom"));
        let text = |text: &str| Some(json!({ "stringValue": text }));
        for (key, expected) in [
            ("messaging.system", text("hero")),
            ("messaging.operation.type", text("process")),
            ("messaging.operation.name", text("attempt")),
            ("error.type", text("timeout")),
            ("hero.attempt", Some(json!({ "intValue": "2" }))),
        ] {
            assert_eq!(value(&failed, key), expected, "{key}");
        }
        let event = &failed["events"][0];
        assert_eq!(
            (&event["name"], &event["timeUnixNano"]),
            (&json!("exception"), &json!("1000000000"))
        );
        assert_eq!(event["attributes"][0]["value"]["stringValue"], "boom");
        let internal = span(SpanKind::Internal, None);
        assert_eq!((value(&internal, "messaging.system"), &internal["events"]), (None, &json!([])));
    }
}
