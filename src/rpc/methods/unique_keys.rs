//! Unique keys among callers. A key of a caller with bounds, or without the scope operate, belongs to this caller and
//! the context of the job, unless `api.shared_unique_keys` names it. Then such a caller learns only that it is taken.

use super::super::method::CallContext;
use super::super::rpc_error::{RpcError, code};
use crate::client::ClientError;
use crate::proto::job::{Job, JobId, unique_scope};
use crate::proto::pattern::matches;

impl CallContext {
    /// Returns whether the caller shares its keys with all jobs: it may change any job.
    fn has_keys_of_all(&self) -> bool {
        self.operates() && !self.is_bound()
    }

    /// Sets the owner of a job's unique key, and refuses to replace the jobs of others.
    pub(super) fn scope_key(&self, job: &mut Job) -> Result<(), RpcError> {
        let key = job.spec.unique_key.clone().or_else(|| job.spec.key_of_content());
        let Some(key) = key.filter(|_| !self.has_keys_of_all()) else { return Ok(()) };
        let shared = &self.config.api.shared_unique_keys;
        if !shared.iter().any(|pattern| matches(pattern, key.as_str())) {
            job.unique_scope = Some(unique_scope(&job.spec.caller_id, &job.spec.context_id));
            return Ok(());
        }
        if !job.spec.replaces() {
            return Ok(());
        }
        let refused = self.may_not(
            "replace the job of a shared unique key, which may be of another caller: this needs the scope operate, and \
             no bounds",
        );
        Err(refused.with("field", "on_duplicate"))
    }

    /// Returns the id of a submitted job, or of the job that holds its unique key, if the caller may know that.
    pub(super) async fn told(
        &self,
        has_key: bool,
        stored: Result<JobId, ClientError>,
    ) -> Result<JobId, RpcError> {
        match stored {
            Ok(id) if !has_key || self.may_know(&id).await => Ok(id),
            Ok(_) => Err(taken()),
            Err(error) => Err(self.told_error(error).await),
        }
    }

    /// Returns the error of a submission, without the job that holds a unique key if the caller may not know it.
    pub(super) async fn told_error(&self, error: ClientError) -> RpcError {
        let inner = match &error {
            ClientError::Refused { error, .. } => error,
            error => error,
        };
        match inner {
            ClientError::KeyHeld(id) if !self.may_know(id).await => taken(),
            _ => error.into(),
        }
    }

    /// Returns whether the caller may read a job.
    async fn may_know(&self, id: &JobId) -> bool {
        if self.has_keys_of_all() {
            return true;
        }
        let seen = self.visible(id).await;
        seen.is_ok_and(|job| self.reads() || job.spec.caller_id == self.caller.name)
    }
}

fn taken() -> RpcError {
    let message = "its unique key is taken by a job of another caller; submit it again later, or with another key";
    RpcError::new(code::CONFLICT, message).with("field", "unique_key")
}
