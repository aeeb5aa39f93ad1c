//! Messages between a role and the daemon that runs it.

use std::sync::Arc;
use std::time::Duration;

/// The target of log lines about the usual course of a job: its schedule, start and success. The key
/// `log.jobs` of the configuration selects which of them are written.
pub const JOB_COURSE: &str = "hero::job::course";
/// The target of log lines about attempts that failed.
pub const JOB_FAILURE: &str = "hero::job::failure";

/// A report of a role to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceReport {
    /// Redis answered, and the role has started its work.
    Ready,
    /// The role makes progress; a line about its state.
    Alive(String),
    /// The role is shutting down.
    Stopping {
        /// A line about the jobs or calls that it waits for.
        status: String,
        /// The longest time that this takes.
        within: Duration,
    },
}

/// The receiver of reports. It is called from the role's loops and must not block.
pub type Reporter = Arc<dyn Fn(ServiceReport) + Send + Sync>;

/// The urgency of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Shutdown {
    /// None is requested.
    #[default]
    No,
    /// In order: running jobs may end, within the deadline.
    Drain,
    /// In the same order, without waiting.
    Now,
}
