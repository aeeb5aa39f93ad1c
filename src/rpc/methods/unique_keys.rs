//! Unique keys among callers. A key of a caller with bounds, or without the scope operate, belongs to this caller and
//! the context of the job, unless `api.shared_unique_keys` names it. Then a caller that may not see its holder learns only
//! that it is taken: `visible_id` in `shared/rights.lua`.

use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use crate::proto::job::{Job, unique_scope};
use crate::proto::pattern::matches;

impl CallContext {
    /// Sets the owner of a job's unique key, and refuses to replace the jobs of others.
    pub(super) fn scope_key(&self, job: &mut Job) -> Result<(), RpcError> {
        let key = job.spec.unique_key.clone().or_else(|| job.spec.key_of_content());
        let Some(key) = key.filter(|_| !self.changes_any_job()) else { return Ok(()) };
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
}
