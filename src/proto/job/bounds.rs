//! The bounds that a configuration sets for every job, and the error of a job that breaks a form
//! or a bound.

use std::time::Duration;

/// A job that cannot be run: the field at fault and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid job: {field} {reason}")]
pub struct InvalidJob {
    pub field: String,
    /// The reason, to be read after the field's name.
    pub reason: String,
}

impl InvalidJob {
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobBounds {
    pub script_size_max: u64,
    pub timeout_max: Duration,
    pub retention_max: Duration,
}

/// The time that jobs are kept after their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// For a job without its own.
    pub default: Duration,
    /// For a job without its own that ended in `error`.
    pub failed: Duration,
    /// The maximum that a job may ask for.
    pub max: Duration,
}

impl From<Duration> for Retention {
    /// The default for all, which is also the limit.
    fn from(default: Duration) -> Self {
        Self { default, failed: default, max: default }
    }
}
