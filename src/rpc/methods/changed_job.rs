//! The result of methods that change one job.

use schemars::JsonSchema;
use serde::Serialize;

use crate::client::ChangedJob;
use crate::proto::job::JobId;

/// A job and the change.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JobChangeResult {
    /// The id of the job.
    pub(crate) id: String,
    /// Its new state, or the change: `stopped`, `told to stop`, `deleted`; of an event `told` or `kept`.
    pub(crate) result: String,
    /// After a stop with `children`: the jobs that were stopped or told to stop, the named job first unless it had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) jobs: Option<Vec<ResultOfJob>>,
    /// After an edit: when the job may start, if it waits for a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_at: Option<String>,
    /// After an event that is kept: what the job waits for now, if its script waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waits_for: Option<String>,
}

impl JobChangeResult {
    pub(super) fn new(id: &JobId, result: &str) -> Self {
        let (id, result) = (id.to_string(), result.to_owned());
        Self { id, result, jobs: None, run_at: None, waits_for: None }
    }
}

/// A job that was changed with others, or stays as it is.
#[derive(Serialize, JsonSchema)]
pub(super) struct ResultOfJob {
    /// The id of the job.
    id: String,
    /// Its new state, or the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// The reason why it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl From<ChangedJob> for ResultOfJob {
    fn from((id, changed): ChangedJob) -> Self {
        let (result, problem) = match changed {
            Ok(word) => (Some(word), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { id: id.to_string(), result, problem }
    }
}
