//! Conversion between JSON and values.

use ::rhai::{Array, Dynamic, INT, ImmutableString, Map};
use serde_json::{Number, Value};

use super::context::{CallResult, SalJob, operation};
use crate::engine::rhai::functions::Functions;

/// The nesting limit of a value: parsers of JSON reject deeper ones.
const DEPTH_MAX: usize = 127;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("json", "Conversion between JSON and values.");
    functions
        .add(
            "json_parse",
            ["text"],
            "Parses a JSON text: null becomes (), an object a map.",
            r#"
let data = json_parse(`{"name": "web", "ports": [80, 443]}`);
data.ports[1]
// → 443"#,
            |text: &str| {
                operation("json_parse", "", |job| {
                    let value: Value =
                        serde_json::from_str(text).map_err(|error| error.to_string())?;
                    from_json(job, value)
                })
            },
        )
        .returns("any");
    functions.add(
        "json_encode",
        ["value"],
        "Converts any value to JSON, in one line.",
        r#"
json_encode(#{name: "web", ports: [80, 443], note: ()})
// → {"name":"web","note":null,"ports":[80,443]}"#,
        |value: Dynamic| operation("json_encode", "", |job| encode(job, &value, false)),
    );
    functions.add(
        "json_encode_pretty",
        ["value"],
        "Converts any value to JSON, indented over several lines.",
        r#"
file_write("web.json", json_encode_pretty(#{ports: [80, 443]}));
json_parse(file_read("web.json")).ports.len
// → 2"#,
        |value: Dynamic| operation("json_encode_pretty", "", |job| encode(job, &value, true)),
    );
}

/// Converts a value to JSON. A value without a JSON form becomes its text.
pub(super) fn to_json(value: &Dynamic) -> CallResult<Value> {
    nested(value, 0)
}

fn nested(value: &Dynamic, nesting: usize) -> CallResult<Value> {
    if nesting > DEPTH_MAX {
        return Err(format!("the value is nested deeper than {DEPTH_MAX} levels").into());
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().map(|element| nested(element, nesting + 1)).collect();
    }
    if let Some(map) = value.read_lock::<Map>() {
        let entries = map.iter();
        return entries
            .map(|(name, element)| Ok((name.to_string(), nested(element, nesting + 1)?)))
            .collect();
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

/// Converts JSON to a value within the limits of arrays and maps; Rhai checks only its own values.
fn from_json(job: SalJob<'_>, value: Value) -> CallResult<Dynamic> {
    Ok(match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(truth) => truth.into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => INT::into(number),
            (None, Some(number)) => number.into(),
            (None, None) => number.to_string().into(),
        },
        Value::String(text) => text.into(),
        Value::Array(elements) => {
            fits(job, elements.len())?;
            let elements = elements.into_iter().map(|element| from_json(job, element));
            elements.collect::<CallResult<Array>>()?.into()
        }
        Value::Object(entries) => {
            fits(job, entries.len())?;
            let entries = entries.into_iter();
            let entries =
                entries.map(|(name, element)| Ok((name.into(), from_json(job, element)?)));
            entries.collect::<CallResult<Map>>()?.into()
        }
    })
}

fn fits(job: SalJob<'_>, elements: usize) -> CallResult<()> {
    if elements <= job.settings.array_len_max {
        return Ok(());
    }
    Err(format!("an array or object has more than {} elements", job.settings.array_len_max).into())
}

fn encode(job: SalJob<'_>, value: &Dynamic, pretty: bool) -> CallResult<String> {
    let value = to_json(&value.flatten_clone())?;
    let text =
        if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
    let text = text.map_err(|error| error.to_string())?;
    let bytes_max = job.settings.bytes_max;
    if text.len() as u64 > bytes_max {
        return Err(format!("the result is longer than {bytes_max} bytes").into());
    }
    Ok(text)
}
