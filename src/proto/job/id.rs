//! The ids of jobs and boots, and the keys of jobs.

use std::fmt;
use std::str::FromStr;

use crate::proto::target::{IllegalName, name};

name!(
    /// The id of a job: a UUID when Hero makes it, any short word when a submitter chooses it.
    JobId,
    "job id",
    "1 to 64 of A-Z, a-z, 0-9, _ and -",
    |name| (1..=64).contains(&name.len())
        && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
);

name!(
    /// The id of one life of an actor process, which owns the jobs that it claimed.
    BootId,
    "boot id",
    "1 to 64 of A-Z, a-z, 0-9 and -, a UUID when Hero makes it",
    |name| (1..=64).contains(&name.len())
        && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
);

name!(
    /// A key that deduplicates: at most one job with it is not ended.
    UniqueKey,
    "unique key",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

name!(
    /// A key: limits count the jobs with the same key together.
    LimitKey,
    "limit key",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

name!(
    /// A key whose jobs are on the same shard.
    ShardKey,
    "shard key",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

name!(
    /// A name of a job for lists and searches. Several jobs may have the same.
    JobName,
    "job name",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

impl JobId {
    /// Creates a random UUID.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }
}

impl BootId {
    /// Creates a random UUID.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }
}
