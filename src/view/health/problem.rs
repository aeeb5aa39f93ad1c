//! A problem: what is wrong, how bad it is, of what, and what to do.

use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::proto::cron::CronName;
use crate::proto::notification::NotifyKind;
use crate::proto::queue::Queue;
use crate::proto::shard::Shard;
use crate::proto::target::ScriptType;
use crate::proto::word_table::words;

/// One thing that is wrong, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Its kind: programs know it by this.
    pub kind: ProblemKind,
    /// Its severity.
    pub severity: Severity,
    /// The part of the system that has it.
    #[schemars(with = "String")]
    pub subject: Subject,
    /// One sentence with its numbers, lower case, without a full stop.
    pub text: String,
    /// The remedy, a line or more.
    pub remedy: String,
}

words! {
    /// The severity of a problem.
    #[derive(PartialOrd, Ord, JsonSchema)]
    Severity;
    /// Worth knowing, and not wrong.
    Note = "note",
    /// Wrong; look at it soon.
    Warning = "warning",
    /// Wrong; look at it now.
    Critical = "critical",
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// Too few supervisors are live.
    FewSupervisors,
    /// A supervisor cannot do its duties.
    SupervisorFails,
    /// A file of periodic jobs has changed since a supervisor read it.
    CronChanged,
    /// A periodic job is not in force because of a mistake.
    CronRefused,
    /// A periodic job names a notification that a supervisor does not have.
    CronUnheard,
    /// A notification names a periodic job that does not exist.
    CronUnknown,
    /// A periodic job has not succeeded for twice its interval.
    CronOverdue,
    /// Redis is a replica, which refuses writes.
    RedisReplica,
    /// Redis refuses every write.
    RedisRefusesWrites,
    /// Redis has lost all keys of the namespace.
    RedisEmptied,
    /// Redis is too old.
    RedisOld,
    /// Redis does not report its state.
    RedisUnknown,
    /// Redis cannot write its append-only file.
    RedisCannotAppend,
    /// Redis cannot write its snapshot.
    RedisCannotSave,
    /// Redis may lose accepted jobs.
    RedisForgets,
    /// Redis is a node of a cluster that is named alone.
    RedisNamedAlone,
    /// Redis uses much of its memory.
    RedisMemory,
    /// A key of the namespace is used by another program.
    WrongType,
    /// The clock of a machine differs from Redis's.
    ClockDiffers,
    /// The clock of Redis was set.
    ClockStepped,
    /// A queue is deep.
    QueueDepth,
    /// A queue has jobs and no actor.
    QueueWithoutActor,
    /// A queue has jobs of a script type that is not configured, and no actor.
    QueueOfUnknownType,
    /// Programs pushed ids to a list that nobody serves.
    ListUnserved,
    /// Programs pushed ids whose hashes are not there.
    IdsWithoutHash,
    /// The first job of a queue waits for long.
    QueueWait,
    /// Limits hold jobs of a queue.
    QueueHeld,
    /// Limits or a pause hold jobs of a queue for long.
    QueueHeldLong,
    /// A queue is paused.
    QueuePaused,
    /// Jobs failed in the last hour.
    JobsFailed,
    /// Jobs became dead letters in the last hour.
    DeadLetters,
    /// Dead letters are kept.
    DeadLettersKept,
    /// The share of failures has risen.
    FailuresRise,
    /// Scheduled jobs are due, and nobody dispatches them.
    JobsDue,
    /// Actors claim no jobs, as their machines are overloaded or full.
    ActorsHold,
    /// An actor was killed for lack of memory.
    ActorOomKilled,
    /// An actor has no heartbeat, though it has not shut down.
    ActorSilent,
    /// Actors cannot remove folders of jobs.
    FoldersLeft,
    /// Machines have the same machine id.
    MachineClones,
    /// A broker of RabbitMQ does not renew its presence.
    BrokerGone,
    /// A broker has no RabbitMQ, Redis or MariaDB.
    BrokerOutage,
    /// Dispatchers of a broker do not consume.
    BrokerDispatchers,
    /// A queue of RabbitMQ has dead letters.
    AmqpDeadLetters,
    /// A broker has lost log events.
    LogEventsLost,
    /// A notification cannot be delivered.
    NotificationFails,
    /// Daemons have other versions than this program.
    VersionsDiffer,
}

impl ProblemKind {
    /// Its word, as JSON has it.
    pub fn word(self) -> String {
        serde_json::json!(self).as_str().unwrap_or_default().to_owned()
    }

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
