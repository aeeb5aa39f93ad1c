//! The output of a job: text, or bytes that are not UTF-8; and the format of the reply that has it.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::proto::text::text_of;
use crate::proto::word_table::words;

/// The output of a finished job, as the script wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutput {
    Text(String),
    Bytes(Vec<u8>),
}

/// The member of JSON that names the encoding of bytes.
const ENCODING: &str = "output_encoding";

impl JobOutput {
    /// The bytes that the hash holds.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Returns the text, or the Base64 of bytes.
    pub fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Bytes(bytes) => BASE64_STANDARD.encode(bytes),
        }
    }

    /// Returns a JSON object with `output` and, for bytes, `output_encoding`.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        self.write(&mut object);
        Value::Object(object)
    }

    /// Adds the members of [`JobOutput::to_json`].
    pub(super) fn write(&self, object: &mut Map<String, Value>) {
        object.insert("output".to_owned(), self.clone().into_text().into());
        if let Self::Bytes(_) = self {
            object.insert(ENCODING.to_owned(), "base64".into());
        }
    }

    /// Reads the members of JSON. A foreign actor may write its output as a JSON value.
    pub fn read(object: &Value) -> Self {
        let text = match object.get("output") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        if object.get(ENCODING).is_some_and(|encoding| encoding == "base64")
            && let Ok(bytes) = BASE64_STANDARD.decode(&text)
        {
            return bytes.into();
        }
        Self::Text(text)
    }
}

impl Default for JobOutput {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<Vec<u8>> for JobOutput {
    fn from(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|not| Self::Bytes(not.into_bytes()), Self::Text)
    }
}

impl From<String> for JobOutput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for JobOutput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl PartialEq<&str> for JobOutput {
    fn eq(&self, text: &&str) -> bool {
        self.as_bytes() == text.as_bytes()
    }
}

/// Written as text, with bytes that are not UTF-8 as `\xNN`.
impl fmt::Display for JobOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(self.as_bytes()))
    }
}

words! {
    /// The format of the reply that is pushed when a job ends.
    #[derive(Default, Deserialize)]
    ReplyFormat, "reply_format", "json or plain", any_case;
    /// An object with the job's id, its status, and its output or error.
    #[default]
    Json = "json",
    /// The output, or the error, and nothing else.
    Plain = "plain",
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_base64_in_json_and_text_is_itself() {
        let json = |output: JobOutput| output.to_json().to_string();
        assert_eq!(json("é".into()), r#"{"output":"é"}"#);
        assert_eq!(
            json(vec![b'a', 0xff, b'\n'].into()),
            r#"{"output":"Yf8K","output_encoding":"base64"}"#
        );
        assert_eq!(JobOutput::from(vec![b'a', 0xff]).to_string(), "a\\xff");
    }

    proptest! {
        #[test]
        fn any_bytes_read_back_from_json(bytes: Vec<u8>) {
            let output = JobOutput::from(bytes.clone());
            let read = JobOutput::read(&output.to_json());
            prop_assert_eq!(read.as_bytes(), bytes.as_slice());
            prop_assert_eq!(read, output);
        }
    }
}
