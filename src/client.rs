//! What an application calls: submit jobs, run them and wait, look at them, stop them.
//!
//! ```no_run
//! use std::time::Duration;
//! use hero::client::{Client, JobBuilder};
//! use hero::config::Config;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::open(&Config::load(None)?)?;
//! let job = JobBuilder::new("osis", "40 + 2").timeout(Duration::from_secs(5)).build()?;
//! let output = client.run_job_and_await_result(job, None).await?;
//! assert_eq!(output, "42");
//! # Ok(()) }
//! ```
//!
//! A [`Client`] is cheap to clone and may be shared by any number of tasks; it needs a Tokio
//! runtime with I/O and time. Lost connections are made again by the next call. No call blocks
//! the runtime, and none retries by itself: an error says whether it is worth trying again.

mod builder;

mod dead;
mod dependents;
mod error;
mod events;

mod logs;
mod many;
mod migration;
mod objects;
mod periodic_jobs;
mod queues;
mod wait;

pub use builder::JobBuilder;
pub(crate) use builder::time_after;
pub use dead::DeadTally;
pub use dependents::{Branch, TreeDirection};
pub use error::ClientError;
pub use events::EventFollower;
pub use logs::LogFollower;
pub use many::{Graph, GraphNode};
pub use migration::blockers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Config, JobConfig, RedisConfig};
use crate::proto::job::{InvalidJob, Job, JobId, JobStatus};
use crate::proto::message::Control;
use crate::proto::target::{ActorId, ScriptType};
use crate::store::{
    DeleteOutcome, JobSummary, ListQuery, Page, PresenceOf, RetryOutcome, StopOutcome, Store,
    StoreError, Submitted,
};
use wait::Waiters;

/// A handle on the jobs of one namespace of one Redis.
#[derive(Clone)]
pub struct Client {
    store: Store,
    job: JobConfig,
    waiters: Arc<Waiters>,
}

impl Client {
    /// A client with the settings of a configuration. Connects with its first call.
    ///
    /// # Errors
    /// [`ClientError::Store`] if the URL or the password file cannot be used.
    pub fn open(config: &Config) -> Result<Self, ClientError> {
        let store = Store::open(&config.redis)?
            .with_events(config.job.events)
            .beside(config.supervisor.served_legacy_queues())?;
        Ok(Self::on(store, config.job.clone()))
    }

    /// The same from the two tables it needs: where Redis is, and the bounds of jobs. Knows of no
    /// queues with older names.
    ///
    /// # Errors
    /// [`ClientError::Store`] if the URL or the password file cannot be used.
    pub fn with(redis: &RedisConfig, job: JobConfig) -> Result<Self, ClientError> {
        let store = Store::open(redis)?.with_events(job.events);
        Ok(Self::on(store, job))
    }

    /// Asks Redis for a sign of life.
    ///
    /// # Errors
    /// [`ClientError::Store`] says why there is none.
    pub async fn ping(&self) -> Result<(), ClientError> {
        Ok(self.store.ping().await?)
    }

    /// What is wrong with how Redis treats a full memory, as a sentence for a person; `None` if
    /// nothing is, or it does not say.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn eviction_danger(&self) -> Result<Option<String>, ClientError> {
        Ok(self.store.eviction_danger().await?)
    }

    /// Stores a job without sending it on its way; [`Client::start_job`] does that.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub async fn create_job(&self, job: Job) -> Result<JobId, ClientError> {
        self.store_one(job, false).await
    }

    /// Sends a created job on its way: to wait for its prerequisites, to the schedule, or to its
    /// queue. Returns its new state.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], or [`ClientError::WrongState`] if it was started before.
    pub async fn start_job(&self, id: &JobId) -> Result<JobStatus, ClientError> {
        let outcome = self.store.start(id, self.job.kept()).await?;
        moved("start", id, outcome)
    }

    /// Stores a job and sends it on its way, in one atomic step. Returns its id; if its unique
    /// key is held by a job that is still on its way, that job's id, and nothing is stored.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] if it has no script type or breaks a bound of `[job]`,
    /// [`ClientError::IdTaken`], [`ClientError::UnknownPrerequisite`], [`ClientError::Store`].
    pub async fn submit(&self, job: Job) -> Result<JobId, ClientError> {
        self.store_one(job, true).await
    }

    async fn store_one(&self, job: Job, start: bool) -> Result<JobId, ClientError> {
        self.check(&job)?;
        let job = [job];
        let submitted = self.store.submit(&job, start, self.job.kept()).await;
        let submitted = submitted.map_err(|error| match error {
            StoreError::Unreachable { sent: true, .. } => {
                ClientError::Unsure { id: job[0].id.clone(), error }
            }
            error => ClientError::Store(error),
        })?;
        let what = submitted.into_iter().next().unwrap_or(Submitted::Exists);
        accepted(&job[0], what)
    }

    /// What can be told of a job before it is sent.
    ///
    /// # Errors
    /// [`InvalidJob`] if it has no script type or breaks a bound of `[job]`.
    pub fn check(&self, job: &Job) -> Result<(), InvalidJob> {
        if job.spec.script_type.is_none() {
            return Err(InvalidJob::new("script_type", "is missing"));
        }
        job.spec.check(&self.job.bounds())
    }

    /// Submits a job and waits for its end. Returns its output. `patience` bounds the wait; the
    /// job goes on when it is over. Without it, waits as long as it takes.
    ///
    /// # Errors
    /// As [`Client::submit`]; [`ClientError::JobFailed`] if it ends in `error`;
    /// [`ClientError::GaveUp`].
    pub async fn run_job_and_await_result(
        &self,
        job: Job,
        patience: Option<Duration>,
    ) -> Result<String, ClientError> {
        let id = self.submit(job).await?;
        self.await_result(&id, patience).await
    }

    /// Waits for the end of a job and returns its output, whichever kind of actor runs it: one
    /// that pushes replies, or one that only writes the job's hash.
    ///
    /// The reply goes to one waiter; others learn of the end from the hash, within a second.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], [`ClientError::JobFailed`], [`ClientError::GaveUp`].
    pub async fn await_result(
        &self,
        id: &JobId,
        patience: Option<Duration>,
    ) -> Result<String, ClientError> {
        self.waiters.wait(id, patience).await
    }

    /// Reads a job, whole.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] if its hash is no job.
    pub async fn get_job(&self, id: &JobId) -> Result<Job, ClientError> {
        let job = self.store.job(id).await?.ok_or_else(|| ClientError::NoSuchJob(id.clone()))?;
        Ok(job?)
    }

    /// Reads the state of a job.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`].
    pub async fn get_job_status(&self, id: &JobId) -> Result<JobStatus, ClientError> {
        Ok(self.outcome(id).await?.0)
    }

    /// Reads the output of a job; `None` unless it finished.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::JobFailed`] if it ended in `error`.
    pub async fn get_job_output(&self, id: &JobId) -> Result<Option<String>, ClientError> {
        match self.outcome(id).await? {
            (JobStatus::Finished, output) => Ok(Some(output.unwrap_or_default())),
            (JobStatus::Error, error) => {
                let error = error.unwrap_or_default();
                Err(ClientError::JobFailed { id: id.clone(), error })
            }
            _ => Ok(None),
        }
    }

    async fn outcome(&self, id: &JobId) -> Result<(JobStatus, Option<String>), ClientError> {
        self.store.outcome(id).await?.ok_or_else(|| ClientError::NoSuchJob(id.clone()))
    }

    /// One page of jobs; the page names where the next one begins.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_jobs(&self, query: &ListQuery) -> Result<Page<JobSummary>, ClientError> {
        Ok(self.store.list_jobs(query).await?)
    }

    /// Stops a job: at once if it has not started, by its actor if it runs. Returns whether it
    /// has ended by this; if not, its actor has been told.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it had ended before, or runs on
    /// an actor that did not say who it is.
    pub async fn stop_job(&self, id: &JobId) -> Result<bool, ClientError> {
        let wrong = |status: &str| ClientError::WrongState {
            doing: "stop",
            id: id.clone(),
            status: status.to_owned(),
        };
        match self.store.stop(id, self.job.kept(), None).await? {
            StopOutcome::Stopped => Ok(true),
            StopOutcome::Requested | StopOutcome::Own => Ok(false),
            StopOutcome::Unowned => Err(wrong("started by an actor that its hash does not name")),
            StopOutcome::Ended => Err(wrong("over already")),
            StopOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
        }
    }

    /// Runs a job that has ended once more, attempts and crashes counted anew.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it has not ended.
    pub async fn retry_job(&self, id: &JobId) -> Result<JobStatus, ClientError> {
        moved("retry", id, self.store.retry(id).await?)
    }

    /// Deletes a job that does not run, with its log. Dependents that wait for it fail.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it runs.
    pub async fn delete_job(&self, id: &JobId) -> Result<(), ClientError> {
        match self.store.delete(id, self.job.kept()).await? {
            DeleteOutcome::Deleted => Ok(()),
            DeleteOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
            DeleteOutcome::Running => {
                let status = "started; stop it first".to_owned();
                Err(ClientError::WrongState { doing: "delete", id: id.clone(), status })
            }
        }
    }

    /// Deletes every job that does not run. Returns how many.
    ///
    /// # Errors
    /// [`ClientError::Store`], with the jobs before it deleted.
    pub async fn clear_all_jobs(&self) -> Result<u64, ClientError> {
        let mut deleted = 0;
        let states = JobStatus::ALL.into_iter().filter(|status| *status != JobStatus::Started);
        for status in states {
            let mut query = ListQuery {
                status: Some(status),
                limit: ListQuery::LIMIT_MAX,
                ..ListQuery::default()
            };
            loop {
                let page = self.store.list_jobs(&query).await?;
                for job in &page.items {
                    let outcome = self.store.delete(&job.id, self.job.kept()).await?;
                    deleted += u64::from(outcome == DeleteOutcome::Deleted);
                }
                match page.next {
                    Some(next) => query.cursor = Some(next),
                    None => break,
                }
            }
        }
        Ok(deleted)
    }

    /// The live actors, in order of their names; of one type, if one is named.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_actors(
        &self,
        script_type: Option<&ScriptType>,
    ) -> Result<Vec<PresenceOf>, ClientError> {
        Ok(self.store.actors(script_type).await?)
    }

    /// The counters of a script type: submitted, started, finished, failed, retried, dead,
    /// skipped.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn counters(
        &self,
        script_type: &ScriptType,
    ) -> Result<BTreeMap<String, u64>, ClientError> {
        Ok(self.store.counters(script_type).await?)
    }

    /// Tells one actor something: to drain, to resume, to shut down.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn tell_actor(&self, actor: &ActorId, message: &Control) -> Result<(), ClientError> {
        Ok(self.store.tell_actor(actor, message).await?)
    }
}

fn accepted(job: &Job, what: Submitted) -> Result<JobId, ClientError> {
    match what {
        Submitted::Accepted(_) => Ok(job.id.clone()),
        Submitted::Duplicate(id) => Ok(id),
        Submitted::Exists => Err(ClientError::IdTaken(job.id.clone())),
        Submitted::UnknownPrerequisite(id) => Err(ClientError::UnknownPrerequisite(id)),
        Submitted::BrokenQueue(key) => Err(ClientError::Store(StoreError::Failed {
            doing: "submitting a job",
            reason: format!("the key {key} should be a list and is something else; remove it"),
        })),
    }
}

fn moved(doing: &'static str, id: &JobId, outcome: RetryOutcome) -> Result<JobStatus, ClientError> {
    let wrong = |status: String| ClientError::WrongState { doing, id: id.clone(), status };
    match outcome {
        RetryOutcome::Moved(status) => Ok(status),
        RetryOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
        RetryOutcome::Refused(status) => Err(wrong(status.to_string())),
        RetryOutcome::Illegal => Err(wrong("for no legal queue".to_owned())),
        RetryOutcome::Duplicate(other) => {
            Err(wrong(format!("unique, and job {other} holds its key")))
        }
    }
}
