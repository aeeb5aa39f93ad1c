//! The keys of `[limit.NAME]`, `[calendar.NAME]` and `[unit.NAME]`.

use super::row::key_table;

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
    /// Calendars: days on which the periodic jobs that name one (`calendar = "holidays"`) do not fire. All machines
    /// with a supervisor must have the same calendars.
    ///
    ///     [calendar.holidays]
    ///     days = ["12-25", "2026-04-06", "2026-12-28..2026-12-31", "SUN"]
    /// ---
    /// Names have 1 to 32 of a-z, 0-9, `_` and `-`.
    CALENDAR = "calendar.NAME";

    /// Dates (`2026-12-25`), days of every year (`12-25`), ranges (`2026-07-01..2026-07-31`) and days of the week
    /// (`SUN`), at most 1000. A day is one of the time zone of the periodic job.
    days: Texts;
}

key_table! {
    /// Units: settings of one process, `hero run NAME` and the unit `hero@NAME.service`. None is required: the name
    /// `supervisor` is the supervisor, `broker` and `broker-NODE` take messages from RabbitMQ, and a name of the
    /// form TYPE-GROUP-INSTANCE, such as `osis-default-1`, is that actor. Any other name needs a table, with a role
    /// or with actors. Another role and other actors need a restart.
    ///
    /// One actor that runs more jobs at once than the others:
    ///
    ///     [unit.osis-default-1]
    ///     tasks = 8
    ///
    /// One process with several actors. The group (`default`) and tasks are optional, here and at each actor:
    ///
    ///     [unit.mixed]
    ///     role = "actor"
    ///     tasks = 2
    ///     actors = [
    ///         { type = "osis", group = "default", instance = 1, tasks = 4 },
    ///         { type = "sal", group = "io", instance = 3 },
    ///     ]
    ///
    /// Another supervisor, and a broker, with names of their own:
    ///
    ///     [unit.second]
    ///     role = "supervisor"
    ///
    ///     [unit.mail]
    ///     role = "broker"
    UNIT = "unit.NAME";

    /// The role of the process.
    role: OneOf(&["actor", "supervisor", "broker"]);

    /// Jobs that run at once, for each actor of the unit that does not set it.
    tasks: Number(1, 1024);
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
