//! The ends of jobs: finer than their states in Redis, which have `error` for all that did not finish.

use super::JobStatus;
use crate::proto::word_table::words;

words! {
    /// The end of a job. Each end has an index of its own.
    #[derive(PartialOrd, Ord, Hash, schemars::JsonSchema)]
    JobEnd, "end of a job", "finished, failed, cancelled, replaced or expired", any_case;
    /// It succeeded.
    Finished = "finished",
    /// It failed, or could not run.
    Failed = "failed",
    /// It was stopped.
    Cancelled = "cancelled",
    /// A later job with its unique key replaced it.
    Replaced = "replaced",
    /// It was not started within the time that it had for that.
    Expired = "expired",
}

impl JobEnd {
    pub const IN_ERROR: [Self; 4] = [Self::Failed, Self::Cancelled, Self::Replaced, Self::Expired];
    /// The ends that nobody wanted.
    pub const FAILURES: [Self; 2] = [Self::Failed, Self::Expired];

    /// Returns its state in Redis.
    pub fn status(self) -> JobStatus {
        if self == Self::Finished { JobStatus::Finished } else { JobStatus::Error }
    }
}
