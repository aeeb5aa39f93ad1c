//! What a role tells the daemon that runs it.

use std::sync::Arc;
use std::time::Duration;

/// One thing a role has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Redis answered, and the role does its work from now on.
    Ready,
    /// It is alive and makes progress; a line about how it does.
    Alive(String),
    /// It is shutting down.
    Stopping {
        /// A line about what it waits for.
        status: String,
        /// How long that may take.
        within: Duration,
    },
}

/// Where reports go. Called from the role's loops; it must not block.
pub type Reporter = Arc<dyn Fn(Report) + Send + Sync>;

/// How urgently a role is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Shutdown {
    /// Not at all.
    #[default]
    No,
    /// In order: let what runs end, within the deadline.
    Drain,
    /// In the same order, without waiting.
    Now,
}
