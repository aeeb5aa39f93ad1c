//! Sessions: jobs whose script serves calls, one after the other. A call waits in the hash of the job while it is
//! served, and its answer is a reply. Pure.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::id::JobId;
use super::output::JobOutput;

/// The most bytes of the script of a call.
pub const CALL_BYTES_MAX: usize = 128 * 1024;
/// The most bytes of the output of a call; a driver cuts the rest off at its start.
pub const CALL_OUTPUT_BYTES_MAX: usize = 128 * 1024;
/// The most bytes of the result of a call, as JSON.
const RESULT_BYTES_MAX: usize = 128 * 1024;
/// The longest reason for the end of a session.
const REASON_CHARS_MAX: usize = 200;

/// The request of a script for its next call, with what became of the one before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskedCall {
    /// The answer to the call before; `None` with the first request.
    pub answer: Option<SessionAnswer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionAnswer {
    /// The exit code of the call: 0 if it succeeded.
    pub exit_code: i32,
    /// The text that it wrote to standard output and standard error.
    #[serde(with = "base64_text")]
    pub output: Vec<u8>,
    /// The bytes that were cut off at the start of the output.
    pub truncated: u64,
    /// The value that it reported by `output`, as text: a string as it is, any other value as JSON.
    pub result: Option<String>,
}

/// The member `next` of a line, if it is an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidAnswer {
    exit: i32,
    #[serde(default)]
    output: String,
    #[serde(default)]
    truncated: u64,
}

mod base64_text {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        BASE64_STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}

impl AskedCall {
    /// Reads a request: null, or the answer to the call before. `result` is what the script reported by `output` since.
    pub fn of_json(json: &str, result: Option<String>) -> Result<Self, String> {
        let said: Option<SaidAnswer> =
            serde_json::from_str(json).map_err(|error| format!("next: {error}"))?;
        let Some(said) = said else { return Ok(Self::default()) };
        let output = BASE64_STANDARD.decode(said.output.trim());
        let output = output.map_err(|_| "next: `output` is not in Base64".to_owned())?;
        let result_bytes = result.as_ref().map_or(0, String::len);
        for (what, bytes, most) in [
            ("output", output.len(), CALL_OUTPUT_BYTES_MAX),
            ("result", result_bytes, RESULT_BYTES_MAX),
        ] {
            if bytes > most {
                return Err(format!("next: the {what} has {bytes} bytes, more than {most}"));
            }
        }
        let SaidAnswer { exit: exit_code, truncated, .. } = said;
        Ok(Self { answer: Some(SessionAnswer { exit_code, output, truncated, result }) })
    }

    pub fn too_large() -> String {
        "next: the line is too long".to_owned()
    }
}

impl SessionAnswer {
    /// Returns the answer with other texts in it. An output that is not UTF-8 stays as it is.
    #[must_use]
    pub fn with_texts(self, change: impl Fn(&str) -> String) -> Self {
        let output = match JobOutput::from(self.output) {
            JobOutput::Text(text) => change(&text).into_bytes(),
            JobOutput::Bytes(bytes) => bytes,
        };
        Self { output, result: self.result.as_deref().map(change), ..self }
    }

    /// Reads a reply; `None` if another program wrote something else there.
    pub fn of_reply(reply: &[u8]) -> Option<Self> {
        serde_json::from_slice(reply).ok()
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A call of a session, as it stands in the hash of its job while it is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCall {
    pub id: JobId,
    #[serde(flatten)]
    pub kind: CallKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CallKind {
    Run { script: String, timeout_ms: u64 },
    End { end: String },
}

impl SessionCall {
    pub fn of_script(script: String, timeout: Duration) -> Result<Self, String> {
        if script.len() > CALL_BYTES_MAX {
            return Err(format!("has {} bytes, more than {CALL_BYTES_MAX}", script.len()));
        }
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        Ok(Self { id: JobId::random(), kind: CallKind::Run { script, timeout_ms } })
    }

    pub fn of_end(why: &str) -> Self {
        Self { id: JobId::random(), kind: CallKind::End { end: why.to_owned() } }
    }

    /// Reads the field of the hash; `None` if another program wrote something else there.
    pub fn of_field(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the call as its script gets it, in one line.
    pub fn for_script(&self) -> String {
        match &self.kind {
            CallKind::Run { script, timeout_ms } => {
                let script = BASE64_STANDARD.encode(script);
                let whole = timeout_ms.div_ceil(1000);
                // A shell cuts it apart: the script comes first, the time is a whole number.
                format!("{{\"script\":\"{script}\",\"timeout\":{whole}}}")
            }
            CallKind::End { end } => end_for_script(end),
        }
    }
}

/// Returns the end of a session as its script gets it in place of a call.
pub fn end_for_script(why: &str) -> String {
    let why: String = why.chars().filter(|one| !one.is_control()).take(REASON_CHARS_MAX).collect();
    json!({ "end": why }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_has_no_answer_or_one_within_its_bounds() {
        let of = |json: &str| AskedCall::of_json(json, None);
        assert_eq!(of("null"), Ok(AskedCall::default()));
        let said = r#"{"exit": 3, "output": "aGkK", "truncated": 7}"#;
        let answer = AskedCall::of_json(said, Some("[1]".to_owned())).expect("legal").answer;
        let answer = answer.expect("an answer");
        assert_eq!((answer.exit_code, &*answer.output, answer.truncated), (3, &b"hi\n"[..], 7));
        assert_eq!(SessionAnswer::of_reply(answer.to_json().as_bytes()), Some(answer.clone()));
        let hidden = answer.with_texts(|text| text.replace("hi", "***"));
        assert_eq!(hidden.output, b"***\n");
        let of_bytes = |bytes: usize| {
            of(&format!(r#"{{"exit": 0, "output": "{}"}}"#, BASE64_STANDARD.encode(vec![0; bytes])))
        };
        assert!(of_bytes(CALL_OUTPUT_BYTES_MAX).is_ok());
        assert!(of_bytes(CALL_OUTPUT_BYTES_MAX + 1).is_err());
        let large = AskedCall::of_json(r#"{"exit": 0}"#, Some("x".repeat(RESULT_BYTES_MAX + 1)));
        assert!(large.is_err_and(|why| why.contains("the result has")));
        for wrong in [
            "",
            "{}",
            "7",
            "[]",
            "true",
            r#"{"exit": "0"}"#,
            r#"{"exit": 1e9}"#,
            r#"{"exit": 99999999999}"#,
            r#"{"exit": 0, "output": "?"}"#,
            r#"{"exit": 0, "output": 7}"#,
            r#"{"exit": 0, "truncated": -1}"#,
            r#"{"exit": 0, "id": "victim"}"#,
            r#"{"exit": 0}{"exit": 0}"#,
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn call_is_one_line_that_a_shell_can_cut_apart() {
        let second = Duration::from_millis(900);
        let call = SessionCall::of_script("echo \"\n".to_owned(), second).expect("legal");
        assert_eq!(call.for_script(), r#"{"script":"ZWNobyAiCg==","timeout":1}"#);
        assert_eq!(SessionCall::of_field(&call.to_json()), Some(call));
        let end = SessionCall::of_end("ended by ann\n\u{1b}");
        assert_eq!(end.for_script(), r#"{"end":"ended by ann"}"#);
        assert_eq!(SessionCall::of_field(&end.to_json()), Some(end));
        let large = "x".repeat(CALL_BYTES_MAX + 1);
        assert!(SessionCall::of_script(large, second).is_err());
        for foreign in ["", "7", "{}", r#"{"id": "a"}"#, r#"{"id": "../a", "end": ""}"#] {
            assert_eq!(SessionCall::of_field(foreign), None, "{foreign}");
        }
    }
}
