//! Look-ups of log records: the conditions of a message, as a query of objects.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::record::{chain_of, level_of, time_text};
use crate::amqp::message::{MessageFailure, data_of};
use crate::proto::job::parse_timestamp;
use crate::proto::object::{ObjectId, Query};

/// The conditions of a look-up; each that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordQuery {
    pub root: Option<String>,
    pub chain: Option<String>,
    pub level: Option<String>,
    /// The earliest time, in RFC 3339.
    pub since: Option<String>,
    /// The time before which they are.
    pub until: Option<String>,
    pub limit: Option<usize>,
    /// The `next` of the previous page.
    pub after: Option<String>,
    pub newest_first: bool,
}

/// The place before a page: an id, and the field of the order.
type Place = (ObjectId, Map<String, Value>);

impl RecordQuery {
    /// Reads the data of a message.
    pub fn of(data: &Value) -> Result<Self, MessageFailure> {
        if data.is_null() {
            return Ok(Self::default());
        }
        data_of("a look-up of log records", data)
    }

    /// Returns the query of objects, in the order of time.
    pub(super) fn query(&self) -> Result<Query, MessageFailure> {
        let mut conditions = Vec::new();
        for (name, value) in [("root", &self.root), ("chain", &self.chain)] {
            if let Some(value) = value {
                // A legal one has no quote in it.
                chain_of(name, value)?;
                conditions.push(format!("{name} = '{value}'"));
            }
        }
        if let Some(level) = &self.level {
            conditions.push(format!("level = '{}'", level_of(level)?));
        }
        for (name, operator, time) in [("since", ">=", &self.since), ("until", "<", &self.until)] {
            if let Some(time) = time {
                let time = parse_timestamp(time).ok_or_else(|| {
                    MessageFailure::invalid(format!("`{name}` must be a time in RFC 3339"))
                })?;
                conditions.push(format!("time {operator} '{}'", time_text(time)));
            }
        }
        let direction = if self.newest_first { "desc" } else { "asc" };
        let text = format!("{} order by time {direction}", conditions.join(" and "));
        Query::parse(&text).map_err(|error| MessageFailure::invalid(error.to_string()))
    }

    pub(super) fn place(&self) -> Result<Option<Place>, MessageFailure> {
        let Some(after) = &self.after else { return Ok(None) };
        let parsed = after.split_once(' ').and_then(|(time, id)| {
            time.parse::<Timestamp>().ok()?;
            let time = Map::from_iter([("time".to_owned(), time.into())]);
            Some((id.parse().ok()?, time))
        });
        let message = "`after` must be the `next` of a page";
        parsed.map(Some).ok_or_else(|| MessageFailure::invalid(message))
    }
}

/// Returns the cursor after a record.
pub(super) fn cursor(id: &ObjectId, fields: &Map<String, Value>) -> String {
    format!("{} {id}", fields.get("time").and_then(Value::as_str).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::message::page_limit;
    use serde_json::json;

    #[test]
    fn illegal_queries_are_rejected() {
        for (data, expected) in [
            (json!([]), "expected an object"),
            (json!({ "rot": "x" }), "unknown field `rot`"),
            (json!({ "root": "x' or root != '" }), "the root of a log record must be"),
            (json!({ "chain": "x\\" }), "the chain of a log record must be"),
            (json!({ "level": "' or 1 = 1" }), "unknown level"),
            (json!({ "since": "' or time > '" }), "`since` must be a time"),
            (json!({ "until": "now" }), "`until` must be a time"),
            (json!({ "limit": 0 }), "`limit` must be"),
            (json!({ "limit": 1001 }), "`limit` must be"),
            (json!({ "after": "x" }), "`after` must be the `next`"),
        ] {
            let query = RecordQuery::of(&data);
            let outcome = query.and_then(|query| {
                query.query()?;
                page_limit(query.limit)?;
                query.place()
            });
            let failure = outcome.expect_err(&data.to_string());
            assert!(failure.message.contains(expected), "{data}: {failure}");
        }
    }
}
