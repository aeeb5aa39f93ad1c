//! The bounds of jobs that `[job]` sets.

use super::schema::JobConfig;
use crate::proto::job::{JobBounds, Retention};

impl JobConfig {
    /// Returns the bounds of every job.
    pub fn bounds(&self) -> JobBounds {
        JobBounds {
            script_size_max: self.script_size_max,
            timeout_max: self.timeout_max,
            retention_max: self.retention_max,
        }
    }

    /// Returns the time that jobs are kept after their end.
    pub fn kept(&self) -> Retention {
        let failed = self.retention_failed.min(self.retention_max).max(self.retention);
        Retention { default: self.retention, failed, max: self.retention_max }
    }
}
