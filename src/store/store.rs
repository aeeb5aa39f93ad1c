//! The only module that talks to Redis: connections, the atomic operations on jobs, and the
//! reading side of every list.

extern crate self as store;
use hero_config as config;
use hero_proto as proto;

mod ack;
mod acting;
mod adopt;
mod amqp;
mod atomic_batch;
mod attempt_ends;
mod attempts;
mod audit;
mod backoff;
mod backup;
mod batch_order;
mod blocker;
mod children;
mod circle_tasks;
mod cluster;
mod confirmations;
mod connection;
mod control;
mod cron_marks;
mod cron_state;
mod cursor;
mod dependents;
mod events;
mod external_redis;
mod files;
mod graphs;
mod inputs;
mod jobs;
mod legacy;
mod limits;
mod listing;
mod logs;
mod merged;
mod named_scripts;
mod newest;
mod node;
mod notifications;
mod objects;
mod outage;
mod outputs;
mod oversized_calls;
mod portions;
mod presence;
mod push_notifications;
mod queues;
mod raw_speed;
mod recovery;
mod redis_address;
mod redis_state;
mod restore;
mod schedule;
mod scripts;
mod search_jobs;
mod search_range;
mod sentinel;
mod server;
mod session;
mod shards;
mod short_ids;
mod skip_log;
mod statistics;
mod status;
mod store_error;
mod subjects;
mod submission;
mod text;
mod tokens;
mod write_trial;

pub use adopt::{Adopted, AdoptionRules, AfterAdoption, START_PATIENCE};
pub use amqp::{Attached, BrokerPresence, MessageEnd, MessageJob, TakenEnds};
pub use atomic_batch::{BatchOutcome, TOO_SLOW};
pub use attempt_ends::{AttemptEnd, Counts, Recorded, Verdict};
pub use attempts::{Attempt, Claim, Claimed, ReturnedAttempt};
pub use backoff::Backoff;
pub use backup::{BackupIndex, CopiedJob};
pub use blocker::{Blocker, QueuePlace, mismatch};
pub use children::ChildSubmitted;
pub use circle_tasks::TaskEnd;
pub use connection::{Blocking, Waker};
pub use control::{HandedOn, StopOutcome, Woken};
pub use cron_marks::{BackfilledJob, CronEdit, CronEdited, CronEnds, CronMark, FiredCron};
pub use cron_state::{
    Disabled, FIRINGS_MAX, Fired, FiredBatch, Firing, FiringOutcome, LastFiring, PeriodicJobState,
};
pub use cursor::Cursor;
pub use dependents::JobDependents;
pub use events::JobEvent;
pub use external_redis::ExternalRedis;
pub use files::FileSide;
pub use graphs::{GraphMember, GraphPage, NewGraph};
pub use inputs::{AbsentOutput, AskedInputs, NoInputs, Outputs};
pub use jobs::{DeleteOutcome, EditOutcome, JobEdit, RetriedGraph, RetryOutcome, TellOutcome};
pub use legacy::{CircleState, LegacyState, LegacySweep, TasksTaken};
pub use limits::{ClaimLimits, LimitState, Tended};
pub use listing::{JobSummary, ListQuery, Page};
pub use logs::{AppendedLogs, LogEntry, LogLine, RefusedLines};
pub use named_scripts::{ScriptEdit, ScriptEdited};
pub use notifications::{NotifySnapshot, ProblemMarks, ReadEvents, wanted_if_named};
pub use objects::{Reindexed, TendedIndex, TendedIndexes};
pub use outage::Outage;
pub use outputs::Outcome;
pub use presence::{Appearance, PresenceOf, Renewal, SeenActor};
pub use push_notifications::adopt_what_is_pushed;
pub use queues::{QueueState, UsedSelectors};
pub use recovery::{BootDeath, FoundUnindexed, JobNote, Recovered};
pub use redis_address::Reach;
pub use redis_state::{ClusterPlace, RedisRisk, RedisState, RiskKind};
pub use schedule::{CheckedJobs, Dispatched, FoundLate, Outlook, WorkKind};
pub use scripts::{LuaSource, lua_sources};
pub use search_jobs::{FoundJobs, IllegalFilter, JobSearch};
pub use session::{CallDelivery, NextCall};
pub use shards::Shards;
pub use short_ids::IdsFound;
pub use statistics::{CounterSample, Sampled};
pub use status::{EmptiedRedis, JobCounts, LastHour, TypeState};
pub(crate) use store_error::Result;
pub use store_error::{StoreError, is_about_login};
pub use subjects::{
    AckStore, ActorStore, AttemptStore, AuditStore, BackupStore, BatchStore, BrokerStore,
    CronStore, EventStore, FileStore, GraphStore, JobStore, LegacyStore, LimitStore, LogStore,
    NotificationStore, QueueStore, RecoveryStore, RedisStore, RestoreStore, ScheduleStore,
    ScriptStore, SessionStore, StatsStore, SupervisorStore, TokenStore,
};
pub use submission::Submitted;
pub use tokens::{TokenAdded, TokenRotated};
pub use write_trial::WriteTrial;

use std::sync::Arc;
use std::time::Instant;

use redis::{FromRedisValue, ScriptInvocation, ToRedisArgs};
use tokio::sync::watch;

use crate::config::{Ack, JobConfig, RedisConfig};
use crate::proto::job::JobId;
use crate::proto::job_rights::JobRights;
use crate::proto::keys::Keys;
use crate::proto::shard::Shard;
use confirmations::Confirmations;
use connection::SharedConnection;
use scripts::{LuaScript, Scripts};
use server::Server;
use skip_log::SkipLog;

/// A handle on one namespace of one Redis. Cheap to clone; all clones share one connection.
#[derive(Clone)]
pub struct Store {
    link: SharedConnection,
    keys: Arc<Keys>,
    scripts: Arc<Scripts>,
    /// True if nobody waits for the jobs that it submits.
    is_unawaited: bool,
    /// The largest output in the hash of its job.
    output_inline_max: u64,
    shard: Shard,
    /// Where the writes of a job must have arrived before they are answered.
    ack: Ack,
    confirmations: Confirmations,
    skips: Arc<SkipLog>,
    /// The rights with which it touches the jobs that a call names.
    rights: Arc<JobRights>,
}

impl Store {
    /// Reads the settings. The first operation connects, and the next one after a lost connection
    /// reconnects.
    ///
    /// # Errors
    /// [`StoreError::Settings`] if the URL or the password file cannot be used.
    pub fn open(config: &RedisConfig) -> Result<Self> {
        let keys = Keys::new(config.namespace.clone());
        Ok(Self {
            link: SharedConnection::new(Server::new(config)?),
            scripts: Arc::new(Scripts::new(&keys)),
            keys: Arc::new(keys),
            is_unawaited: false,
            output_inline_max: outputs::INLINE_MAX,
            shard: Shard::HOME,
            ack: config.ack,
            confirmations: Confirmations::default(),
            skips: Arc::default(),
            rights: Arc::default(),
        })
    }

    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// Submits jobs that push no reply, as nobody waits for them, until [`JobStore::outcome_or_reply`] asks for one.
    #[must_use]
    pub fn unawaited(mut self) -> Self {
        self.is_unawaited = true;
        self
    }

    /// Submits jobs that push a reply: their submitter waits for them.
    #[must_use]
    pub fn awaited(mut self) -> Self {
        self.is_unawaited = false;
        self
    }

    /// Takes what the settings of jobs say about the event log, replies and outputs.
    #[must_use]
    pub fn of_jobs(self, job: &JobConfig) -> Self {
        let keys = Keys::clone(&self.keys).with_events(job.events).with_replies(job.reply_format);
        Self { output_inline_max: job.output_inline_max, ..self.with_keys(keys) }
    }

    fn with_keys(self, keys: Keys) -> Self {
        Self { scripts: Arc::new(Scripts::new(&keys)), keys: Arc::new(keys), ..self }
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The address of Redis, for messages.
    pub fn address(&self) -> Arc<str> {
        self.link.server.address()
    }

    /// Since when Redis refuses the login, now and later.
    pub fn refused(&self) -> watch::Receiver<Option<Instant>> {
        self.link.server.refused()
    }

    pub fn is_refused(&self) -> bool {
        self.link.server.refused().borrow().is_some()
    }

    /// Takes another address or login of the same Redis, or reads the files again that the same settings name.
    ///
    /// # Errors
    /// [`StoreError::Settings`] if they cannot be used: nothing changes then.
    pub fn change_login(&self, config: &RedisConfig) -> Result<()> {
        self.link.server.change(config)
    }

    /// A separate connection for commands that block.
    pub fn blocking(&self) -> Blocking {
        Blocking::new(self.link.server.clone())
    }

    /// Pings Redis; in a cluster the node that has the keys, and has all of them.
    pub async fn ping(&self) -> Result<()> {
        let mut command = redis::cmd("PING");
        if self.link.server.way().cluster().is_some() {
            command = redis::cmd("EXISTS");
            command.arg(self.keys.probe());
        }
        self.link.query::<redis::Value>("pinging redis", &command).await.map(drop)
    }

    async fn run_script<T: FromRedisValue>(
        &self,
        doing: &'static str,
        script: &LuaScript,
        arguments: impl ToRedisArgs,
    ) -> Result<T> {
        let mut invocation = script.prepare_invoke();
        invocation.arg(arguments);
        self.invoke(doing, &invocation).await
    }

    /// Runs a script as [`Store::invoke_for_caller`], with these arguments before the rights.
    async fn run_for_caller<T: FromRedisValue>(
        &self,
        doing: &'static str,
        id: Option<&JobId>,
        script: &LuaScript,
        arguments: impl ToRedisArgs,
    ) -> Result<T> {
        let mut invocation = script.prepare_invoke();
        invocation.arg(arguments);
        self.invoke_for_caller(doing, id, invocation).await
    }

    /// Runs a script that names jobs for a caller: its last argument are the rights of the caller, which it compares
    /// with the jobs that it finds. `id` is the job that it changes.
    async fn invoke_for_caller<T: FromRedisValue>(
        &self,
        doing: &'static str,
        id: Option<&JobId>,
        mut script: ScriptInvocation<'_>,
    ) -> Result<T> {
        script.arg(&*self.rights.argument(id));
        self.invoke(doing, &script).await
    }

    /// Runs commands that read, in one step: a transaction is refused while the memory of Redis is full.
    async fn read_at_once<T: FromRedisValue>(
        &self,
        doing: &'static str,
        commands: &redis::Pipeline,
    ) -> Result<T> {
        let mut script = self.scripts.read_at_once.prepare_invoke();
        for command in commands.cmd_iter() {
            let words: Vec<&[u8]> = command
                .args_iter()
                .filter_map(|word| match word {
                    redis::Arg::Simple(word) => Some(word),
                    _ => None,
                })
                .collect();
            script.arg(words.len()).arg(words);
        }
        self.invoke(doing, &script).await
    }

    async fn invoke<T: FromRedisValue>(
        &self,
        doing: &'static str,
        script: &ScriptInvocation<'_>,
    ) -> Result<T> {
        self.link.invoke(doing, script).await.map_err(|error| match error {
            StoreError::Failed { doing, reason } => {
                StoreError::Failed { doing, reason: self.scripts.with_files(&reason) }
            }
            other => other,
        })
    }
}
