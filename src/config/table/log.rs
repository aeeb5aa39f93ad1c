//! The keys of `[log]` and `[metrics]`.

use super::row::{ANY, TEN_YEARS, key_table};

key_table! {
    /// The log of the daemon.
    LOG = "log";

    /// The least severe level that is logged: `info` has the story of every job.
    level: OneOf(&["error", "warn", "info", "debug", "trace"]);

    /// The jobs whose schedule, start and success are logged: `all`, `slow` (those that took longer than `slow`,
    /// one line each) or `failed` (none of them). Failed attempts, retries, dead letters and recoveries are logged
    /// in any case. Beyond 4000 lines about successful jobs, or about failed attempts, within 30 s the others are
    /// counted and left out: the journal's own limit is 10000 lines of a unit within 30 s (`RateLimitBurst` in
    /// journald.conf(5)), and beyond it, lines of every kind are lost.
    jobs: OneOf(&["all", "slow", "failed"]);

    /// The time from which a successful job is slow.
    slow: Duration(0, TEN_YEARS);

    /// Names of variables of jobs (`env_vars`), as patterns in which `*` is any text, in capitals or not. Their
    /// values, from four bytes on, are printed as `***` in the logs, outputs and errors of jobs, in log files and
    /// in the journal, line by line.
    redact: Texts;
}

key_table! {
    /// The number of series that `hero metrics` prints.
    METRICS = "metrics";

    /// The queues with series of their own, the longest first; the others are one, `others`.
    queues_max: Number(0, ANY);

    /// The script types with series, in the order of their names.
    types_max: Number(0, ANY);
}
