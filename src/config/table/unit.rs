//! The keys of `[limit.NAME]` and of the actors of `[unit.NAME]`.

use crate::config::key_row::key_table;

key_table! {
    /// Limits: how many jobs may run at once, and how many may start within a time, counted over all machines. All
    /// machines must have the same limits. One of `running` and `rate` is required. A job without a slot is held:
    /// jobs after it run, and no other job of the same limit overtakes it.
    ///
    /// At most 4 at once, and 100 starts within any minute, of the jobs that are submitted with `--limit-key api`:
    ///
    ///     [limit.api]
    ///     key = "api"
    ///     running = 4
    ///     rate = "100/m"
    ///
    /// At most 10 at once per caller:
    ///
    ///     [limit.callers]
    ///     per = "caller"
    ///     running = 10
    ///
    /// Five starts within ten seconds, of the jobs with all of these properties:
    ///
    ///     [limit.reports]
    ///     type = "python"
    ///     group = "io"
    ///     caller = "reports"
    ///     rate = "5/10s"
    /// ---
    /// Names are a letter of a-z or a digit, then at most 63 of a-z, 0-9, `_`, `.` and `-`.
    LIMIT = "limit.NAME";

    /// The most jobs that run at once.
    running: Number(1, 10_000);

    /// The most jobs that start within a time, such as `10/s`, `100/m` or `5/10s`: from 1 to 10000, within 1ms to
    /// 1d.
    rate: Text;

    /// Counts separately by `type`, `group` (of a type), `caller` or `key`. Without it all jobs of the limit are
    /// counted together.
    per: OneOf(&["type", "group", "caller", "key"]);

    /// Select the jobs of the limit; each narrows the selection. A job without a group counts as one of `default`.
    /// The key is the one that a job names with `--limit-key`.
    type: Text;
    group: Text;
    caller: Text;
    key: Text;
}

key_table! {
    /// The actors of the process, for a unit that is not named after an actor.
    UNIT_ACTORS = "unit.NAME.actors", list;

    /// The script type.
    type: Text;

    /// The group, `default` without one.
    group: Text;

    /// The number of the instance within the group.
    instance: Number(1, 65_535);

    /// Jobs that run at once; without it, the number of the unit.
    tasks: Number(1, 1024);
}
