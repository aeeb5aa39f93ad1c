//! Messages and answers, as they travel through RabbitMQ.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::proto::job::TraceParent;
use crate::proto::json_text::refuse_wide_integers;
use crate::proto::text::{sha256, shown};

/// The header with the root of a chain of messages.
pub const ROOT: &str = "root";
/// The header with the chain of a message.
pub const CHAIN: &str = "chain";
/// The header with the routing key of a message that returns from a retry lane to its queue directly.
pub const KEY: &str = "x-hero-key";
/// The header that counts failed deliveries.
pub const ATTEMPT: &str = "x-hero-attempt";
/// The header of a dead letter with the reason.
pub const REASON: &str = "x-hero-reason";
/// The header that counts the runs of a message that was a dead letter in between.
pub const RUN: &str = "x-hero-run";
/// The code of the failure of a message with such bytes.
pub const NOT_UTF8: &str = "not_utf8";
/// The character in the place of bytes that are not UTF-8, where a text has to be.
pub const SUBSTITUTE: char = '\u{1a}';
/// The entries of a page of log records or rows without its own limit, and the highest limit.
const PAGE: usize = 100;
pub(crate) const PAGE_MAX: usize = 1000;
/// The longest header that is read.
const HEADER_BYTES_MAX: usize = 1024;
/// The longest operation or template.
const NAME_BYTES_MAX: usize = 255;

/// A delivery, before it is parsed.
#[derive(Debug, Clone, Copy)]
pub struct Delivered<'a> {
    pub queue: &'a str,
    pub key: &'a str,
    /// True if it came from a retry lane to its queue, without an exchange that has a key.
    pub is_direct: bool,
    pub body: &'a [u8],
    pub properties: &'a Properties,
}

/// The properties of a message that Hero reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// The operation.
    pub kind: Option<String>,
    /// The id of the message, which makes a second delivery known.
    pub message_id: Option<String>,
    pub reply_to: Option<String>,
    /// The text that an answer repeats.
    pub correlation_id: Option<String>,
    /// The headers that are text or numbers.
    pub headers: BTreeMap<String, String>,
}

impl Properties {
    pub fn trace(&self) -> Option<TraceParent> {
        TraceParent::inherited(self.headers.get(TraceParent::HEADER)?)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AmqpMessage {
    pub queue: String,
    pub key: String,
    /// The operation: `ping`, `fetch`, `write`, …
    pub operation: String,
    /// The template: the type of the object, the name of the table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// W3C's trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The number of deliveries that failed before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// The number of times that it was a dead letter and came back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run: u32,
}

// Serde passes every field by reference.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Deserialize)]
#[serde(expecting = "an object {\"template\": …, \"data\": …}")]
struct Body {
    #[serde(default)]
    template: Option<String>,
    #[serde(default)]
    data: Value,
}

impl AmqpMessage {
    /// Parses a delivery. An empty body counts as one without a template and data.
    ///
    /// # Errors
    /// [`MessageFailure`] with the code `invalid_message`: the body is too large, or not an object in JSON, or
    /// there is no operation.
    pub fn parse(delivered: Delivered<'_>, body_bytes_max: u64) -> Result<Self, MessageFailure> {
        let Delivered { queue, key, is_direct, body, properties } = delivered;
        let size = body.len() as u64;
        if size > body_bytes_max {
            let reason = format!("the body has {size} bytes, more than {body_bytes_max}");
            return Err(MessageFailure::invalid(reason));
        }
        check_texts(key, properties)?;
        let header = |name: &str| {
            properties.headers.get(name).filter(|text| text.len() <= HEADER_BYTES_MAX).cloned()
        };
        let number = |name: &str| header(name).and_then(|text| text.parse().ok()).unwrap_or(0_u32);
        // A dead letter that was moved back is another run.
        let is_back = properties.headers.contains_key(REASON);
        let (attempt, run) = (number(ATTEMPT), number(RUN));
        let (attempt, run) = if is_back { (0, run.saturating_add(1)) } else { (attempt, run) };
        let operation = properties.kind.clone().unwrap_or_default();
        if operation.is_empty() || operation.len() > NAME_BYTES_MAX {
            let reason = "the property type is missing: it is the operation, such as ping";
            return Err(MessageFailure::invalid(reason));
        }
        let body: Body = if body.iter().all(u8::is_ascii_whitespace) {
            Body { template: None, data: Value::Null }
        } else {
            let wrong = |error: String| {
                MessageFailure::invalid(format!(
                    "the body is not {{\"template\": …, \"data\": …}} in JSON: {error}"
                ))
            };
            // An array would count as the fields in their order.
            if !body.trim_ascii_start().starts_with(b"{") {
                return Err(wrong("it is not an object".to_owned()));
            }
            refuse_wide_integers(body).map_err(MessageFailure::invalid)?;
            serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))?
        };
        let template = body.template.unwrap_or_default();
        if template.len() > NAME_BYTES_MAX {
            return Err(MessageFailure::invalid(format!(
                "the template is longer than {NAME_BYTES_MAX}"
            )));
        }
        let own_key = header(KEY).filter(|_| is_direct);
        Ok(Self {
            queue: queue.to_owned(),
            key: own_key.unwrap_or_else(|| key.to_owned()),
            operation,
            template,
            data: body.data,
            message_id: properties.message_id.clone().filter(|id| !id.is_empty()),
            reply_to: properties.reply_to.clone().filter(|queue| !queue.is_empty()),
            correlation_id: properties.correlation_id.clone(),
            root: header(ROOT),
            chain: header(CHAIN),
            // As the standard wants, an invalid one is as if it were not there.
            traceparent: properties.trace().map(|trace| trace.to_string()),
            attempt,
            run,
        })
    }

    pub fn trace(&self) -> Option<TraceParent> {
        self.traceparent.as_deref().and_then(TraceParent::inherited)
    }

    /// Returns true if another message asks for the same.
    pub fn asks_as(&self, other: &Self) -> bool {
        let asked = |it: &Self| (it.key.clone(), it.operation.clone(), it.template.clone());
        asked(self) == asked(other) && self.data == other.data
    }

    /// Returns the digest of the message's request.
    pub fn digest(&self) -> String {
        let mut asked = json!([self.key, self.operation, self.template, self.data]);
        asked.sort_all_objects();
        short_hash(&asked.to_string())
    }

    /// Checks that its key has its operation: a user of RabbitMQ who may write to one key cannot do what belongs to
    /// another. A key that is not among these may have any, as a route gives it to a built-in.
    pub(crate) fn check_operation(
        &self,
        of_keys: &[(&str, &[&str])],
    ) -> Result<(), MessageFailure> {
        let Self { key, operation, .. } = self;
        match of_keys.iter().find(|(known, _)| known == key) {
            Some((_, known)) if !known.contains(&operation.as_str()) => {
                let (operation, known) = (shown(operation), known.join(", "));
                let reason = format!("{key} has no operation `{operation}`; it has {known}");
                Err(MessageFailure::lasting("unknown_operation", reason))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the answer to another message goes the same way.
    pub fn is_answered_as(&self, other: &Self) -> bool {
        self.reply_to == other.reply_to && self.correlation_id == other.correlation_id
    }

    /// Returns the body, as it is published again.
    pub fn body(&self) -> Vec<u8> {
        json!({ "template": self.template, "data": self.data }).to_string().into_bytes()
    }

    /// Returns the properties, as they are published again.
    pub fn properties(&self) -> Properties {
        let mut headers = BTreeMap::new();
        let traced =
            [(ROOT, &self.root), (CHAIN, &self.chain), (TraceParent::HEADER, &self.traceparent)];
        for (name, value) in traced {
            if let Some(value) = value {
                headers.insert(name.to_owned(), value.clone());
            }
        }
        headers.insert(KEY.to_owned(), self.key.clone());
        if self.attempt > 0 {
            headers.insert(ATTEMPT.to_owned(), self.attempt.to_string());
        }
        if self.run > 0 {
            headers.insert(RUN.to_owned(), self.run.to_string());
        }
        Properties {
            kind: Some(self.operation.clone()),
            message_id: self.message_id.clone(),
            reply_to: self.reply_to.clone(),
            correlation_id: self.correlation_id.clone(),
            headers,
        }
    }
}

/// Rejects a message whose bytes are not UTF-8 where Hero reads a text: another text in its place could belong to
/// another message.
fn check_texts(key: &str, properties: &Properties) -> Result<(), MessageFailure> {
    let Properties { kind, message_id, reply_to, correlation_id, .. } = properties;
    let texts = [
        ("the routing key", Some(key)),
        ("the property type", kind.as_deref()),
        ("the property message_id", message_id.as_deref()),
        ("the property reply_to", reply_to.as_deref()),
        ("the property correlation_id", correlation_id.as_deref()),
    ];
    let is_wrong = |text: Option<&str>| text.is_some_and(|text| text.contains(SUBSTITUTE));
    match texts.into_iter().find(|(_, text)| is_wrong(*text)) {
        Some((what, _)) => Err(MessageFailure::lasting(
            NOT_UTF8,
            format!("{what} has bytes that are not UTF-8; its publisher must encode it"),
        )),
        None => Ok(()),
    }
}

/// Returns the limit of a page of log records or rows; [`PAGE`] without one.
pub(crate) fn page_limit(limit: Option<usize>) -> Result<usize, MessageFailure> {
    let limit = limit.unwrap_or(PAGE);
    if (1..=PAGE_MAX).contains(&limit) {
        return Ok(limit);
    }
    Err(MessageFailure::invalid(format!("`limit` must be from 1 to {PAGE_MAX}")))
}

/// Reads the data of an operation.
pub(crate) fn data_of<T: DeserializeOwned>(
    operation: &str,
    data: &Value,
) -> Result<T, MessageFailure> {
    let illegal = |error: &str| {
        MessageFailure::invalid(format!("the data of {operation} is illegal: {error}"))
    };
    // Serde would take an array for a struct.
    if !data.is_object() {
        return Err(illegal("expected an object"));
    }
    T::deserialize(data).map_err(|error| illegal(&error.to_string()))
}

/// Returns a short name for a text, which no other text has.
pub(crate) fn short_hash(text: &str) -> String {
    sha256(text)[..32].to_owned()
}

/// The result of a message that was served, or the reason why it was not.
pub type MessageAnswer = Result<Value, MessageFailure>;

/// The reason why a message was not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct MessageFailure {
    /// A word for programs: `invalid_message`, `no_route`, `not_found`, …
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// True if the same message may be served later.
    pub retryable: bool,
}

impl MessageFailure {
    /// Returns a failure that no repetition mends.
    pub fn lasting(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), retryable: false }
    }

    /// Returns a failure that may pass.
    pub fn passing(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), retryable: true }
    }

    /// Returns the failure of a message that cannot be understood.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::lasting("invalid_message", message)
    }
}

/// Returns the body of a reply: `{"ok": true, "result": …}` or `{"ok": false, "error": …}`.
pub fn answer_body(answer: &MessageAnswer) -> Vec<u8> {
    let body = match answer {
        Ok(result) => json!({ "ok": true, "result": result }),
        Err(error) => json!({ "ok": false, "error": error }),
    };
    body.to_string().into_bytes()
}

/// Parses the body of a reply; `None` if it is none.
pub fn parse_answer(body: &[u8]) -> Option<MessageAnswer> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    match body.get("ok")? {
        Value::Bool(true) => Some(Ok(body["result"].take())),
        Value::Bool(false) => serde_json::from_value(body["error"].take()).ok().map(Err),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(kind: &str, headers: &[(&str, &str)]) -> Properties {
        let own = |text: &str| text.to_owned();
        Properties {
            kind: Some(own(kind)),
            message_id: Some(own("m1")),
            reply_to: Some(own("answers")),
            correlation_id: Some(own("c1")),
            headers: headers.iter().map(|(name, value)| (own(name), own(value))).collect(),
        }
    }

    fn parse(
        body: &[u8],
        properties: &Properties,
        is_direct: bool,
    ) -> Result<AmqpMessage, MessageFailure> {
        let (queue, key) = ("prod_rec.read", "rec.read");
        AmqpMessage::parse(Delivered { queue, key, is_direct, body, properties }, 100)
    }

    #[test]
    fn a_message_survives_its_way_through_a_job_and_a_retry_lane() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let traced = (TraceParent::HEADER, trace);
        let headers = [(ROOT, "r"), (CHAIN, "c"), traced, (ATTEMPT, "2"), (KEY, "log")];
        let given = properties("write", &headers);
        let body = br#"{"template":"Logger","data":{"a":[1]}}"#;
        let message = parse(body, &given, true).expect("legal");
        assert_eq!((message.key.as_str(), message.attempt), ("log", 2));
        assert_eq!((message.root.as_deref(), message.chain.as_deref()), (Some("r"), Some("c")));
        assert_eq!(message.traceparent.as_deref(), Some(trace));
        let text = serde_json::to_string(&message).expect("text");
        assert_eq!(serde_json::from_str::<AmqpMessage>(&text).expect("read"), message);
        let again = parse(&message.body(), &message.properties(), true).expect("legal");
        assert_eq!(again, message);
    }

    #[test]
    fn an_invalid_place_in_a_trace_goes_no_further() {
        for wrong in ["00-1", "\n$(reboot)", &"0".repeat(1000), &"é".repeat(30)] {
            let given = properties("ping", &[(TraceParent::HEADER, wrong)]);
            assert_eq!(parse(b"", &given, false).expect("legal").traceparent, None, "{wrong}");
        }
    }

    #[test]
    fn a_publisher_cannot_give_another_key_by_a_header() {
        let message = parse(b"", &properties("ping", &[(KEY, "adm")]), false).expect("legal");
        assert_eq!(message.key, "rec.read");
        assert_eq!((message.template.as_str(), message.data), ("", Value::Null));
    }

    #[test]
    fn what_is_no_message_is_named_and_never_retried() {
        for (body, kind, reason) in [
            (&b"["[..], "write", "the body is not {"),
            (b"[]", "write", "the body is not {"),
            (
                br#"{"data":{"n":100000000000000000000}}"#,
                "write",
                "the number 100000000000000000000 does not fit into 64 bits",
            ),
            (b"\xff", "write", "the body is not {"),
            (br#"{"template":1}"#, "write", "the body is not {"),
            (b"{}", "", "the property type is missing"),
            (&[b' '; 101], "write", "the body has 101 bytes, more than 100"),
        ] {
            let failure = parse(body, &properties(kind, &[]), false).expect_err(reason);
            assert!(failure.message.starts_with(reason), "{}", failure.message);
            assert!(failure.code == "invalid_message" && !failure.retryable);
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        for answer in [
            Ok(json!({"id": "x"})),
            Ok(Value::Null),
            Err(MessageFailure::passing("unavailable", "redis is away")),
        ] {
            assert_eq!(parse_answer(&answer_body(&answer)), Some(answer));
        }
        for other in [&b"pong"[..], b"{}", br#"{"ok":1}"#, br#"{"ok":false,"error":"no"}"#] {
            assert_eq!(parse_answer(other), None);
        }
    }
}
