//! Values to JSON.

use ::rhai::{Array, Dynamic, ImmutableString, Map};
use serde_json::{Number, Value};

use super::budget::nests;

/// Converts a value to a JSON text.
pub(super) fn text(value: &Dynamic) -> Result<String, String> {
    written(&to_json(value)?, false, u64::MAX)
}

/// Converts a value to JSON. A value without a JSON form becomes its text.
pub(in crate::rhai) fn to_json(value: &Dynamic) -> Result<Value, String> {
    nested(value, 0)
}

/// Returns JSON as a text of at most `bytes_max`.
pub(super) fn written(value: &Value, pretty: bool, bytes_max: u64) -> Result<String, String> {
    let text =
        if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    let text = text.map_err(|error| error.to_string())?;
    if text.len() as u64 > bytes_max {
        return Err(format!(
            "the result is longer than {bytes_max} bytes, the limit \
             type.NAME.limits.string_size_max"
        ));
    }
    Ok(text)
}

fn nested(value: &Dynamic, depth: usize) -> Result<Value, String> {
    nests(depth)?;
    // A value that a closure captured is behind a lock.
    if value.is_shared() {
        return nested(&value.flatten_clone(), depth);
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().map(|element| nested(element, depth + 1)).collect();
    }
    if let Some(map) = value.read_lock::<Map>() {
        return of_map(&map, depth);
    }
    Ok(if value.is_unit() {
        Value::Null
    } else if let Some(text) = value.read_lock::<ImmutableString>() {
        Value::String(text.to_string())
    } else if let Ok(number) = value.as_int() {
        number.into()
    } else if let Ok(number) = value.as_float() {
        Number::from_f64(number).map_or(Value::Null, Value::Number)
    } else if let Ok(truth) = value.as_bool() {
        truth.into()
    } else {
        Value::String(value.to_string())
    })
}

/// Converts a map at a depth to JSON.
pub(super) fn of_map(map: &Map, depth: usize) -> Result<Value, String> {
    let entries = map.iter();
    entries.map(|(name, element)| Ok((name.to_string(), nested(element, depth + 1)?))).collect()
}
