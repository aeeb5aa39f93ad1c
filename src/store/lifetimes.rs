//! Jobs whose time comes while nobody touches them: those that others need beyond their retention, and those that
//! did not start within their time.

use std::time::Duration;

use super::attempts::kept;
use super::backoff::from_now;
use super::{Result, Store};
use crate::proto::job::Retention;

/// The result of a check of jobs that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedJobs {
    pub jobs: usize,
    pub ended: usize,
    /// The time until the next look, if there is a job to look at.
    pub next: Option<Duration>,
}

/// The result of a look at jobs that are expected to have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLate {
    /// The number of entries that it looked at.
    pub looked_at: usize,
    /// The jobs that have not ended within their time.
    pub late: Vec<String>,
    /// The jobs with an attempt that runs for long.
    pub slow: Vec<String>,
    /// The time until the next look, if there is a job to look at.
    pub next: Option<Duration>,
}

impl Store {
    /// Checks up to `limit` ended jobs that would expire: one that another may need stays. Calling again is safe.
    pub async fn keep_awaited(&self, limit: usize) -> Result<CheckedJobs> {
        let (jobs, next_us): (usize, i64) = self
            .run_script("keeping the outputs that jobs wait for", &self.scripts.keep_awaited, limit)
            .await?;
        Ok(CheckedJobs { jobs, ended: 0, next: from_now(next_us) })
    }

    /// Ends jobs that did not start within their time, up to `limit`. Calling again is safe.
    pub async fn expire_jobs(
        &self,
        limit: usize,
        retention: impl Into<Retention>,
    ) -> Result<CheckedJobs> {
        let (doing, arguments) =
            ("ending jobs that did not start in time", (limit, kept(retention)));
        let (jobs, ended, next_us): (usize, usize, i64) =
            self.run_script(doing, &self.scripts.expire_jobs, arguments).await?;
        Ok(CheckedJobs { jobs, ended, next: from_now(next_us) })
    }

    /// Finds up to `limit` jobs, and attempts, that have not ended by the time expected. Calling again is safe.
    pub async fn find_late(&self, limit: usize) -> Result<FoundLate> {
        let (looked_at, next_us, late, slow): (usize, i64, Vec<String>, Vec<String>) =
            self.run_script("finding late and slow jobs", &self.scripts.find_late, limit).await?;
        Ok(FoundLate { looked_at, late, slow, next: from_now(next_us) })
    }
}
