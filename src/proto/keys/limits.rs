//! The keys of limits.

use super::Keys;

impl Keys {
    /// Sorted set: limits that hold jobs, by when to look at them next.
    pub fn limits(&self) -> String {
        self.key(format_args!("meta:limit:index"))
    }

    /// Sorted set: jobs that have a slot in a limit, by their start.
    pub fn limit_running(&self, limit: &str) -> String {
        self.key(format_args!("meta:limit:running:{limit}"))
    }

    /// Sorted set: jobs that a limit holds, each with its queue, by their dispatch.
    pub fn limit_held(&self, limit: &str) -> String {
        self.key(format_args!("meta:limit:held:{limit}"))
    }

    /// Sorted set, TTL: starts of jobs under a limit within the period of its rate.
    pub fn limit_starts(&self, limit: &str) -> String {
        self.key(format_args!("meta:limit:starts:{limit}"))
    }
}
