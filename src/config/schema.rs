//! The tables and keys of the configuration, with their defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::connection::RedisConfig;
use super::limits::{LimitConfig, LimitName};
use super::load_max::LoadMax;
use super::osis::OsisConfig;
use super::sal::SalConfig;
use super::types::{self, TypeConfig, TypeLayer};
use super::units;
use crate::proto::job::{JobBounds, Retention};
use crate::proto::legacy::{LegacyQueue, RhailibCircle};
use crate::proto::target::{Group, Instance, ScriptType};

/// All that is in force: the defaults, and over them what the files say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// `[log]`.
    pub log: LogConfig,
    /// `[redis]`.
    pub redis: RedisConfig,
    /// `[supervisor]`.
    pub supervisor: SupervisorConfig,
    /// `[job]`.
    pub job: JobConfig,
    /// `[actor]`.
    pub actor: ActorConfig,
    /// `[osis]`.
    pub osis: OsisConfig,
    /// `[sal]`.
    pub sal: SalConfig,
    /// `[limit.NAME]`.
    #[serde(rename = "limit", skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<LimitName, LimitConfig>,
    /// `[type.NAME]`, those that come with Hero among them.
    #[serde(rename = "type")]
    pub types: BTreeMap<ScriptType, TypeConfig>,
    /// `[unit.NAME]`.
    #[serde(rename = "unit")]
    pub units: BTreeMap<String, UnitConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            log: LogConfig::default(),
            redis: RedisConfig::default(),
            supervisor: SupervisorConfig::default(),
            job: JobConfig::default(),
            actor: ActorConfig::default(),
            osis: OsisConfig::default(),
            sal: SalConfig::default(),
            limits: BTreeMap::new(),
            types: types::defaults(),
            units: BTreeMap::new(),
        }
    }
}

/// What files say, before the script types have got their defaults.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct Layer {
    pub(super) log: LogConfig,
    pub(super) redis: RedisConfig,
    pub(super) supervisor: SupervisorConfig,
    pub(super) job: JobConfig,
    pub(super) actor: ActorConfig,
    pub(super) osis: OsisConfig,
    pub(super) sal: SalConfig,
    #[serde(rename = "limit")]
    pub(super) limits: BTreeMap<LimitName, LimitConfig>,
    #[serde(rename = "type")]
    pub(super) types: BTreeMap<ScriptType, TypeLayer>,
    #[serde(rename = "unit")]
    pub(super) units: BTreeMap<String, UnitConfig>,
}

/// `[log]`: what the daemon says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LogConfig {
    /// How much it says.
    pub level: LogLevel,
}

/// How much the daemon says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What has failed.
    Error,
    /// And what somebody should look at.
    Warn,
    /// And the start and the end of every job.
    #[default]
    Info,
    /// And what helps to find a fault.
    Debug,
    /// And every single step.
    Trace,
}

impl LogLevel {
    /// The level as the configuration spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// `[supervisor]`: what happens to jobs later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct SupervisorConfig {
    /// How often the supervisor looks for what is due or lost.
    #[serde(with = "units::duration")]
    pub sweep_interval: Duration,
    /// How long a job may wait in a queue before that is worth a warning; zero for never.
    #[serde(with = "units::duration")]
    pub wait_warning: Duration,
    /// The folder of the periodic jobs.
    pub cron_dir: PathBuf,
    /// Which names are used in Redis.
    pub migration: Migration,
    /// The legacy queues that `dual` serves.
    pub legacy_queues: Vec<LegacyQueue>,
    /// The rhailib circles whose tasks become jobs.
    pub rhailib_circles: Vec<RhailibCircle>,
}

impl Default for SupervisorConfig {
    fn default() -> Self {
        Self {
            sweep_interval: Duration::from_secs(1),
            wait_warning: Duration::from_mins(5),
            cron_dir: PathBuf::from("/etc/hero/cron.d"),
            migration: Migration::Canonical,
            legacy_queues: Vec::new(),
            rhailib_circles: Vec::new(),
        }
    }
}

impl SupervisorConfig {
    /// The legacy queues that are served: none unless `migration` is `dual`.
    pub fn served_legacy_queues(&self) -> &[LegacyQueue] {
        match self.migration {
            Migration::Canonical => &[],
            Migration::Dual => &self.legacy_queues,
        }
    }
}

/// Which names are used in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Migration {
    /// Hero's own alone.
    Canonical,
    /// The older ones as well.
    Dual,
}

/// `[job]`: defaults and bounds of every job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct JobConfig {
    /// How long a job may run that does not say so itself.
    #[serde(with = "units::duration")]
    pub timeout: Duration,
    /// The longest timeout a job may ask for.
    #[serde(with = "units::duration")]
    pub timeout_max: Duration,
    /// Attempts after the first, for a job that does not say so itself.
    pub retries: u32,
    /// The wait before the first retry; each further one waits twice as long.
    #[serde(with = "units::duration")]
    pub retry_backoff: Duration,
    /// The longest wait before a retry.
    #[serde(with = "units::duration")]
    pub retry_backoff_max: Duration,
    /// How many actors a job may take down before it is given up.
    pub crash_limit: u32,
    /// How long a job is kept after it ended.
    #[serde(with = "units::duration")]
    pub retention: Duration,
    /// How long a job may ask to be kept.
    #[serde(with = "units::duration")]
    pub retention_max: Duration,
    /// The most bytes a script may have.
    #[serde(with = "units::size")]
    pub script_size_max: u64,
    /// The most bytes of output a job may have.
    #[serde(with = "units::size")]
    pub output_size_max: u64,
    /// The most bytes that the prerequisites of one job may leave it.
    #[serde(with = "units::size")]
    pub inputs_size_max: u64,
    /// The most bytes of log a job may have.
    #[serde(with = "units::size")]
    pub log_size_max: u64,
    /// The folder that the log files of jobs are in.
    pub log_dir: PathBuf,
    /// Whether every transition of a job is written into the event log.
    pub events: bool,
    /// Whether the lines of a job's log go to the daemon's own log as well.
    pub log_to_journal: bool,
    /// How long a child that was asked to end may take before it is killed.
    #[serde(with = "units::duration")]
    pub kill_grace: Duration,
    /// The folder that holds compiled scripts and the packages of scripts.
    pub cache_dir: PathBuf,
    /// The most bytes that folder may hold.
    #[serde(with = "units::size")]
    pub cache_size_max: u64,
}

impl JobConfig {
    /// What every job has to keep to, whoever submits it.
    pub fn bounds(&self) -> JobBounds {
        JobBounds {
            script_size_max: self.script_size_max,
            timeout_max: self.timeout_max,
            retention_max: self.retention_max,
        }
    }

    /// How long jobs are kept after their end.
    pub fn kept(&self) -> Retention {
        Retention { default: self.retention, max: self.retention_max }
    }
}

impl Default for JobConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            timeout_max: Duration::from_hours(24),
            retries: 0,
            retry_backoff: Duration::from_secs(1),
            retry_backoff_max: Duration::from_mins(15),
            crash_limit: 3,
            retention: Duration::from_hours(24),
            retention_max: Duration::from_hours(365 * 24),
            script_size_max: 1 << 20,
            output_size_max: 1 << 20,
            inputs_size_max: 8 << 20,
            log_size_max: 4 << 20,
            log_dir: PathBuf::from("/var/log/hero/jobs"),
            events: false,
            log_to_journal: false,
            kill_grace: Duration::from_secs(2),
            cache_dir: PathBuf::from("/var/cache/hero"),
            cache_size_max: 2 << 30,
        }
    }
}

/// `[actor]`: defaults of every actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ActorConfig {
    /// Jobs that run at once, per script type and group.
    pub tasks: usize,
    /// How often an actor shows that it is alive.
    #[serde(with = "units::duration")]
    pub heartbeat: Duration,
    /// How long after its last heartbeat an actor is taken for dead.
    #[serde(with = "units::duration")]
    pub lease: Duration,
    /// How long an actor that is stopped waits for its running jobs.
    #[serde(with = "units::duration")]
    pub drain_timeout: Duration,
    /// Every so many claims begin with the background queues; 0 for never.
    pub fair_every: u32,
    /// It takes nothing while the load of its machine is above this; 0 for no bound.
    pub load_max: LoadMax,
    /// It takes nothing while its machine has less memory available; 0 for no bound.
    #[serde(with = "units::size")]
    pub memory_min: u64,
    /// Whether an actor whose scripts need nothing but Redis shuts its process in.
    pub sandbox: bool,
}

impl Default for ActorConfig {
    fn default() -> Self {
        Self {
            tasks: 4,
            heartbeat: Duration::from_secs(5),
            lease: Duration::from_secs(15),
            drain_timeout: Duration::from_secs(25),
            fair_every: 8,
            load_max: LoadMax::default(),
            memory_min: 0,
            sandbox: true,
        }
    }
}

/// `[unit.NAME]`: what differs for one unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct UnitConfig {
    /// What the unit is; none leaves it to its name, or to `actors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Jobs that run at once, for each of its actors that does not say so itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<usize>,
    /// The actors of this one process, for a unit whose name is not that of an actor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actors: Vec<UnitActor>,
}

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It runs jobs.
    Actor,
    /// It tends what happens to jobs later.
    Supervisor,
}

/// One actor of a unit that has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { type = \"osis\", instance = 1 }")]
pub struct UnitActor {
    /// What it runs.
    #[serde(rename = "type")]
    pub script_type: ScriptType,
    /// The pool it belongs to.
    #[serde(default)]
    pub group: Group,
    /// Its number within the pool.
    pub instance: Instance,
    /// Jobs that run at once; none takes the unit's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<usize>,
}
