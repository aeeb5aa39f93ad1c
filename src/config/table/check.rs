//! The keys of `[check]`.

use super::row::{ANY, TEN_YEARS, key_table};

key_table! {
    /// The thresholds of problems, for `hero status --check`, `hero doctor`, `hero top`, the page, the API and the
    /// metrics. A threshold of 0 is off.
    CHECK = "check";

    /// Fewer live supervisors than this are critical.
    supervisors_min: Number(0, ANY);

    /// The wait of a queue's first job, if the queue is not paused.
    wait_warning: Duration(0, TEN_YEARS);
    wait_critical: Duration(0, TEN_YEARS);

    /// The jobs in one queue.
    depth_warning: Number(0, ANY);
    depth_critical: Number(0, ANY);

    /// The jobs of one queue that limits hold.
    held_warning: Number(0, ANY);
    held_critical: Number(0, ANY);

    /// The jobs that ended in `error` in the last hour, of all types together.
    failed_warning: Number(0, ANY);
    failed_critical: Number(0, ANY);

    /// The share of failed jobs in the last ten minutes, in times of that before, from which on it is a warning, if
    /// at least ten jobs failed.
    failures_rise: Number(0, ANY);

    /// The dead letters of the last hour, of all types together.
    dead_warning: Number(0, ANY);
    dead_critical: Number(0, ANY);

    /// The dead letters in one queue of RabbitMQ.
    amqp_dead_warning: Number(0, ANY);
    amqp_dead_critical: Number(0, ANY);

    /// The time that RabbitMQ, Redis or MariaDB has been away for a broker.
    outage_warning: Duration(0, TEN_YEARS);
    outage_critical: Duration(0, TEN_YEARS);

    /// The memory of Redis in use, in per cent of its `maxmemory`.
    memory_warning: Number(0, ANY);
    memory_critical: Number(0, ANY);

    /// A Redis that forgets accepted jobs when it is killed is a warning.
    durable: Flag;
}
