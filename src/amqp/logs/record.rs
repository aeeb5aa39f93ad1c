//! Log records: the data of the template `Logger`.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::amqp::message::MessageFailure;
use crate::proto::object::{OWN_FIELDS, ObjectId};
use crate::proto::text::shown;

/// The levels, the least severe first.
pub const LEVELS: [&str; 7] = ["trace", "debug", "info", "notice", "warning", "error", "fatal"];
/// Another spelling of `warning`.
const WARN: &str = "warn";
/// The longest root or chain.
const CHAIN_BYTES_MAX: usize = 128;

#[derive(Debug, Clone, PartialEq)]
pub struct LogRecord {
    /// Its id: a record that is delivered twice is stored once.
    pub id: ObjectId,
    /// Its fields. `time` and `level` are always among them.
    pub fields: Map<String, Value>,
}

/// The parts of a record that its message has beside its data.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordProperties<'a> {
    pub id: Option<&'a str>,
    pub root: Option<&'a str>,
    pub chain: Option<&'a str>,
}

impl LogRecord {
    /// Returns a field that is text; an empty one if it has none.
    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Makes a record of the data of a message. Missing parts come from beside it; the
    /// time from `now`, the level is `info`, the id is random.
    pub fn of(
        data: &Value,
        beside: RecordProperties<'_>,
        now: Timestamp,
    ) -> Result<Self, MessageFailure> {
        let Some(given) = data.as_object() else {
            return Err(MessageFailure::invalid("a log record must be an object"));
        };
        let mut fields = given.clone();
        let id = match fields.remove("id") {
            Some(Value::String(id)) => id,
            Some(_) => return Err(MessageFailure::invalid("the id of a log record must be text")),
            None => beside.id.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned),
        };
        let id = id.parse().map_err(|error| {
            MessageFailure::invalid(format!("the id of a log record is illegal: {error}"))
        })?;
        // The store sets these itself.
        for own in OWN_FIELDS {
            fields.remove(own);
        }
        let time = match fields.get("time") {
            None | Some(Value::Null) => now,
            Some(time) => time.as_str().and_then(|time| time.parse().ok()).ok_or_else(|| {
                MessageFailure::invalid("the time of a log record must be a time in RFC 3339")
            })?,
        };
        fields.insert("time".to_owned(), time_text(time).into());
        let level = match fields.get("level") {
            None | Some(Value::Null) => "info".to_owned(),
            Some(level) => level_of(level.as_str().unwrap_or_default())?.to_owned(),
        };
        fields.insert("level".to_owned(), level.into());
        for (name, beside) in [("root", beside.root), ("chain", beside.chain)] {
            match (fields.get(name), beside) {
                (None | Some(Value::Null), None) => drop(fields.remove(name)),
                (None | Some(Value::Null), Some(beside)) => {
                    chain_of(name, beside)?;
                    fields.insert(name.to_owned(), beside.into());
                }
                (Some(given), _) => chain_of(name, given.as_str().unwrap_or_default())?,
            }
        }
        Ok(Self { id, fields })
    }

    /// Returns its fields and its id in one object: the data of a message.
    pub fn document(&self) -> Value {
        let mut document = self.fields.clone();
        document.insert("id".to_owned(), self.id.as_str().into());
        Value::Object(document)
    }
}

/// Returns a level in its own spelling.
pub(super) fn level_of(text: &str) -> Result<&'static str, MessageFailure> {
    let text = if text.eq_ignore_ascii_case(WARN) { "warning" } else { text };
    let found = LEVELS.into_iter().find(|known| known.eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let known = LEVELS.join(", ");
        MessageFailure::invalid(format!("unknown level `{}`; known are {known}", shown(text)))
    })
}

/// Checks a root or a chain.
pub(super) fn chain_of(name: &str, text: &str) -> Result<(), MessageFailure> {
    let is_legal = (1..=CHAIN_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"'\"\\".contains(&byte));
    let message = || {
        format!(
            "the {name} of a log record must be 1 to {CHAIN_BYTES_MAX} letters, digits and signs, as a GUID is"
        )
    };
    if is_legal { Ok(()) } else { Err(MessageFailure::invalid(message())) }
}

/// Writes a time so that texts sort as their times do.
pub(super) fn time_text(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("legal")
    }

    #[test]
    fn a_record_takes_from_its_message_what_its_data_does_not_have() {
        let beside = RecordProperties { id: Some("m1"), root: Some("r"), chain: Some("c") };
        let record = LogRecord::of(&json!({ "message": "x" }), beside, now()).expect("legal");
        assert_eq!(
            record.document(),
            json!({
                "id": "m1", "message": "x", "root": "r", "chain": "c", "level": "info",
                "time": "2027-01-15T08:00:00.000000Z",
            })
        );
        let data = json!({
            "id": "own", "root": "r2", "chain": "c2", "level": "WARN", "version": 7,
            "time": "2026-01-31T11:00:00+01:00",
        });
        let record = LogRecord::of(&data, beside, now()).expect("legal");
        assert_eq!(
            record.document(),
            json!({
                "id": "own", "root": "r2", "chain": "c2", "level": "warning",
                "time": "2026-01-31T10:00:00.000000Z",
            })
        );
    }

    #[test]
    fn a_record_can_be_made_of_its_own_document() {
        let record = LogRecord::of(&json!({ "root": "r" }), RecordProperties::default(), now());
        let record = record.expect("legal");
        let later = Timestamp::from_second(1_900_000_000).expect("legal");
        assert_eq!(
            LogRecord::of(&record.document(), RecordProperties::default(), later),
            Ok(record)
        );
    }

    #[test]
    fn illegal_records_are_rejected() {
        for (data, expected) in [
            (json!("text"), "must be an object"),
            (json!({ "id": 1 }), "the id of a log record must be text"),
            (json!({ "id": "a\nb" }), "the id of a log record is illegal"),
            (json!({ "time": 1 }), "must be a time in RFC 3339"),
            (json!({ "time": "yesterday" }), "must be a time in RFC 3339"),
            (json!({ "level": "loud" }), "unknown level `loud`; known are trace, debug"),
            (json!({ "level": 3 }), "unknown level"),
            (json!({ "root": "" }), "the root of a log record must be"),
            (json!({ "chain": "a' or chain = 'b" }), "the chain of a log record must be"),
            (json!({ "chain": ["a"] }), "the chain of a log record must be"),
        ] {
            let failure =
                LogRecord::of(&data, RecordProperties::default(), now()).expect_err("illegal");
            assert!(failure.message.contains(expected), "{data}: {failure}");
        }
    }
}
