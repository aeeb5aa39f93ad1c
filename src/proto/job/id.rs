//! What a job, a boot and a unique key are called.

use std::fmt;
use std::str::FromStr;

use crate::proto::target::{IllegalName, name};

name!(
    /// The id of a job: a UUID when Hero makes it, a short word when somebody else does.
    JobId,
    "job id",
    "1 to 64 of A-Z, a-z, 0-9, _ and -",
    |name| (1..=64).contains(&name.len())
        && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
);

name!(
    /// One start of an actor process. Jobs are owned by it, not by the name of the actor.
    BootId,
    "boot id",
    "1 to 64 of A-Z, a-z, 0-9 and -, a UUID when Hero makes it",
    |name| (1..=64).contains(&name.len())
        && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
);

name!(
    /// Of the jobs with one unique key, at most one is on its way at a time.
    UniqueKey,
    "unique key",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

name!(
    /// Jobs with one limit key are counted together by the limits that look at it.
    LimitKey,
    "limit key",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

impl JobId {
    /// A new id: a random UUID.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }
}

impl BootId {
    /// A new id: a random UUID.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }
}
