//! A submission that is repeated with the id and the content of the one before, as after a lost answer, returns
//! that job.

use super::super::error::RpcError;
use super::super::method::CallContext;
use crate::client::ClientError;
use crate::proto::job::{Job, JobId};

/// Returns the id of a submitted job, or of the job of its id if that has the same content and the caller may
/// see it. `has_files` is set if files were given, which are not compared.
pub(super) async fn stored_or_same(
    context: &CallContext,
    given: Job,
    has_files: bool,
    stored: Result<JobId, ClientError>,
) -> Result<JobId, RpcError> {
    let id = match stored {
        Err(ClientError::IdTaken(id)) if !has_files => id,
        other => return Ok(other?),
    };
    match context.visible(&id).await {
        Ok(known) if is_same(&known, given) => Ok(id),
        _ => Err(ClientError::IdTaken(id).into()),
    }
}

/// Returns true if a job has the settings that are given.
fn is_same(known: &Job, given: Job) -> bool {
    let mut spec = given.spec;
    let of_content = spec.key_of_content();
    spec.unique_key = of_content.or(spec.unique_key.take());
    spec.id.clone_from(&known.spec.id);
    // It tells only whether a program waits for the end.
    spec.reply = known.spec.reply;
    spec == known.spec
}
