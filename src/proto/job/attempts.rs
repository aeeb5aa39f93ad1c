//! One attempt of a job, as the field `attempts` of its hash has it.

use serde::{Deserialize, Serialize};

use crate::proto::word_table::words;

words! {
    /// The kind of an attempt's end.
    #[derive(Deserialize, schemars::JsonSchema)]
    AttemptOutcome;
    /// It has not ended.
    Running = "running",
    /// The job finished.
    Finished = "finished",
    /// The script failed, ran out of time or was stopped.
    Error = "error",
    /// Its actor died, or exceeded the timeout as a foreign actor.
    Crashed = "crashed",
    /// Its actor stopped and gave the job back.
    ReturnedAttempt = "given_back",
    /// Its script asked to be run again later.
    Postponed = "postponed",
}

/// One attempt to run a job. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobAttempt {
    /// Its number. Numbers begin again when a person retries the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Its start.
    pub started_at: String,
    /// The time of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The actor that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The machine of the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The kind of its end.
    pub ended: AttemptOutcome,
    /// The reason why it failed, cut after some hundred bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The script that it ran, if the script was corrected after it; the first 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}
