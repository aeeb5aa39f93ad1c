//! How jobs end: finer than their states in Redis, which have `error` for all that did not finish.

use super::JobStatus;
use crate::proto::error_kind::FailureCause;
use crate::proto::word_table::words;

words! {
    /// How a job ended. Each end has an index of its own.
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
    /// The ends of jobs in `error`.
    pub const IN_ERROR: [Self; 4] = [Self::Failed, Self::Cancelled, Self::Replaced, Self::Expired];
    /// The ends that nobody wanted.
    pub const FAILURES: [Self; 2] = [Self::Failed, Self::Expired];

    /// Returns the end of a job that failed for this reason.
    pub fn of(cause: FailureCause) -> Self {
        match cause {
            FailureCause::Stopped => Self::Cancelled,
            FailureCause::Replaced => Self::Replaced,
            FailureCause::Expired => Self::Expired,
            _ => Self::Failed,
        }
    }

    /// Returns its state in Redis.
    pub fn status(self) -> JobStatus {
        if self == Self::Finished { JobStatus::Finished } else { JobStatus::Error }
    }
}
