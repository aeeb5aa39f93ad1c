//! The result of methods that change one job.

use schemars::JsonSchema;
use serde::Serialize;

use crate::proto::job::JobId;

/// A job and the change.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JobChangeResult {
    /// The id of the job.
    pub(crate) id: String,
    /// Its new state, or the change: `stopped`, `told to stop`, `deleted`; of an event `told` or `kept`.
    pub(crate) result: String,
}

impl JobChangeResult {
    pub(super) fn new(id: &JobId, result: &str) -> Self {
        Self { id: id.to_string(), result: result.to_string() }
    }
}
