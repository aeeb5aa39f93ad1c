//! Looks whether there is work for a duty, each one command: most of the time there is none.

use std::time::Duration;

use super::{Store, StoreError};

impl Store {
    /// Returns whether a limit holds jobs.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn limits_hold_jobs(&self) -> Result<bool, StoreError> {
        self.any_exists(&[self.keys.limits()]).await
    }

    /// Returns whether jobs have ended whose dependents are not all told, batches are committed by half,
    /// or notes on jobs wait to be logged.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn has_unsettled_jobs(&self) -> Result<bool, StoreError> {
        self.any_exists(&[self.keys.settling(), self.keys.committing(), self.keys.notes()]).await
    }

    async fn any_exists(&self, keys: &[String]) -> Result<bool, StoreError> {
        let mut command = redis::cmd("EXISTS");
        command.arg(keys);
        let number: u64 = self.link.query("looking for work", &command).await?;
        Ok(number > 0)
    }

    /// Returns the time until the first lease of a boot ends, if it is not renewed; `None` without boots.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn next_lease_end(&self) -> Result<Option<Duration>, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZRANGE").arg(self.keys.boots()).arg(0).arg(0).arg("WITHSCORES");
        pipeline.cmd("TIME");
        let asked = self.link.pipeline("looking for leases that end", &pipeline).await;
        let (first, now): (Vec<(String, f64)>, (u64, u64)) = match asked {
            // A key of a wrong type counts as absent; the sweep for these names it.
            Err(StoreError::Failed { .. }) => return Ok(None),
            asked => asked?,
        };
        let now = Duration::from_secs(now.0) + Duration::from_micros(now.1);
        let end = first.first().map(|(_, end)| Duration::try_from_secs_f64(end / 1e6));
        Ok(end.map(|end| end.unwrap_or_default().saturating_sub(now)))
    }
}
