//! The keys of `[actor]`.

use super::row::{DAY, HOUR, PIB, key_table};

key_table! {
    /// Defaults of every actor, the processes that run jobs.
    ACTOR = "actor";

    /// Jobs that run at once, per script type and group.
    tasks: Number(1, 1024);

    /// The time after which an actor renews its presence and its lease. Must be less than half of `lease`.
    /// ---
    /// It is shorter if the watchdog of the systemd unit requires that.
    heartbeat: Duration(10, HOUR), restart;

    /// An actor that has not renewed its lease for this long is dead, and its jobs are requeued.
    lease: Duration(30, DAY), restart;

    /// The time that a stopping actor waits for its running jobs. Jobs that still run then are stopped, and
    /// requeued at the front once their processes have ended.
    /// ---
    /// The daemon tells systemd how long stopping may take, so `TimeoutStopSec=` of the unit need not be changed
    /// with it.
    drain_timeout: Duration(0, DAY);

    /// Every N-th claim of an actor begins with the background queues, so urgent jobs starve no others. 0: never.
    fair_every: Number(0, 10_000);

    /// An actor claims no jobs while the load average of its machine (one minute) is above this, such as `8.0`. 0:
    /// no limit.
    load_max: Decimal(100_000);

    /// An actor claims no jobs while its machine has less available memory than this. `0B`: no limit. It checks
    /// with every heartbeat, and `hero actor list` shows the reason.
    memory_min: Size(0, PIB);

    /// Sandboxes the process of an actor whose types are all of the engine `osis`, as far as the kernel can: it
    /// reads the folder of this file and `/proc`, writes `job.log_dir`, connects to Redis, and starts no program.
    /// Folders that are created later need a restart.
    /// ---
    /// If Redis has a host name instead of an address, it reads `/etc` as well; with sentinels or a cluster it may
    /// connect to any port. `hero check UNIT` and the first lines of its log say what is allowed.
    sandbox: Flag, restart;
}
