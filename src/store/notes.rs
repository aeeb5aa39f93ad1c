//! Notes of scripts on single jobs, for the log: a sweep changes many jobs at once, and the log has
//! lines of each.

use std::fmt::{self, Display, Formatter};

use redis::{FromRedisValue, ParsingError, Value};

use crate::proto::text::text_of;

/// A note on one job that a sweep changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobNote {
    pub job_id: String,
    pub script_type: String,
    /// The change: a sentence without its subject.
    pub text: String,
}

impl JobNote {
    /// Reads a note as `note_end` of the scripts writes it: `[id, script type, text]`.
    pub(super) fn from_json(note: &str) -> Option<Self> {
        let (job_id, script_type, text) = serde_json::from_str(note).ok()?;
        Some(Self { job_id, script_type, text })
    }
}

impl Display for JobNote {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { job_id, script_type, text } = self;
        write!(out, "job {job_id} of {script_type} {text}")
    }
}

impl FromRedisValue for JobNote {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (id, script_type, text): (Vec<u8>, Vec<u8>, Vec<u8>) =
            FromRedisValue::from_redis_value(value)?;
        let [job_id, script_type, text] = [id, script_type, text].map(|bytes| text_of(&bytes));
        Ok(Self { job_id, script_type, text })
    }
}
