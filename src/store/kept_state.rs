//! The state that a running script keeps for the next attempt of its job.

use super::{Store, StoreError};
use crate::proto::job::{BootId, JobId};

impl Store {
    /// Keeps a state, as JSON, for the next attempt of a job; an empty one keeps none. Returns `false` if the boot
    /// does not own the job any more, or has claimed it again after `claimed_at`: nothing was written.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn keep_state(
        &self,
        boot: &BootId,
        (id, claimed_at): (&JobId, u64),
        state: &str,
    ) -> Result<bool, StoreError> {
        let mut script = self.scripts.keep_state.prepare_invoke();
        script.arg(boot.as_str()).arg(id.as_str()).arg(claimed_at).arg(state);
        self.invoke("keeping the state of a job", &script).await
    }
}
