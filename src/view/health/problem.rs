//! A problem: what is wrong, how bad it is, of what, and what to do.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::proto::cron::CronName;
use crate::proto::notification::NotifyKind;
use crate::proto::queue::Queue;
use crate::proto::shard::Shard;
use crate::proto::target::ScriptType;

/// One thing that is wrong, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Its kind: programs know it by this.
    pub kind: ProblemKind,
    /// Its severity.
    pub severity: Severity,
    /// The part of the system that has it.
    pub subject: Subject,
    /// One sentence with its numbers, lower case, without a full stop.
    pub text: String,
    /// The remedy, a line or more.
    pub remedy: String,
}

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing, and not wrong.
    Note,
    /// Wrong; look at it soon.
    Warning,
    /// Wrong; look at it now.
    Critical,
}

impl Severity {
    /// Each of them, the worst last.
    pub const ALL: [Self; 3] = [Self::Note, Self::Warning, Self::Critical];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Defines the kinds of problems with their words.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $word:literal,)+) => {
        /// The kind of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
        pub enum ProblemKind {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $kind,)+
        }

        impl ProblemKind {
            /// Each of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)+
                }
            }
        }
    };
}

kinds! {
    /// Too few supervisors are live.
    FewSupervisors = "few_supervisors",
    /// A supervisor cannot do its duties.
    SupervisorFails = "supervisor_fails",
    /// A file of periodic jobs has changed since a supervisor read it.
    CronChanged = "cron_changed",
    /// A periodic job is not in force because of a mistake.
    CronRefused = "cron_refused",
    /// A periodic job names a notification that a supervisor does not have.
    CronUnheard = "cron_unheard",
    /// A notification names a periodic job that does not exist.
    CronUnknown = "cron_unknown",
    /// A periodic job has not succeeded for twice its interval.
    CronOverdue = "cron_overdue",
    /// Redis is a replica, which refuses writes.
    RedisReplica = "redis_replica",
    /// Redis refuses every write.
    RedisRefusesWrites = "redis_refuses_writes",
    /// Redis has lost all keys of the namespace.
    RedisEmptied = "redis_emptied",
    /// Redis is too old.
    RedisOld = "redis_old",
    /// Redis does not report its state.
    RedisUnknown = "redis_unknown",
    /// Redis cannot write its append-only file.
    RedisCannotAppend = "redis_cannot_append",
    /// Redis cannot write its snapshot.
    RedisCannotSave = "redis_cannot_save",
    /// Redis may lose accepted jobs.
    RedisForgets = "redis_forgets",
    /// Redis is a node of a cluster that is named alone.
    RedisNamedAlone = "redis_named_alone",
    /// Redis uses much of its memory.
    RedisMemory = "redis_memory",
    /// A key of the namespace is used by another program.
    WrongType = "wrong_type",
    /// The clock of a machine differs from Redis's.
    ClockDiffers = "clock_differs",
    /// The clock of Redis was set.
    ClockStepped = "clock_stepped",
    /// A queue is deep.
    QueueDepth = "queue_depth",
    /// A queue has jobs and no actor.
    QueueWithoutActor = "queue_without_actor",
    /// A queue has jobs of a script type that is not configured, and no actor.
    QueueOfUnknownType = "queue_of_unknown_type",
    /// Programs pushed ids to a list that nobody serves.
    ListUnserved = "list_unserved",
    /// Programs pushed ids whose hashes are not there.
    IdsWithoutHash = "ids_without_hash",
    /// The first job of a queue waits for long.
    QueueWait = "queue_wait",
    /// Limits hold jobs of a queue.
    QueueHeld = "queue_held",
    /// Limits or a pause hold jobs of a queue for long.
    QueueHeldLong = "queue_held_long",
    /// A queue is paused.
    QueuePaused = "queue_paused",
    /// Jobs failed in the last hour.
    JobsFailed = "jobs_failed",
    /// Jobs became dead letters in the last hour.
    DeadLetters = "dead_letters",
    /// Dead letters are kept.
    DeadLettersKept = "dead_letters_kept",
    /// The share of failures has risen.
    FailuresRise = "failures_rise",
    /// Scheduled jobs are due, and nobody dispatches them.
    JobsDue = "jobs_due",
    /// Actors claim no jobs, as their machines are overloaded or full.
    ActorsHold = "actors_hold",
    /// An actor was killed for lack of memory.
    ActorOomKilled = "actor_oom_killed",
    /// An actor has no heartbeat, though it has not shut down.
    ActorSilent = "actor_silent",
    /// Actors cannot remove folders of jobs.
    FoldersLeft = "folders_left",
    /// Machines have the same machine id.
    MachineClones = "machine_clones",
    /// A broker of RabbitMQ does not renew its presence.
    BrokerGone = "broker_gone",
    /// A broker has no RabbitMQ, Redis or MariaDB.
    BrokerOutage = "broker_outage",
    /// Dispatchers of a broker do not consume.
    BrokerDispatchers = "broker_dispatchers",
    /// A queue of RabbitMQ has dead letters.
    AmqpDeadLetters = "amqp_dead_letters",
    /// A broker has lost log events.
    LogEventsLost = "log_events_lost",
    /// A notification cannot be delivered.
    NotificationFails = "notification_fails",
    /// Daemons have other versions than this program.
    VersionsDiffer = "versions_differ",
}

impl ProblemKind {
    /// Returns the kind of event by which notifications tell it.
    pub fn told_as(self) -> Option<NotifyKind> {
        match self {
            Self::QueueWithoutActor | Self::QueueOfUnknownType => Some(NotifyKind::NoActor),
            Self::QueueHeldLong => Some(NotifyKind::Held),
            Self::CronOverdue => Some(NotifyKind::CronLate),
            _ => None,
        }
    }
}

/// The part of the system that has a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Redis, or the Redis of a further shard.
    Redis(Option<Shard>),
    /// The machine of this name; without one, this machine.
    Machine(Option<String>),
    Supervisors,
    /// One supervisor: its unit and its machine.
    Supervisor(String, String),
    PeriodicJob(CronName),
    /// The actors of a script type, or all daemons.
    Actors(Option<ScriptType>),
    Queue(Queue),
    Queues,
    Jobs,
    DeadLetters,
    /// One broker of RabbitMQ: its unit and its machine.
    Broker(String, String),
    /// One queue of RabbitMQ.
    AmqpQueue(String),
    Notification(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redis(None) => f.write_str("redis"),
            Self::Redis(Some(shard)) => write!(f, "redis of shard {shard}"),
            Self::Machine(None) => f.write_str("this machine"),
            Self::Machine(Some(name)) => write!(f, "machine {name}"),
            Self::Supervisors => f.write_str("supervisors"),
            Self::Supervisor(unit, host) => write!(f, "supervisor {unit} on {host}"),
            Self::PeriodicJob(name) => write!(f, "periodic job {name}"),
            Self::Actors(None) => f.write_str("daemons"),
            Self::Actors(Some(script_type)) => write!(f, "actors of type {script_type}"),
            Self::Queue(queue) => write!(f, "queue {queue}"),
            Self::Queues => f.write_str("queues"),
            Self::Jobs => f.write_str("jobs"),
            Self::DeadLetters => f.write_str("dead letters"),
            Self::Broker(unit, host) => write!(f, "broker {unit} on {host}"),
            Self::AmqpQueue(name) => write!(f, "RabbitMQ queue {name}"),
            Self::Notification(name) => write!(f, "notification {name}"),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Subject {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Subject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
