//! Values as JSON, written without a tree of JSON between, and the value of a script's last expression as the job's output.

use std::io;

use ::rhai::{Array, Blob, Dynamic, ImmutableString, Map};
use serde::ser::{Error, Serialize, Serializer};

use crate::proto::text::hexadecimal;

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

/// Maps the Rust name of a type to the name that scripts know.
type Names<'a> = &'a dyn Fn(&'static str) -> String;

/// Returns the value as text: unit as an empty text, a string unchanged, a map or an array as JSON, a
/// blob in hexadecimal digits, anything else as `print` shows it. A value without a text of its own
/// becomes the name of its type; `names` maps it to the name that scripts know.
/// Fails with the name of the exceeded limit, if the text is longer than `bytes_max` or nests too deeply.
pub(crate) fn text(value: &Dynamic, bytes_max: u64, names: Names<'_>) -> Result<String, String> {
    let too_large = || format!("output too large: more than {bytes_max} bytes");
    // A value that a closure captured is behind a lock.
    let value = &value.flatten_clone();
    if value.is_map() || value.is_array() {
        let json = json(value, bytes_max, names);
        return json.map_err(|why| if why.is_io() { too_large() } else { why.to_string() });
    }
    if value.as_immutable_string_ref().is_ok_and(|text| text.len() as u64 > bytes_max) {
        return Err(too_large());
    }
    let text = plain(value, names);
    if text.len() as u64 > bytes_max { Err(too_large()) } else { Ok(text) }
}

fn json(value: &Dynamic, bytes_max: u64, names: Names<'_>) -> serde_json::Result<String> {
    let too_deep = &format!("output too deep: more than {DEPTH_MAX} levels");
    let other = &|value: &Dynamic, _: &str| Ok((!value.is_float()).then(|| plain(value, names)));
    let form = JsonForm { value, field: "", depth: 0, rules: JsonRules { too_deep, other } };
    let mut written = BoundedWriter { bytes: Vec::new(), bytes_max };
    serde_json::to_writer(&mut written, &form)?;
    String::from_utf8(written.bytes).map_err(Error::custom)
}

fn plain(value: &Dynamic, names: Names<'_>) -> String {
    if let Some(blob) = value.read_lock::<Blob>() {
        return hexadecimal(&blob);
    }
    let (text, type_name) = (value.to_string(), value.type_name());
    if text == type_name { names(type_name) } else { text }
}

struct BoundedWriter {
    bytes: Vec<u8>,
    bytes_max: u64,
}

impl io::Write for BoundedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
