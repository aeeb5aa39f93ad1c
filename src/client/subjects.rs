//! The calls of a client by subject: [`Client::queues`] has those on queues, and so on. Each is a handle that borrows the
//! client.

use super::Client;

/// Defines the handle of each subject, and the method of [`Client`] that returns it.
macro_rules! subjects {
    ($($(#[$doc:meta])* $method:ident: $handle:ident,)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $handle<'a> {
            pub(super) client: &'a Client,
        })*

        impl Client {
            $($(#[$doc])*
            pub fn $method(&self) -> $handle<'_> {
                $handle { client: self }
            })*
        }
    };
}

subjects! {
    /// Actors by their presence, and messages to them.
    actors: ActorClient,
    /// The record of changes.
    audit: AuditClient,
    /// Periodic jobs: the crontab in force, firings, backfills.
    cron: CronClient,
    /// The event log.
    events: EventClient,
    /// Input and output files of jobs.
    files: FileClient,
    /// Graphs and batches of jobs.
    graphs: GraphClient,
    /// Jobs by their ids: documents, attempts, changes, searches.
    jobs: JobClient,
    /// Logs of jobs.
    logs: LogClient,
    /// Machines of the fleet.
    machines: MachineClient,
    /// Lists and circles of older systems.
    migration: MigrationClient,
    /// Notifications: their deliveries, held messages, tests.
    notifications: NotificationClient,
    /// Objects of osis.
    objects: ObjectClient,
    /// Queues: their states, pauses, purges.
    queues: QueueClient,
    /// Published scripts and their versions.
    scripts: ScriptClient,
    /// Sessions: scripts that keep their state between calls.
    sessions: SessionClient,
    /// Counters, statistics and samples.
    stats: StatsClient,
    /// Redis, its shards, supervisors, brokers, types and limits.
    system: SystemClient,
    /// Tokens of the API.
    tokens: TokenClient,
}
