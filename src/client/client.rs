//! The interface for applications: submits, runs, waits for, reads and stops jobs.
//!
//! `examples/submit.rs` is a program that submits, follows and waits.
//!
//! ```no_run
//! use std::time::Duration;
//! use hero_client::{Client, JobBuilder};
//! use hero_client::config::Config;
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
//! runtime with I/O and time. The next call restores a lost connection. No call blocks
//! the runtime or retries by itself: an error says whether a retry makes sense.

extern crate self as client;
use hero_artifacts as artifacts;
use hero_error as error;
use hero_store as store;
// Programs need the configuration and the job as well.
pub use crate::proto::keys::{
    job_hash_key, reply_queue_key, work_queue_group, work_queue_instance, work_queue_type,
};
pub use hero_config as config;
pub use hero_proto as proto;

mod actors;
mod added_cron;
mod audit;
mod backup;
mod builder;
mod change_many;
mod changes;
mod circles;
mod client_error;
mod completion;
mod cron_documents;
mod cron_runs;
mod dependents;
mod documents;
mod files;
mod follow;
mod graph;
mod graph_documents;
mod graphs;
mod machines;
mod many;
mod migration;
mod named_scripts;
mod new_batch;
mod notifications;
mod objects;
mod periodic_jobs;
mod placement;
mod queues;
mod run;
mod searches;
mod session;
mod short_ids;
mod stats;
mod status;
mod subjects;
mod tokens;
mod wait;

pub use actors::UnreachedShard;
pub use audit::{AUDIT_LOST, AuditFilter, host_name};
pub use backup::{BackupError, BackupReader, BackupWriter, Restored, restore};
pub use builder::{JobBuilder, job_of_members, members_of_line};
pub use change_many::{ChangedJob, JobChange, JobValues, ManyChanged, UnchangedJob};
pub(crate) use client_error::Result;
pub use client_error::{ClientError, NO_PASSWORD};
pub use completion::{Signer, is_repeated};
pub use cron_documents::{
    FiringDocument, LastFiringDocument, PeriodicJobDocument, PeriodicJobHistoryDocument,
    SpreadDocument,
};
pub use cron_runs::{BACKFILL_MAX, BackfillPeriod, BackfilledFiring};
pub use dependents::{Branch, GraphJob, JobGraph, JobTrees};
pub use documents::{
    ActorDocument, LimitDocument, PlaceStatsDocument, QueueDocument, StatsBy, StatsDocument,
    TimesDocument, TypeStatsDocument,
};
pub use files::{FilesByPlace, JobFile};
pub use follow::{EventFollower, JobFollower, JobNews, LogFollower};
pub use graph::{Graph, GraphNode};
pub use graph_documents::{
    CallbackJob, GraphChange, GraphDocument, GraphProblem, JobOfGraph, JobOfGraphDocument,
};
pub use graphs::GraphRetry;
pub use machines::{FleetMember, MachineActorDocument, MachineDocument, machines_of};
pub use migration::blockers;
pub use named_scripts::{PublishedDocument, ScriptDocument, ScriptTextDocument};
pub use new_batch::{NewBatch, await_ends};
pub use notifications::{HeldMessage, LatestDeliveries};
pub use run::AwaitedJob;
pub use searches::{ErrorGroupDocument, ErrorGroupsDocument};
pub use stats::{AskedPlaces, Counters, PeriodStats, SampleDocument, SamplesDocument};
pub use status::ShardServer;
pub use subjects::{
    ActorClient, AuditClient, CronClient, EventClient, FileClient, GraphClient, JobClient,
    LogClient, MachineClient, MigrationClient, NotificationClient, ObjectClient, QueueClient,
    ScriptClient, SessionClient, StatsClient, SystemClient, TokenClient,
};
pub use tokens::{NewToken, Token};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{Config, JobConfig, RedisConfig};
use crate::proto::audit::Author;
use crate::proto::job::{
    InvalidJob, Job, JobFiles, JobId, JobOutput, JobStatus, OnDuplicate, holder_of_key,
};
use crate::proto::target::ScriptType;
use crate::proto::text::text_of;
use crate::store::{JobSummary, ListQuery, Page, RetryOutcome, Shards, Store, Submitted};
use wait::{STORED, Waiters, confirmed, will_confirm};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Submission {
    /// The job is stored and not started.
    Create,
    /// It starts; nobody waits for its end, so it pushes no reply.
    Start,
    /// It starts, and pushes a reply to its submitter, who waits.
    Run,
}

/// A handle on the jobs of one system: of its namespace, and of its further shards if it has some.
#[derive(Clone)]
pub struct Client {
    /// The store of the home shard.
    store: Store,
    shards: Shards,
    job: JobConfig,
    waiters: Arc<[Waiters]>,
    /// The name of the brokers of RabbitMQ in Redis's keys, if they are configured.
    broker_scope: Option<Arc<str>>,
    /// The author of its changes, for their record.
    author: Arc<Author>,
    signer: Option<Arc<Signer>>,
}

impl Client {
    /// Creates a client from a configuration. Connects with its first call.
    ///
    /// # Errors
    /// [`ClientError::Store`] if the URL or the password file cannot be used.
    pub fn open(config: &Config) -> Result<Self> {
        let shards = Shards::open(&config.redis, |store| {
            store.of_jobs(&config.job).with_legacy_queues(config.supervisor.served_legacy_queues())
        })?;
        let scope = (!config.amqp.url.is_empty()).then(|| config.amqp.scope().into());
        Ok(Self { broker_scope: scope, ..Self::on(&shards, config.job.clone()) })
    }

    /// Creates a client from the two tables that it needs: `[redis]` and `[job]`. It serves no
    /// legacy queues.
    ///
    /// # Errors
    /// [`ClientError::Store`] if the URL or the password file cannot be used.
    pub fn with(redis: &RedisConfig, job: JobConfig) -> Result<Self> {
        let shards = Shards::open(redis, |store| Ok(store.of_jobs(&job)))?;
        Ok(Self::on(&shards, job))
    }

    /// Takes other addresses or another login of the same shards, or reads the files again that the same settings
    /// name.
    pub fn change_login(&self, redis: &RedisConfig) -> Result<()> {
        Ok(self.shards.change_login(redis)?)
    }

    /// Pings the Redis of every shard.
    pub async fn ping(&self) -> Result<()> {
        self.shards.each(Store::ping).await?;
        Ok(())
    }

    /// Stores a job without starting it; [`Client::start_job`] does that.
    pub async fn create_job(&self, job: Job) -> Result<JobId> {
        self.create_with_files(job, &JobFiles::default()).await
    }

    /// Starts a created job: it waits for its prerequisites or its time, or goes to its queue.
    /// Returns its new state.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], or [`ClientError::WrongState`] if it was started before.
    pub async fn start_job(&self, id: &JobId) -> Result<JobStatus> {
        let store = self.of(id)?;
        let status = moved("start", id, store.jobs().start(id, self.job.kept()).await?)?;
        if store.acks().confirms_end(id).await? {
            confirmed(store, std::slice::from_ref(id), STORED).await?;
        }
        Ok(status)
    }

    /// Stores and starts a job in one atomic step. Returns its id. If another job holds its unique
    /// key, returns that job's id and stores nothing, unless its `on_duplicate` says otherwise.
    ///
    /// # Errors
    /// [`ClientError::KeyHeld`] if `on_duplicate` is `reject`,
    /// [`ClientError::Invalid`] if it has no script type or breaks a bound of `[job]`,
    /// [`ClientError::IdTaken`], [`ClientError::UnknownPrerequisite`], [`ClientError::Store`].
    pub async fn submit(&self, job: Job) -> Result<JobId> {
        // A job is large: the futures of callers stay small.
        Box::pin(self.submit_with_files(job, &JobFiles::default())).await
    }

    fn waiters(&self, id: &JobId) -> Result<&Waiters> {
        let shard = usize::from(self.of(id)?.shard().number());
        Ok(self.waiters.get(shard).unwrap_or(&self.waiters[0]))
    }

    async fn store_one(&self, store: &Store, job: Job, start: bool) -> Result<JobId> {
        let job = [job];
        let job = self.completed(store, &job).await?;
        let confirms = will_confirm(store, &job).await?;
        let submitted = store.jobs().submit(&job, start, self.job.kept()).await;
        let submitted = submitted.map_err(|error| ClientError::of_submission(&job[0].id, error))?;
        let what = submitted.into_iter().next().unwrap_or(Submitted::Exists);
        let id = accepted(&job[0], what)?;
        if confirms {
            confirmed(store, std::slice::from_ref(&id), STORED).await?;
        }
        Ok(id)
    }

    /// Checks a job before it is sent.
    ///
    /// # Errors
    /// [`InvalidJob`] if it has no script type, an id of the supervisors or breaks a bound of `[job]`.
    pub fn check(&self, job: &Job) -> Result<(), InvalidJob> {
        Self::check_id(job)?;
        if job.spec.script_type.is_none() && job.spec.unresolved().is_none() {
            return Err(InvalidJob::new("script_type", "is missing"));
        }
        job.spec.check_uniqueness()?;
        job.spec.check(&self.job.bounds())
    }

    /// Reads a job.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] if its hash cannot be parsed.
    pub async fn get_job(&self, id: &JobId) -> Result<Job> {
        let job =
            self.of(id)?.jobs().job(id).await?.ok_or_else(|| ClientError::NoSuchJob(id.clone()))?;
        Ok(job?)
    }

    /// Reads the state of a job.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`].
    pub async fn get_job_status(&self, id: &JobId) -> Result<JobStatus> {
        self.of(id)?.jobs().state(id).await?.ok_or_else(|| ClientError::NoSuchJob(id.clone()))
    }

    /// Reads the output of a job; `None` unless it finished.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::JobFailed`] if it ended in `error`.
    pub async fn get_job_output(&self, id: &JobId) -> Result<Option<JobOutput>> {
        match self.outcome(id).await? {
            (JobStatus::Finished, output) => Ok(Some(output.unwrap_or_default().into())),
            (JobStatus::Error, error) => {
                let error = text_of(&error.unwrap_or_default());
                Err(ClientError::JobFailed { id: id.clone(), error })
            }
            _ => Ok(None),
        }
    }

    async fn outcome(&self, id: &JobId) -> Result<(JobStatus, Option<Vec<u8>>)> {
        self.of(id)?.jobs().outcome(id).await?.ok_or_else(|| ClientError::NoSuchJob(id.clone()))
    }

    /// Lists one page of jobs; the page has the cursor of the next one.
    pub async fn list_jobs(&self, query: &ListQuery) -> Result<Page<JobSummary>> {
        Ok(self.shards.list_jobs(query).await?)
    }
}

impl SystemClient<'_> {
    /// Returns keys of Hero that have the wrong type, each as a sentence.
    pub async fn wrong_types(self) -> Result<Vec<String>> {
        Ok(self.client.shards.each(|store| store.redis().wrong_types()).await?.concat())
    }
}

impl StatsClient<'_> {
    pub async fn counters(self, script_type: &ScriptType) -> Result<BTreeMap<String, u64>> {
        let counters = self.counters_of(std::slice::from_ref(script_type)).await?;
        Ok(counters.into_iter().next().unwrap_or_default())
    }
}

fn accepted(job: &Job, what: Submitted) -> Result<JobId> {
    match what {
        Submitted::Accepted(_) => Ok(job.id.clone()),
        Submitted::Duplicate(Some(id)) if job.spec.on_duplicate != Some(OnDuplicate::Reject) => {
            Ok(id)
        }
        Submitted::Duplicate(holder) => Err(ClientError::KeyHeld(holder)),
        Submitted::Exists => Err(ClientError::IdTaken(job.id.clone())),
        Submitted::UnknownPrerequisite(id) => Err(ClientError::UnknownPrerequisite(id)),
        Submitted::BrokenQueue(key) => Err(ClientError::BrokenQueue(key)),
    }
}

fn moved(doing: &'static str, id: &JobId, outcome: RetryOutcome) -> Result<JobStatus> {
    let wrong = |status: &str| ClientError::wrong_state(doing, id, status);
    match outcome {
        RetryOutcome::Moved(status) => Ok(status),
        RetryOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
        RetryOutcome::Refused(status) => Err(wrong(status.as_str())),
        RetryOutcome::Illegal => Err(wrong("without a legal queue")),
        RetryOutcome::Duplicate(other) => {
            let holder = holder_of_key(other.as_ref());
            Err(wrong(&format!("blocked: {holder} holds its unique key")))
        }
        RetryOutcome::FailedPrerequisite(cause) => {
            Err(ClientError::FailedPrerequisite { id: id.clone(), cause })
        }
        RetryOutcome::LostPrerequisite(lost) => {
            Err(ClientError::LostPrerequisite { id: id.clone(), lost })
        }
    }
}
