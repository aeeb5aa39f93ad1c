//! A submission that is repeated with the id and the content of the one before, as after a lost answer, returns
//! that job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use crate::client::{AwaitedJob, ClientError, is_repeated};
use crate::proto::job::{Job, JobId};

/// The job of a submission.
pub(super) struct StoredJob {
    pub(super) id: JobId,
    pub(super) is_new: bool,
    /// The job that was submitted before with its id and content.
    pub(super) before: Option<Box<Job>>,
}

/// The id of a submitted job.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct SubmittedId {
    /// The id of the job.
    pub(crate) id: String,
    /// False if no job was stored: the id names the job that holds its unique key, or one that was submitted before
    /// with this id and the same content.
    pub(crate) created: bool,
}

impl From<StoredJob> for SubmittedId {
    fn from(stored: StoredJob) -> Self {
        Self { id: stored.id.to_string(), created: stored.is_new }
    }
}

/// Returns a submitted job, or the job of its id if that has the same content and the caller may
/// see it. `is_other` is set if it cannot be the same: files were given, which are not compared, or an earlier job of the
/// same submission has the id.
pub(super) async fn stored_or_same(
    context: &CallContext,
    given: Job,
    is_other: bool,
    stored: Result<JobId, ClientError>,
) -> Result<StoredJob, RpcError> {
    let id = match stored {
        Err(ClientError::IdTaken(id)) if !is_other => id,
        other => {
            let id = other?;
            return Ok(StoredJob { is_new: id == given.id, id, before: None });
        }
    };
    match context.visible(&id).await {
        // A token that submits alone learns nothing of a job of another, whose name it gives.
        Ok(known)
            if (context.reads() || known.spec.caller_id == context.caller.name)
                && is_repeated(&known, given) =>
        {
            Ok(StoredJob { id, is_new: false, before: Some(Box::new(known)) })
        }
        _ => Err(ClientError::IdTaken(id).into()),
    }
}

/// The same for a job whose end the caller waits for. Returns whether it is new, too.
pub(super) async fn awaited_or_same(
    context: &CallContext,
    given: Job,
    has_files: bool,
    stored: Result<AwaitedJob, ClientError>,
) -> Result<(AwaitedJob, bool), RpcError> {
    match stored {
        Ok(job) => {
            let is_new = job.id == given.id;
            Ok((job, is_new))
        }
        Err(error) => {
            let known = stored_or_same(context, given, has_files, Err(error)).await?;
            Ok((known.id.into(), false))
        }
    }
}
