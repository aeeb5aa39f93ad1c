//! Converts the value of a script's last expression to the job's output.

use std::fmt::Write;

use ::rhai::{Array, Blob, Dynamic, FLOAT, INT, ImmutableString, Map};

/// The nesting limit of arrays and maps in the output: parsers of JSON reject deeper ones.
const DEPTH_MAX: usize = 127;

/// Returns the value as text: unit as an empty text, a string unchanged, a map or an array as JSON, a
/// blob in hexadecimal digits, anything else as `print` shows it. A value without a text of its own
/// becomes the name of its type; `names` maps it to the name that scripts know.
///
/// # Errors
/// The name of the exceeded limit, if the text is longer than `bytes_max` or nests too deeply.
pub(crate) fn text(value: &Dynamic, bytes_max: u64, names: Names<'_>) -> Result<String, String> {
    let mut json = OutputWriter { text: String::new(), bytes_max, names };
    // A value that a closure captured is behind a lock.
    let value = &value.flatten_clone();
    if value.is_map() || value.is_array() {
        json.value(value, 0)?;
    } else if value.is_blob() {
        json.blob(value);
    } else if let Ok(text) = value.as_immutable_string_ref() {
        json.fits(text.len())?;
        json.text.push_str(&text);
    } else {
        json.text.push_str(&json.plain(value));
    }
    json.fits(0)?;
    Ok(json.text)
}

/// Maps the Rust name of a type to the name that scripts know.
type Names<'a> = &'a dyn Fn(&'static str) -> String;

struct OutputWriter<'a> {
    text: String,
    bytes_max: u64,
    names: Names<'a>,
}

impl OutputWriter<'_> {
    fn value(&mut self, value: &Dynamic, nesting: usize) -> Result<(), String> {
        if nesting > DEPTH_MAX {
            return Err(format!("output too deep: more than {DEPTH_MAX} levels"));
        }
        self.fits(0)?;
        if let Some(array) = value.read_lock::<Array>() {
            self.text.push('[');
            for (index, element) in array.iter().enumerate() {
                self.comma(index);
                self.value(element, nesting + 1)?;
            }
            self.text.push(']');
        } else if let Some(map) = value.read_lock::<Map>() {
            self.text.push('{');
            for (index, (name, element)) in map.iter().enumerate() {
                self.comma(index);
                self.string(name)?;
                self.text.push(':');
                self.value(element, nesting + 1)?;
            }
            self.text.push('}');
        } else {
            self.leaf(value)?;
        }
        Ok(())
    }

    fn leaf(&mut self, value: &Dynamic) -> Result<(), String> {
        if value.is_unit() {
            self.text.push_str("null");
        } else if let Some(text) = value.read_lock::<ImmutableString>() {
            self.string(&text)?;
        } else if let Ok(number) = value.as_int() {
            self.int(number);
        } else if let Ok(number) = value.as_float() {
            self.float(number);
        } else if let Ok(truth) = value.as_bool() {
            let _ = write!(self.text, "{truth}");
        } else if value.is_blob() {
            self.text.push('"');
            self.blob(value);
            self.text.push('"');
        } else {
            self.string(&self.plain(value))?;
        }
        Ok(())
    }

    fn plain(&self, value: &Dynamic) -> String {
        let (text, type_name) = (value.to_string(), value.type_name());
        if text == type_name { (self.names)(type_name) } else { text }
    }

    fn int(&mut self, number: INT) {
        let _ = write!(self.text, "{number}");
    }

    /// JSON has no infinite numbers and no NaN.
    fn float(&mut self, number: FLOAT) {
        match serde_json::Number::from_f64(number) {
            Some(number) => {
                let _ = write!(self.text, "{number}");
            }
            None => self.text.push_str("null"),
        }
    }

    fn string(&mut self, text: &str) -> Result<(), String> {
        self.fits(text.len())?;
        let quoted = serde_json::to_string(text).map_err(|error| format!("output: {error}"))?;
        self.text.push_str(&quoted);
        Ok(())
    }

    fn blob(&mut self, value: &Dynamic) {
        for byte in value.read_lock::<Blob>().iter().flat_map(|blob| blob.iter()) {
            let _ = write!(self.text, "{byte:02x}");
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.text.push(',');
        }
    }

    fn fits(&self, more: usize) -> Result<(), String> {
        if (self.text.len() + more) as u64 > self.bytes_max {
            return Err(format!("output too large: more than {} bytes", self.bytes_max));
        }
        Ok(())
    }
}
