//! The errors of the client, and the exit code of each.

use std::time::Duration;

use crate::artifacts::ArtifactError;
use crate::error::{Error, Exit};
use crate::proto::job::{InvalidJob, JobId, JobStatus, holder_of_key};
use crate::proto::object::ObjectError;
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::proto::shard::{NoSuchShard, Shard};
use crate::proto::target::{ActorId, IllegalName};
use crate::proto::text::{counted, did_you_mean};
use crate::store::StoreError;

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Redis cannot be reached, refuses, or gives an unexpected answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The job was sent to Redis, but no answer came.
    #[error(
        "submitting job {id}: {error}; it may have been accepted: check with hero job show {id}"
    )]
    Unsure {
        /// The job, if it was accepted.
        id: JobId,
        /// The error of the connection.
        error: StoreError,
    },
    /// The job is stored, and goes on, but its submission or its end is not confirmed as `redis.ack` and `durable`
    /// ask for.
    #[error(
        "job {id}{} {what} in the memory of redis, but this is not confirmed: {error}; look: hero job show {id}",
        and_others(*.others)
    )]
    Unconfirmed {
        /// The job; the first of several.
        id: JobId,
        /// The number of further jobs of the same call.
        others: usize,
        /// The step that is not confirmed: `is stored`, `has ended`.
        what: &'static str,
        /// Why.
        error: StoreError,
    },
    /// An operation on script objects failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The job is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidJob),
    /// A name is not legal.
    #[error(transparent)]
    Name(#[from] IllegalName),
    /// The content of a file cannot be kept or had.
    #[error("a file of the job: {0}")]
    File(#[from] ArtifactError),
    /// The job does not exist.
    #[error("no such job: {0}")]
    NoSuchJob(JobId),
    /// It is a graph or batch.
    #[error("no job, but a graph or batch: {0}; hero graph show {0}, hero graph wait {0}")]
    IsGraph(JobId),
    /// Several jobs or graphs have ids that begin so.
    #[error(
        "several {of}s have ids that begin with {part}: {}{}; write more of the id{}",
        listed(.first),
        if *.more { " …" } else { "" },
        if .first.contains(.part) { format!(", or id:{part}") } else { String::new() }
    )]
    AmbiguousId {
        /// `job` or `graph`.
        of: &'static str,
        /// The beginning.
        part: JobId,
        /// The first of them.
        first: Vec<JobId>,
        /// True if there are more.
        more: bool,
    },
    /// The beginning of an id is too short to be sure, or the id is not among those that were looked at.
    #[error(
        "cannot tell which {of} {part} is: only the latest {looked} of more {of}s were looked at; write \
         the whole id"
    )]
    ShortIdNotFound {
        /// `job` or `graph`.
        of: &'static str,
        /// The beginning.
        part: JobId,
        /// The number of jobs or graphs that were looked at.
        looked: usize,
    },
    /// The actor is not live.
    #[error("cannot reach actor {0}: it is not live; hero actor list shows the live ones")]
    NoSuchActor(ActorId),
    /// No machine has, or had, such an actor.
    #[error("no machine has, or had lately, an actor of {0}; hero machine list shows all machines")]
    NoMachine(String),
    /// The actor has not answered.
    #[error(
        "actor {actor} has not answered within {waited:.1?}; hero actor list shows its last heartbeat"
    )]
    NoPong {
        actor: ActorId,
        /// The time waited.
        waited: Duration,
    },
    /// The id is taken by another job.
    #[error("job id {0} is taken; leave out the id to get a new one")]
    IdTaken(JobId),
    /// A key of its queue has the wrong type.
    #[error("submitting a job: the key {0} has the wrong type; remove it")]
    BrokenQueue(String),
    /// A prerequisite does not exist.
    #[error("prerequisite {0} does not exist; submit it first")]
    UnknownPrerequisite(String),
    /// The id is one of a shard that the configuration does not have.
    #[error(transparent)]
    NoSuchShard(#[from] NoSuchShard),
    /// Its prerequisites are on different shards.
    #[error(
        "prerequisites {first} and {second} are on different shards; give the jobs the same shard_key"
    )]
    PrerequisitesApart {
        first: JobId,
        /// A prerequisite on another shard.
        second: JobId,
    },
    /// Its id or a prerequisite is on another shard than it, or than its graph.
    #[error(
        "{id} is on shard {of}, but the job or its graph on shard {shard}; give the jobs the same \
         shard_key, and no ids of other shards"
    )]
    OtherShard {
        id: JobId,
        of: Shard,
        /// The shard of the job.
        shard: Shard,
    },
    /// Another job that has not ended, or that is submitted with it, holds its unique key.
    #[error("its unique key is held by {}", holder_of_key(.0.as_ref()))]
    KeyHeld(Option<JobId>),
    /// One job of an atomic batch is rejected, so none was stored.
    #[error("{name}: {error}; none of the jobs was submitted")]
    Refused {
        /// Its index in the batch.
        place: usize,
        /// Its name in its graph, else its id.
        name: String,
        /// Why.
        error: Box<ClientError>,
    },
    /// The jobs of a batch wait for each other in a cycle; the first comes again at the end.
    #[error("jobs wait for each other in a cycle: {}", shown_cycle(.0))]
    Cycle(Vec<String>),
    /// A job of a graph waits for a job that is neither in the graph nor in Redis.
    #[error("job `{job}` waits for `{prerequisite}`, which is neither a job of the graph nor an \
             existing job{}", did_you_mean(.nearest.as_deref()))]
    UnknownInGraph {
        /// The job's name.
        job: String,
        /// The name or id of the prerequisite.
        prerequisite: String,
        /// The most similar name in the graph.
        nearest: Option<String>,
    },
    /// An atomic batch has too many jobs.
    #[error("{jobs} jobs are too many for one atomic batch: the limit is {most}")]
    TooMany {
        /// The number of jobs.
        jobs: usize,
        /// The limit.
        most: usize,
    },
    /// An atomic batch waits for too many jobs that were submitted before.
    #[error("the batch depends on {jobs} existing jobs; the limit is {most}")]
    TooManyOthers {
        /// The number of such prerequisites.
        jobs: usize,
        /// The limit.
        most: usize,
    },
    /// Several graphs or batches have the name.
    #[error(
        "several graphs have the name or the id {name}: {}; write `id:` and the id of one", listed(.first)
    )]
    AmbiguousGraphName { name: String, first: Vec<JobId> },
    /// The graph or batch does not exist.
    #[error("no such graph or batch: {0}; hero graph list shows the latest")]
    NoSuchGraph(JobId),
    /// Another graph or batch has the id.
    #[error("graph id {0} is taken; leave out the id to get a new one")]
    GraphTaken(JobId),
    /// The name belongs to no job of the graph, or to a job that would not run.
    #[error("cannot retry graph {graph}: `{step}` {why}")]
    Step {
        graph: JobId,
        /// The name that was given.
        step: String,
        /// The reason.
        why: String,
    },
    /// All machines of a periodic job are absent.
    #[error("no machine can run it; {0}; with expires the jobs wait for their return")]
    NoLiveMachine(String),
    /// A job of the graph runs.
    #[error("cannot delete graph {id}: its job {job} runs; stop it first: hero graph stop {id}")]
    GraphRuns {
        /// The graph or batch.
        id: JobId,
        job: JobId,
    },
    /// A rule pauses a queue that is to be resumed.
    #[error("queue {queue} stays paused, as {} are: {}", .rule.words(), .rule.resume())]
    PausedByRule { queue: Queue, rule: PauseRule },
    /// The job's state does not allow it.
    #[error("cannot {doing} job {id}: it is {status}")]
    WrongState {
        /// The operation.
        doing: &'static str,
        id: JobId,
        status: String,
    },
    /// The job cannot run again before a failed prerequisite.
    #[error(
        "cannot retry job {id}: it needs job {cause}, which failed; \
             retry both: hero job retry --with-dependents {cause}"
    )]
    FailedPrerequisite {
        id: JobId,
        /// Its prerequisite, or the job that made this one fail.
        cause: JobId,
    },
    /// The job cannot run again, as a prerequisite does not exist any more.
    #[error(
        "cannot retry job {id}: its prerequisite {lost} does not exist any more, so its output \
             is lost; submit both again"
    )]
    LostPrerequisite { id: JobId, lost: JobId },
    /// The job is not a dead letter.
    #[error("job {id} is not a dead letter: it is {status}; `hero job` is for all jobs")]
    NoDeadLetter {
        id: JobId,
        /// Its state.
        status: JobStatus,
    },
    /// The job ended in `error`.
    #[error("{error}")]
    JobFailed { id: JobId, error: String },
    /// The wait timed out. The job or graph goes on, as far as that is known.
    #[error("gave up waiting for {of} {id} after {waited:.1?}; {}", shown_course(.unknown.as_deref()))]
    GaveUp {
        /// `job` or `graph`.
        of: &'static str,
        /// The job, graph or batch.
        id: JobId,
        /// The time waited.
        waited: Duration,
        /// The reason why nobody knows whether it goes on.
        unknown: Option<String>,
    },
}

impl ClientError {
    /// Returns the exit code of the program `hero`.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Store(StoreError::Settings(_)) => Exit::Config,
            Self::Store(StoreError::NotPermitted { .. })
            | Self::Object(ObjectError::NotPermitted(_)) => Exit::NotPermitted,
            Self::Store(_)
            | Self::Unsure { .. }
            | Self::Unconfirmed { .. }
            | Self::BrokenQueue(_)
            | Self::Object(ObjectError::Unavailable(_)) => Exit::Unavailable,
            Self::Invalid(_)
            | Self::Object(_)
            | Self::Name(_)
            | Self::IdTaken(_)
            | Self::UnknownPrerequisite(_)
            | Self::NoSuchShard(_)
            | Self::PrerequisitesApart { .. }
            | Self::OtherShard { .. }
            | Self::AmbiguousId { .. }
            | Self::AmbiguousGraphName { .. }
            | Self::KeyHeld(_)
            | Self::Cycle(_)
            | Self::UnknownInGraph { .. }
            | Self::TooMany { .. }
            | Self::TooManyOthers { .. }
            | Self::PausedByRule { .. }
            | Self::WrongState { .. }
            | Self::GraphTaken(_)
            | Self::GraphRuns { .. }
            | Self::Step { .. }
            | Self::FailedPrerequisite { .. }
            | Self::LostPrerequisite { .. }
            | Self::NoDeadLetter { .. } => Exit::Data,
            Self::Refused { error, .. } => error.exit(),
            Self::File(error) => error.exit(),
            Self::NoSuchJob(_)
            | Self::IsGraph(_)
            | Self::ShortIdNotFound { .. }
            | Self::NoSuchActor(_)
            | Self::NoMachine(_)
            | Self::NoLiveMachine(_)
            | Self::NoSuchGraph(_) => Exit::NotFound,
            Self::JobFailed { .. } => Exit::JobError,
            Self::GaveUp { .. } | Self::NoPong { .. } => Exit::GaveUp,
        }
    }
}

fn shown_course(unknown: Option<&str>) -> String {
    unknown.map_or_else(
        || "it goes on".to_owned(),
        |reason| format!("whether it goes on is not known: {reason}"),
    )
}

fn and_others(number: usize) -> String {
    match number {
        0 => String::new(),
        number => format!(" and {}", counted(number as u64, "other", "others")),
    }
}

fn listed(ids: &[JobId]) -> String {
    ids.iter().map(JobId::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns a cycle as text; a long one by its two ends.
fn shown_cycle(names: &[String]) -> String {
    const SHOWN: usize = 20;
    if names.len() <= SHOWN {
        return names.join(" → ");
    }
    let (first, last) = (&names[..SHOWN / 2], &names[names.len() - SHOWN / 2..]);
    format!("{} → … {} more … → {}", first.join(" → "), names.len() - SHOWN, last.join(" → "))
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        let hint = match &error {
            ClientError::Store(error) if error.lacks_password() => {
                "; this command has no password: redis.password_file of hero.toml(5) names a file with it, and root \
                 reads /etc/credstore/redis-password as the units do"
            }
            _ => "",
        };
        Self::new(error.exit(), format!("{error}{hint}"))
    }
}
