//! Values as JSON, written without a tree of JSON between.

use ::rhai::{Array, Dynamic, ImmutableString, Map};
use serde::ser::{Error, Serialize, Serializer};

/// The nesting limit of a value: parsers of JSON reject deeper ones.
pub(crate) const DEPTH_MAX: usize = 127;

#[derive(Clone, Copy)]
pub(crate) struct JsonForm<'a> {
    pub(crate) value: &'a Dynamic,
    pub(crate) field: &'a str,
    pub(crate) depth: usize,
    pub(crate) rules: JsonRules<'a>,
}

/// The text of a value, `None` for null, or why it has none.
pub(crate) type OtherText = Result<Option<String>, String>;

#[derive(Clone, Copy)]
pub(crate) struct JsonRules<'a> {
    /// The error of a value that is nested deeper than [`DEPTH_MAX`].
    pub(crate) too_deep: &'a str,
    /// Returns the text of any other value, by the name of its field; `None` for null.
    pub(crate) other: &'a dyn Fn(&Dynamic, &str) -> OtherText,
}

impl Serialize for JsonForm<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { value, field, depth, rules } = *self;
        if depth > DEPTH_MAX {
            return Err(S::Error::custom(rules.too_deep));
        }
        // A value that a closure captured is behind a lock.
        if value.is_shared() {
            return JsonForm { value: &value.flatten_clone(), ..*self }.serialize(to);
        }
        let depth = depth + 1;
        if let Some(array) = value.read_lock::<Array>() {
            return to.collect_seq(array.iter().map(|value| JsonForm { value, depth, ..*self }));
        }
        if let Some(map) = value.read_lock::<Map>() {
            let entries = map.iter();
            return to.collect_map(
                entries.map(|(field, value)| {
                    (field.as_str(), JsonForm { value, field, depth, rules })
                }),
            );
        }
        if let Some(text) = value.read_lock::<ImmutableString>() {
            to.serialize_str(&text)
        } else if let Ok(number) = value.as_int() {
            to.serialize_i64(number)
        } else if let Ok(truth) = value.as_bool() {
            to.serialize_bool(truth)
        } else if let Some(number) = value.as_float().ok().filter(|number| number.is_finite()) {
            to.serialize_f64(number)
        } else if value.is_unit() {
            to.serialize_unit()
        } else {
            match (rules.other)(value, field).map_err(S::Error::custom)? {
                Some(text) => to.serialize_str(&text),
                None => to.serialize_unit(),
            }
        }
    }
}
