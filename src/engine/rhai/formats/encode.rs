//! Values to JSON. A value without a form in JSON becomes its text, and a float that is not finite null.

use ::rhai::Dynamic;
use serde_json::Value;

use super::budget::TOO_DEEP;
use crate::engine::rhai::runtime::json_form::{JsonForm, JsonRules};

pub(super) fn text(value: &Dynamic) -> Result<String, String> {
    written(value, false, u64::MAX)
}

pub(in crate::rhai) fn to_json(value: &Dynamic) -> Result<Value, String> {
    serde_json::to_value(form(value)).map_err(|error| error.to_string())
}

/// Converts a value to a JSON text of at most `bytes_max`.
pub(super) fn written(value: &Dynamic, pretty: bool, bytes_max: u64) -> Result<String, String> {
    let form = form(value);
    let text =
        if pretty { serde_json::to_string_pretty(&form) } else { serde_json::to_string(&form) };
    let text = text.map_err(|error| error.to_string())?;
    if text.len() as u64 > bytes_max {
        return Err(format!(
            "the result is longer than {bytes_max} bytes, the limit \
             type.NAME.limits.string_size_max"
        ));
    }
    Ok(text)
}

fn form(value: &Dynamic) -> JsonForm<'_> {
    let other = &|value: &Dynamic, _: &str| Ok((!value.is_float()).then(|| value.to_string()));
    JsonForm { value, field: "", depth: 0, rules: JsonRules { too_deep: TOO_DEEP, other } }
}
