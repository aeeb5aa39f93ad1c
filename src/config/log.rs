//! `[log]`: the level of the daemon's log, and the jobs that it tells of.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units;

/// `[log]`: the log of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LogConfig {
    /// The least severe level that is written.
    pub level: LogLevel,
    /// The jobs whose usual course is written.
    pub jobs: LoggedJobs,
    /// The time from which a successful job counts as slow.
    #[serde(with = "units::duration")]
    pub slow: Duration,
}

impl Default for LogConfig {
    fn default() -> Self {
        let (level, jobs) = (LogLevel::default(), LoggedJobs::default());
        Self { level, jobs, slow: Duration::from_secs(1) }
    }
}

/// The jobs whose schedule, start and success are written. Attempts that fail, and everything that a
/// supervisor recovers, are written in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggedJobs {
    /// Every job.
    #[default]
    All,
    /// Jobs that took longer than `slow`: one line at their end.
    Slow,
    /// None: only attempts that fail.
    Failed,
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Failures.
    Error,
    /// And what an operator should check.
    Warn,
    /// And start and end of every job.
    #[default]
    Info,
    /// And details for debugging.
    Debug,
    /// And every step.
    Trace,
}

impl LogLevel {
    /// Returns the level as the configuration spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}
