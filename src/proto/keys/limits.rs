//! The keys of limits.

use super::spell;

spell! {
    /// Sorted set: limits that hold jobs, by when to look at them next.
    limits() = "meta:limit:index";

    /// Sorted set: jobs that have a slot in a limit, by their start.
    limit_running(limit: &str) = "meta:limit:running:{limit}";

    /// Sorted set: jobs that a limit holds, each with its queue, by their dispatch.
    limit_held(limit: &str) = "meta:limit:held:{limit}";

    /// Sorted set, TTL: starts of jobs under a limit within the period of its rate.
    limit_starts(limit: &str) = "meta:limit:starts:{limit}";
}
