//! The parameters of a job as values of its script.

use ::rhai::{Dynamic, FLOAT};
use serde_json::Value;

/// Returns a value of JSON as one of Rhai. The parser of a job's settings has bounded its size and its
/// nesting.
pub(super) fn dynamic(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => match number.as_i64() {
            Some(int) => int.into(),
            None => number.as_f64().unwrap_or(FLOAT::NAN).into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => Dynamic::from_array(values.iter().map(dynamic).collect()),
        Value::Object(entries) => {
            let entry = |(name, value): (&String, &Value)| (name.as_str().into(), dynamic(value));
            Dynamic::from_map(entries.iter().map(entry).collect())
        }
    }
}
