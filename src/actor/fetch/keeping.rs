//! The errand that keeps the state of a running script.

use std::fmt;
use std::sync::Arc;

use tracing::warn;

use crate::actor::boot::Boot;
use crate::actor::requests::StateToKeep;
use crate::actor::running_job::RunningJob;
use crate::store::StoreError;

/// A state on its way to Redis.
pub(super) struct Keeping {
    /// The attempt whose state it is.
    pub(super) run: Arc<RunningJob>,
    /// The state.
    pub(super) kept: StateToKeep,
}

impl fmt::Debug for Keeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keeping").field(&self.run.job.id).finish()
    }
}

impl Keeping {
    /// Writes the state, and answers its script.
    ///
    /// # Errors
    /// An outage: nothing was answered.
    pub(super) async fn keep(&self, boot: &Boot) -> Result<(), StoreError> {
        let (id, claimed_at) = self.run.attempt();
        let state = self.kept.state.as_str();
        let done = match boot.store.keep_state(&boot.id, (&id, claimed_at), state).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("the job runs elsewhere: this attempt has lost its lease".to_owned()),
            Err(error) if error.is_outage() => return Err(error),
            Err(error) => {
                warn!(job_id = %id, "cannot keep the state of job {id}: {error}");
                Err(format!("the state cannot be kept: {error}"))
            }
        };
        self.run.log.requests.wrote(&self.kept, &done);
        Ok(())
    }
}
