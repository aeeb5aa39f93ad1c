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
            | Self::WrongState { .. }
            | Self::NoDeadLetter { .. } => Exit::Data,
            Self::NoSuchJob(_) => Exit::NotFound,
            Self::JobFailed { .. } => Exit::JobError,
            Self::GaveUp { .. } => Exit::GaveUp,
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Self::new(error.exit(), error.to_string())
    }
}
