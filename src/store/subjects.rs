//! The operations of a store by subject: [`Store::queues`] has those on queues, and so on. Each is a handle that borrows the
//! store.

use super::Store;

/// Defines the handle of each subject, and the method of [`Store`] that returns it.
macro_rules! subjects {
    ($($(#[$doc:meta])* $method:ident: $handle:ident,)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $handle<'a> {
            pub(super) store: &'a Store,
        })*

        impl Store {
            $($(#[$doc])*
            pub fn $method(&self) -> $handle<'_> {
                $handle { store: self }
            })*
        }
    };
}

subjects! {
    /// Confirmations that writes reached the disk or the replicas.
    acks: AckStore,
    /// Presence of actors, and messages to them.
    actors: ActorStore,
    /// Attempts: claims, ends, returns.
    attempts: AttemptStore,
    /// The record of changes.
    audit: AuditStore,
    /// Reads of a backup.
    backup: BackupStore,
    /// Batches that are stored whole or not at all.
    batches: BatchStore,
    /// Brokers of RabbitMQ: presence, ends, repeats, spool.
    brokers: BrokerStore,
    /// Periodic jobs: marks, firings, edits.
    cron: CronStore,
    /// The event log.
    events: EventStore,
    /// Input and output files of jobs.
    files: FileStore,
    /// Graphs: members, pauses, callbacks.
    graphs: GraphStore,
    /// Jobs: submission, states, changes, lists, outputs.
    jobs: JobStore,
    /// Queues and tasks of older systems.
    legacy: LegacyStore,
    /// Limits and the jobs that they hold.
    limits: LimitStore,
    /// Logs of jobs.
    logs: LogStore,
    /// Notifications: events, messages, deliveries.
    notifications: NotificationStore,
    /// Published scripts and their versions.
    published_scripts: ScriptStore,
    /// Queues: states, pauses, purges, selectors.
    queues: QueueStore,
    /// Recovery of jobs: dead boots, lost pops, hashes without an index.
    recovery: RecoveryStore,
    /// Redis itself: its state, speed, refusals.
    redis: RedisStore,
    /// Writes of a restore.
    restore: RestoreStore,
    /// Due work: dispatches, settlements, expiry.
    schedule: ScheduleStore,
    /// Calls of sessions.
    sessions: SessionStore,
    /// Counters and samples.
    stats: StatsStore,
    /// Supervisors and what they note of the system.
    supervisors: SupervisorStore,
    /// Tokens of the API.
    tokens: TokenStore,
}
