//! Converts the value of a script's last expression to the job's output.

use std::io;

use ::rhai::{Blob, Dynamic};

use super::json_form::{DEPTH_MAX, JsonForm, JsonRules};
use crate::proto::text::hexadecimal;

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
    String::from_utf8(written.bytes).map_err(serde::ser::Error::custom)
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
