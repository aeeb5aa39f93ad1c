//! The state that a running script saves for the next attempt of its job.

use super::{Store, StoreError};
use crate::proto::job::{BootId, JobId};

impl Store {
    /// Keeps a state, as JSON, for the next attempt of a job; an empty one keeps none. Returns `false` if the boot
    /// does not own the job any more, or has claimed it again after `claimed_at`: nothing was written.
    pub async fn keep_state(
        &self,
        boot: &BootId,
        (id, claimed_at): (&JobId, u64),
        state: &str,
    ) -> Result<bool, StoreError> {
        let arguments = (boot.as_str(), id.as_str(), claimed_at, state);
        self.run_script("keeping the state of a job", &self.scripts.keep_state, arguments).await
    }
}
