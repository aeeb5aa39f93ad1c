//! The request of a running script for the output of another job.

use serde_json::{Value, json};

use super::id::JobId;
use super::output::JobOutput;
use super::status::JobStatus;

pub const ASKED_OUTPUT_BYTES_MAX: u64 = 256 * 1024;
const NAME_BYTES_MAX: usize = 256;

/// The job whose output a script asks for: its id, or its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedOutput(String);

impl AskedOutput {
    pub fn of_json(json: &str) -> Result<Self, String> {
        match serde_json::from_str(json) {
            Ok(Value::String(name)) => Self::named(name),
            _ => Err("the request is no text: give the name or the id of one job".to_owned()),
        }
    }

    pub fn named(name: String) -> Result<Self, String> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(format!("the name of a job has from 1 to {NAME_BYTES_MAX} bytes"));
        }
        Ok(Self(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundOutput {
    Finished(JobId, JobOutput),
    Failed(JobId, String),
    Unended(JobId, JobStatus),
    /// It was deleted, or its retention is over.
    Gone(JobId),
    /// It finished, and its output has more bytes than an answer may have.
    TooLarge(JobId, u64),
    /// No job of the graph and no child has the name or the id.
    Stranger,
    /// The boot does not own the job that asks any more.
    Lost,
}

impl FoundOutput {
    /// Returns the answer as JSON.
    pub fn into_json(self, asked: &AskedOutput) -> Result<String, String> {
        let answer = match self {
            Self::Finished(id, output) => {
                json!({ "id": id.as_str(), "status": "finished", "output": output.into_text() })
            }
            Self::Failed(id, error) => {
                json!({ "id": id.as_str(), "status": "error", "error": error })
            }
            Self::Unended(id, status) => json!({ "id": id.as_str(), "status": status.as_str() }),
            Self::Gone(id) => json!({ "id": id.as_str(), "status": "gone" }),
            Self::TooLarge(id, bytes) => {
                return Err(format!(
                    "the output of job {id} has {bytes} bytes, more than {ASKED_OUTPUT_BYTES_MAX}: a job that waits for it \
                     (`after`) gets it, and so do its files"
                ));
            }
            Self::Stranger => {
                let shown: String =
                    asked.0.chars().take(100).flat_map(char::escape_debug).collect();
                return Err(format!(
                    "`{shown}` is no job that this one waits for, no job of its graph and its caller, and no child"
                ));
            }
            Self::Lost => {
                return Err("the job runs elsewhere: this attempt has lost its lease".to_owned());
            }
        };
        Ok(answer.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_the_name_of_one_job() {
        let read = |json: &str| AskedOutput::of_json(json);
        assert_eq!(read(r#""page-7""#).map(|asked| asked.0).as_deref(), Ok("page-7"));
        let long = format!("\"{}\"", "x".repeat(NAME_BYTES_MAX + 1));
        for wrong in ["7", "null", "[\"a\"]", "{}", "\"\"", "\"a", long.as_str()] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answer_has_an_output_only_if_the_job_finished() {
        let id = || -> JobId { "a".parse().expect("legal") };
        let asked = AskedOutput::named("a\u{1b}".to_owned()).expect("a name");
        let told = |found: FoundOutput| found.into_json(&asked);
        for (found, json) in [
            (
                FoundOutput::Finished(id(), JobOutput::from("7")),
                json!({ "id": "a", "status": "finished", "output": "7" }),
            ),
            (
                FoundOutput::Failed(id(), "no".to_owned()),
                json!({ "id": "a", "status": "error", "error": "no" }),
            ),
            (
                FoundOutput::Unended(id(), JobStatus::Started),
                json!({ "id": "a", "status": "started" }),
            ),
            (FoundOutput::Gone(id()), json!({ "id": "a", "status": "gone" })),
        ] {
            let text = told(found).expect("an answer");
            assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), json);
        }
        assert!(told(FoundOutput::TooLarge(id(), 9)).is_err_and(|why| why.contains("has 9 bytes")));
        assert!(told(FoundOutput::Stranger).is_err_and(|why| why.contains("`a\\u{1b}`")));
        assert!(told(FoundOutput::Lost).is_err());
    }
}
