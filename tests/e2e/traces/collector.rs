//! A collector of spans: the HTTP server of the tests, and what it got.

use serde_json::Value;

use crate::notify::Receiver;
use crate::support::{Hero, Redis, keys, wait_until};

/// The trace of requests.
pub(crate) const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A place in the trace, with this digit as the span.
pub(crate) fn place(span: u8) -> String {
    format!("00-{TRACE}-000000000000000{span}-01")
}

/// Returns the program with this receiver of spans.
pub(crate) fn sending(hero: Hero, receiver: &Receiver) -> Hero {
    hero.set("trace.endpoint", &format!("\"http://127.0.0.1:{}\"", receiver.port))
}

/// Returns the spans that a receiver got.
pub(crate) fn spans(receiver: &Receiver) -> Vec<Value> {
    let all = receiver.messages();
    let resources = all.iter().flat_map(|body| body["resourceSpans"].as_array().expect("a list"));
    let scopes = resources.flat_map(|of| of["scopeSpans"].as_array().expect("a list"));
    scopes.flat_map(|of| of["spans"].as_array().expect("a list").clone()).collect()
}

/// Waits for a span of this name about this job, and returns it.
#[track_caller]
pub(crate) fn span_of(receiver: &Receiver, name: &str, job: &str) -> Value {
    let about = |span: &Value| {
        let keys = ["hero.job.id", "hero.submitted.id"];
        span["name"] == name && keys.iter().any(|key| attribute(span, key) == job)
    };
    let mut found = None;
    wait_until(&format!("there is a span {name} of {job}"), || {
        found = spans(receiver).into_iter().find(about);
        found.is_some()
    });
    found.expect("it was found")
}

/// Returns an attribute of a span.
pub(crate) fn attribute<'s>(span: &'s Value, key: &str) -> &'s str {
    let all = span["attributes"].as_array().expect("a list");
    let found = all.iter().find(|of| of["key"] == key);
    let value = found.map(|of| &of["value"]);
    let text = value.and_then(|of| of["stringValue"].as_str().or(of["intValue"].as_str()));
    text.unwrap_or_default()
}

/// Returns the place that the hash of a job has.
#[track_caller]
pub(crate) fn of(redis: &Redis, id: &str) -> Option<String> {
    redis.field(&keys::job(id), "traceparent")
}

/// Checks that a job has its place below a span, which is in the trace of requests below this digit.
#[track_caller]
pub(crate) fn is_below(redis: &Redis, receiver: &Receiver, (id, name): (&str, &str), above: u8) {
    let span = span_of(receiver, name, id);
    assert_eq!((&span["traceId"], &span["kind"]), (&TRACE.into(), &2.into()), "{span}");
    assert_eq!(span["parentSpanId"], format!("000000000000000{above}"), "{span}");
    let own = span["spanId"].as_str().expect("text");
    assert_eq!(of(redis, id), Some(format!("00-{TRACE}-{own}-01")), "{id}");
}
