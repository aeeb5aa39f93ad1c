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

pub(crate) type Result<T, E = ClientError> = std::result::Result<T, E>;

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
        error: StoreError,
    },
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    Invalid(#[from] InvalidJob),
    #[error(transparent)]
    Name(#[from] IllegalName),
    #[error("a file of the job: {0}")]
    File(#[from] ArtifactError),
    #[error("no such job: {0}")]
    NoSuchJob(JobId),
    #[error("no job, but a graph or batch: {0}; hero graph show {0}, hero graph wait {0}")]
    IsGraph(JobId),
    #[error(
        "several {of}s have ids that begin with {part}: {}{}; write more of the id{}",
        listed(.first),
        if *.more { " …" } else { "" },
        if .first.contains(.part) { format!(", or id:{part}") } else { String::new() }
    )]
    AmbiguousId {
        /// `job` or `graph`.
        of: &'static str,
        part: JobId,
        first: Vec<JobId>,
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
        part: JobId,
        looked: usize,
    },
    #[error("cannot reach actor {0}: it is not live; hero actor list shows the live ones")]
    NoSuchActor(ActorId),
    #[error("no machine has, or had lately, an actor of {0}; hero machine list shows all machines")]
    NoMachine(String),
    #[error(
        "actor {actor} has not answered within {waited:.1?}; hero actor list shows its last heartbeat"
    )]
    NoPong { actor: ActorId, waited: Duration },
    #[error("job id {0} is taken; leave out the id to get a new one")]
    IdTaken(JobId),
    #[error("submitting a job: the key {0} has the wrong type; remove it")]
    BrokenQueue(String),
    #[error("prerequisite {0} does not exist; submit it first")]
    UnknownPrerequisite(String),
    #[error(transparent)]
    NoSuchShard(#[from] NoSuchShard),
    #[error(
        "prerequisites {first} and {second} are on different shards; give the jobs the same shard_key"
    )]
    PrerequisitesApart { first: JobId, second: JobId },
    #[error(
        "{id} is on shard {of}, but the job or its graph on shard {shard}; give the jobs the same \
         shard_key, and no ids of other shards"
    )]
    OtherShard { id: JobId, of: Shard, shard: Shard },
    #[error("its unique key is held by {}", holder_of_key(.0.as_ref()))]
    KeyHeld(Option<JobId>),
    #[error("{name}: {error}; none of the jobs was submitted")]
    Refused {
        /// Its index in the batch.
        place: usize,
        /// Its name in its graph, else its id.
        name: String,
        error: Box<ClientError>,
    },
    /// The jobs of a batch wait for each other in a cycle; the first comes again at the end.
    #[error("jobs wait for each other in a cycle: {}", shown_cycle(.0))]
    Cycle(Vec<String>),
    #[error("job `{job}` waits for `{prerequisite}`, which is neither a job of the graph nor an \
             existing job{}", did_you_mean(.nearest.as_deref()))]
    UnknownInGraph {
        job: String,
        /// The name or id of the prerequisite.
        prerequisite: String,
        nearest: Option<String>,
    },
    #[error("{jobs} jobs are too many for one atomic batch: the limit is {most}")]
    TooMany { jobs: usize, most: usize },
    #[error("the batch depends on {jobs} existing jobs; the limit is {most}")]
    TooManyOthers { jobs: usize, most: usize },
    #[error(
        "several graphs have the name or the id {name}: {}; write `id:` and the id of one", listed(.first)
    )]
    AmbiguousGraphName { name: String, first: Vec<JobId> },
    #[error("no such graph or batch: {0}; hero graph list shows the latest")]
    NoSuchGraph(JobId),
    #[error("graph id {0} is taken; leave out the id to get a new one")]
    GraphTaken(JobId),
    /// The name belongs to no job of the graph, or to a job that would not run.
    #[error("cannot retry graph {graph}: `{step}` {why}")]
    Step { graph: JobId, step: String, why: String },
    /// All machines of a periodic job are absent.
    #[error("no machine can run it; {0}; with expires the jobs wait for their return")]
    NoLiveMachine(String),
    #[error("cannot delete graph {id}: its job {job} runs; stop it first: hero graph stop {id}")]
    GraphRuns { id: JobId, job: JobId },
    #[error("queue {queue} stays paused, as {} are: {}", .rule.words(), .rule.resume())]
    PausedByRule { queue: Queue, rule: PauseRule },
    #[error("cannot {doing} job {id}: it is {status}")]
    WrongState { doing: &'static str, id: JobId, status: String },
    #[error(
        "cannot retry job {id}: it needs job {cause}, which failed; \
             retry both: hero job retry --with-dependents {cause}"
    )]
    FailedPrerequisite {
        id: JobId,
        /// Its prerequisite, or the job that made this one fail.
        cause: JobId,
    },
    #[error(
        "cannot retry job {id}: its prerequisite {lost} does not exist any more, so its output \
             is lost; submit both again"
    )]
    LostPrerequisite { id: JobId, lost: JobId },
    #[error("job {id} is not a dead letter: it is {status}; `hero job` is for all jobs")]
    NoDeadLetter { id: JobId, status: JobStatus },
    #[error("{error}")]
    JobFailed { id: JobId, error: String },
    /// The wait timed out. The job or graph goes on, as far as that is known.
    #[error("gave up waiting for {of} {id} after {waited:.1?}; {}", shown_course(.unknown.as_deref()))]
    GaveUp {
        /// `job`, `graph` or `task`.
        of: &'static str,
        id: JobId,
        waited: Duration,
        /// The reason why nobody knows whether it goes on.
        unknown: Option<String>,
    },
}

impl ClientError {
    /// Creates the error of a state that does not allow something.
    pub(super) fn wrong_state(doing: &'static str, id: &JobId, status: impl Into<String>) -> Self {
        Self::WrongState { doing, id: id.clone(), status: status.into() }
    }

    /// Creates the error of a submission of this job, and perhaps of others with it, that Redis did not take.
    pub(super) fn of_submission(id: &JobId, error: StoreError) -> Self {
        match error {
            StoreError::Unreachable { sent: true, .. } => Self::Unsure { id: id.clone(), error },
            error => Self::Store(error),
        }
    }

    /// Returns the exit code of the program `hero`.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Store(StoreError::Settings(_)) => Exit::Config,
            Self::Store(error) if error.is_login_refused() || error.is_access_refused() => {
                Exit::NotPermitted
            }
            Self::Object(ObjectError::NotPermitted(_)) => Exit::NotPermitted,
            Self::Store(_)
            | Self::Unsure { .. }
            | Self::Unconfirmed { .. }
            | Self::BrokenQueue(_)
            | Self::Object(ObjectError::Unavailable(_)) => Exit::Unavailable,
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
            // What was given, or the state of what it names, does not allow it.
            _ => Exit::Data,
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

/// Advice of a command behind the error of a Redis that wants a password.
pub const NO_PASSWORD: &str = "; this command has no password: redis.password_file of hero.toml(5) names a file with it, and root reads \
     /etc/credstore/redis-password as the units do";

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        let lacks_password = matches!(&error, ClientError::Store(error) if error.lacks_password());
        let hint = if lacks_password { NO_PASSWORD } else { "" };
        Self::new(error.exit(), format!("{error}{hint}"))
    }
}
