//! The keys of limits.

use super::Keys;

impl Keys {
    /// Sorted set: limits that hold jobs, by when to look at them next.
    pub fn limits(&self) -> String {
        self.key(format_args!("meta:limit:index"))
    }

    /// Sorted set, TTL: starts of jobs under a limit within the period of its rate.
    pub fn limit_starts(&self, limit: &str) -> String {
        self.key(format_args!("meta:limit:starts:{limit}"))
    }
}
