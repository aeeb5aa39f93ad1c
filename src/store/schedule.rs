//! Deferred work of the supervisor: due jobs, and dependents beyond one step.

use std::time::Duration;

use super::attempts::kept;
use super::{Store, StoreError};
use crate::proto::job::Retention;

impl Store {
    /// Dispatches scheduled jobs that are due, up to `limit` per type. Returns their number, and the
    /// time until the next is due, if one is scheduled.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn dispatch_due(
        &self,
        limit: usize,
    ) -> Result<(usize, Option<Duration>), StoreError> {
        let mut script = self.scripts.dispatch_due.prepare_invoke();
        script.arg(limit);
        let (dispatched, next_us): (usize, i64) =
            self.invoke("dispatching due jobs", &script).await?;
        Ok((dispatched, u64::try_from(next_us).ok().map(Duration::from_micros)))
    }

    /// Tells some of the dependents of an ended job that had too many for one step. Returns
    /// true if there was such a job.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn settle(&self, retention: impl Into<Retention>) -> Result<bool, StoreError> {
        let mut script = self.scripts.settle.prepare_invoke();
        script.arg(kept(retention));
        let did: u64 = self.invoke("telling dependents", &script).await?;
        Ok(did == 1)
    }
}
