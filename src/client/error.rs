//! Why a call of the client failed, and the exit code that the program gives it.

use std::time::Duration;

use crate::error::{Error, Exit};
use crate::proto::job::{InvalidJob, JobId, JobStatus};
use crate::proto::object::ObjectError;
use crate::proto::target::IllegalName;
use crate::store::StoreError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Redis: away, refusing, or answering oddly.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The job was sent to Redis, and the answer never came.
    #[error(
        "submitting job {id}: {error}; whether it was accepted is not known: hero job show {id}"
    )]
    Unsure {
        /// The job, if there is one.
        id: JobId,
        /// What became of the connection.
        error: StoreError,
    },
    /// What was asked of the objects of scripts cannot be done.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The job cannot be submitted as it is.
    #[error(transparent)]
    Invalid(#[from] InvalidJob),
    /// A name breaks its form.
    #[error(transparent)]
    Name(#[from] IllegalName),
    /// There is no such job.
    #[error("no such job: {0}")]
    NoSuchJob(JobId),
    /// The id is taken by another job.
    #[error("job id {0} is taken; leave out the id to get a new one")]
    IdTaken(JobId),
    /// A prerequisite does not exist.
    #[error("prerequisite {0} does not exist; submit it first")]
    UnknownPrerequisite(String),
    /// Another job that is on its way, or is to be submitted with it, holds its unique key.
    #[error("its unique key is held by job {0}")]
    KeyHeld(JobId),
    /// One of many jobs is refused, and so none was stored.
    #[error("{name}: {error}; none of the jobs was submitted")]
    Refused {
        /// Its place among them, from 0.
        place: usize,
        /// Its name in its graph, else its id.
        name: String,
        /// Why.
        error: Box<ClientError>,
    },
    /// Jobs that are to be submitted wait for each other in a circle; the first is named again at
    /// the end.
    #[error("jobs wait for each other in a circle: {}", circle(.0))]
    Cycle(Vec<String>),
    /// A job of a graph waits for one that is neither in the graph nor anywhere else.
    #[error("job `{job}` waits for `{prerequisite}`, which is neither a job of the graph nor one \
             that exists{}", did_you_mean(.nearest.as_deref()))]
    UnknownInGraph {
        /// The job's name.
        job: String,
        /// What it waits for.
        prerequisite: String,
        /// The name in the graph that is most like it.
        nearest: Option<String>,
    },
    /// More jobs than can be submitted all or none.
    #[error("{jobs} jobs are too many to be submitted all or none: {most} at the most")]
    TooMany {
        /// How many.
        jobs: usize,
        /// How many there may be.
        most: usize,
    },
    /// They wait for more jobs that were submitted before than can be looked at in one step.
    #[error("the jobs wait {jobs} times for jobs submitted before: {most} times at the most")]
    TooManyOthers {
        /// How often.
        jobs: usize,
        /// How often they may.
        most: usize,
    },
    /// The job's state does not allow it.
    #[error("cannot {doing} job {id}: it is {status}")]
    WrongState {
        /// What was asked for.
        doing: &'static str,
        /// The job.
        id: JobId,
        /// Where it stands.
        status: String,
    },
    /// The job is no dead letter.
    #[error("job {id} is no dead letter: it is {status}; `hero job` looks after all jobs")]
    NoDeadLetter {
        /// The job.
        id: JobId,
        /// Where it stands.
        status: JobStatus,
    },
    /// The job ended in `error`.
    #[error("{error}")]
    JobFailed {
        /// The job.
        id: JobId,
        /// Its error.
        error: String,
    },
    /// The time to wait is over. The job goes on.
    #[error("gave up waiting for job {id} after {waited:.1?}; it goes on")]
    GaveUp {
        /// The job.
        id: JobId,
        /// How long was waited.
        waited: Duration,
    },
}

impl ClientError {
    /// The exit code that the program `hero` gives it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Store(StoreError::Settings(_)) => Exit::Config,
            Self::Store(StoreError::NotPermitted { .. }) => Exit::NotPermitted,
            Self::Store(_) | Self::Unsure { .. } | Self::Object(ObjectError::Unavailable(_)) => {
                Exit::Unavailable
            }
            Self::Invalid(_)
            | Self::Object(_)
            | Self::Name(_)
            | Self::IdTaken(_)
            | Self::UnknownPrerequisite(_)
            | Self::KeyHeld(_)
            | Self::Cycle(_)
            | Self::UnknownInGraph { .. }
            | Self::TooMany { .. }
            | Self::TooManyOthers { .. }
            | Self::WrongState { .. }
            | Self::NoDeadLetter { .. } => Exit::Data,
            Self::Refused { error, .. } => error.exit(),
            Self::NoSuchJob(_) => Exit::NotFound,
            Self::JobFailed { .. } => Exit::JobError,
            Self::GaveUp { .. } => Exit::GaveUp,
        }
    }
}

/// A long circle by its two ends.
fn circle(names: &[String]) -> String {
    const SHOWN: usize = 20;
    if names.len() <= SHOWN {
        return names.join(" → ");
    }
    let (first, last) = (&names[..SHOWN / 2], &names[names.len() - SHOWN / 2..]);
    format!("{} → … {} more … → {}", first.join(" → "), names.len() - SHOWN, last.join(" → "))
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Self::new(error.exit(), error.to_string())
    }
}
