//! The keys of `[supervisor]`.

use super::row::{HOUR, TEN_YEARS, key_table};

key_table! {
    /// The supervisor: schedules, retries, recovery and other things that happen later.
    SUPERVISOR = "supervisor";

    /// The time between two looks for due and lost jobs and all other work. Statistics, warnings and clearing away
    /// pause for five of these intervals. What has no work rests until a look finds some, for at most 30 of them.
    sweep_interval: Duration(10, HOUR);

    /// If the first job of a queue waits longer than this, the supervisor logs it once, and once more when the wait
    /// is over. The counter `long_waits` of the script type counts these. `0s`: never.
    wait_warning: Duration(0, TEN_YEARS);

    /// The wait of a job in the queue of a group or instance without live actors, before it falls back to the
    /// next wider queue, if the job, or its type, has a fallback.
    fallback_after: Duration(0, TEN_YEARS);

    /// The folder of the periodic jobs, files `*.toml` as in hero.toml(5), PERIODIC JOBS.
    cron_dir: Folder;

    /// The folder of the published scripts, files `*.toml` as in hero.toml(5), PUBLISHED SCRIPTS, which a supervisor
    /// publishes when it starts and when it is reloaded.
    scripts_dir: Folder;

    /// The names used in Redis: `canonical`, Hero's own only, or `dual`, the `legacy_queues` as well, while older
    /// programs migrate; see docs/migration.md. The supervisor, the actors and `hero` itself all read it.
    migration: OneOf(&["canonical", "dual"]), restart;

    /// The legacy queues to serve in `dual`, each written `{ legacy = "KEY", type = "TYPE", group = "GROUP",
    /// instance = NUMBER }`. The default group is `default`; without an instance the queue is for every actor of
    /// the group. The KEY is `hero:work_queue:NAME`, `hero:job:NAME` or `hero:job:actor_queue:NAME`, with the
    /// namespace in place of `hero`; a `*` in it is any text, as in `hero:work_queue:*`, for queues that a
    /// supervisor finds. A KEY alone is a queue of type osis. No queue may be listed twice.
    legacy_queues: Form, restart;

    /// The circles of rhailib whose tasks become jobs, each written `{ circle = "NAME", type = "TYPE" }`. A `*` in
    /// the NAME is any text. They are served in both migration modes.
    rhailib_circles: Form, restart;
}
