//! The tables and keys of the configuration, with their defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::amqp::AmqpConfig;
use super::api::ApiConfig;
use super::artifacts::{ArtifactFolder, ArtifactsConfig};
use super::calendar::CalendarConfig;
use super::connection::RedisConfig;
use super::keys::KeyConfig;
use super::limits::{LimitConfig, LimitName};
use super::load_max::LoadMax;
use super::log::LogConfig;
use super::metrics::MetricsConfig;
use super::notify::NotifyConfig;
use super::osis::OsisConfig;
use super::sal::SalConfig;
use super::secrets::SecretsConfig;
use super::thresholds::CheckConfig;
use super::trace::TraceConfig;
use super::types::{self, TypeConfig, TypeLayer};
use super::unit_config::UnitConfig;
use super::units;
use crate::proto::cron::CalendarName;
use crate::proto::job::{KeyName, OutputOverflow, ReplyFormat};
use crate::proto::legacy::{self, LegacyQueue, RhailibCircle};
use crate::proto::notification::NotifyName;
use crate::proto::target::ScriptType;

/// The configuration in force: the defaults, overridden by the files.
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
    /// `[check]`.
    pub check: CheckConfig,
    /// `[metrics]`.
    pub metrics: MetricsConfig,
    /// `[trace]`.
    pub trace: TraceConfig,
    /// `[api]`.
    pub api: ApiConfig,
    /// `[amqp]`.
    pub amqp: AmqpConfig,
    /// `[osis]`.
    pub osis: OsisConfig,
    /// `[sal]`.
    pub sal: SalConfig,
    /// `[secrets]`.
    pub secrets: SecretsConfig,
    /// `[artifacts]`.
    pub artifacts: ArtifactsConfig,
    /// `[keys.NAME]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<KeyName, KeyConfig>,
    /// `[notify.NAME]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub notify: BTreeMap<NotifyName, NotifyConfig>,
    /// `[limit.NAME]`.
    #[serde(rename = "limit", skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<LimitName, LimitConfig>,
    /// `[calendar.NAME]`.
    #[serde(rename = "calendar", skip_serializing_if = "BTreeMap::is_empty")]
    pub calendars: BTreeMap<CalendarName, CalendarConfig>,
    /// `[type.NAME]`, including the types that come with Hero.
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
            check: CheckConfig::default(),
            metrics: MetricsConfig::default(),
            trace: TraceConfig::default(),
            api: ApiConfig::default(),
            amqp: AmqpConfig::default(),
            osis: OsisConfig::default(),
            sal: SalConfig::default(),
            secrets: SecretsConfig::default(),
            artifacts: ArtifactsConfig::default(),
            keys: BTreeMap::new(),
            notify: BTreeMap::new(),
            limits: BTreeMap::new(),
            calendars: BTreeMap::new(),
            types: types::defaults(),
            units: BTreeMap::new(),
        }
    }
}

/// The content of the files, before the script types get their defaults.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct Layer {
    pub(super) log: LogConfig,
    pub(super) redis: RedisConfig,
    pub(super) supervisor: SupervisorConfig,
    pub(super) job: JobConfig,
    pub(super) actor: ActorConfig,
    pub(super) check: CheckConfig,
    pub(super) metrics: MetricsConfig,
    pub(super) trace: TraceConfig,
    pub(super) api: ApiConfig,
    pub(super) amqp: AmqpConfig,
    pub(super) osis: OsisConfig,
    pub(super) sal: SalConfig,
    pub(super) secrets: SecretsConfig,
    pub(super) artifacts: ArtifactsConfig,
    pub(super) keys: BTreeMap<KeyName, KeyConfig>,
    pub(super) notify: BTreeMap<NotifyName, NotifyConfig>,
    #[serde(rename = "limit")]
    pub(super) limits: BTreeMap<LimitName, LimitConfig>,
    #[serde(rename = "calendar")]
    pub(super) calendars: BTreeMap<CalendarName, CalendarConfig>,
    #[serde(rename = "type")]
    pub(super) types: BTreeMap<ScriptType, TypeLayer>,
    #[serde(rename = "unit")]
    pub(super) units: BTreeMap<String, UnitConfig>,
}

/// `[supervisor]`: schedules, recovery and migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct SupervisorConfig {
    /// The time between sweeps for due and lost jobs.
    #[serde(with = "units::duration")]
    pub sweep_interval: Duration,
    /// The wait of a queue's first job that causes a warning; zero for never.
    #[serde(with = "units::duration")]
    pub wait_warning: Duration,
    /// The wait of a job before it falls back from a group or instance without live actors.
    #[serde(with = "units::duration")]
    pub fallback_after: Duration,
    /// The folder of the periodic jobs.
    pub cron_dir: PathBuf,
    /// The folder of the published scripts.
    pub scripts_dir: PathBuf,
    /// The names that are used in Redis.
    pub migration: Migration,
    /// The legacy queues that are served in `dual`.
    #[serde(deserialize_with = "legacy::queues")]
    pub legacy_queues: Vec<LegacyQueue>,
    /// The rhailib circles whose tasks become jobs.
    pub rhailib_circles: Vec<RhailibCircle>,
}

impl Default for SupervisorConfig {
    fn default() -> Self {
        Self {
            sweep_interval: Duration::from_secs(1),
            wait_warning: Duration::from_mins(5),
            fallback_after: Duration::from_secs(30),
            cron_dir: PathBuf::from("/etc/hero/cron.d"),
            scripts_dir: PathBuf::from("/etc/hero/scripts"),
            migration: Migration::Canonical,
            legacy_queues: Vec::new(),
            rhailib_circles: Vec::new(),
        }
    }
}

impl SupervisorConfig {
    /// Returns the legacy queues that are served: none unless `migration` is `dual`.
    pub fn served_legacy_queues(&self) -> &[LegacyQueue] {
        match self.migration {
            Migration::Canonical => &[],
            Migration::Dual => &self.legacy_queues,
        }
    }
}

/// The names that are used in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Migration {
    /// Only Hero's own.
    Canonical,
    /// Hero's own and the legacy ones.
    Dual,
}

/// `[job]`: defaults and bounds of every job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own that is on or off")]
pub struct JobConfig {
    /// The timeout of a job without its own.
    #[serde(with = "units::duration")]
    pub timeout: Duration,
    /// The longest timeout of a job.
    #[serde(with = "units::duration")]
    pub timeout_max: Duration,
    /// The retries of a job without its own.
    pub retries: u32,
    /// The wait before the first retry; it doubles with each further one.
    #[serde(with = "units::duration")]
    pub retry_backoff: Duration,
    /// The longest wait before a retry.
    #[serde(with = "units::duration")]
    pub retry_backoff_max: Duration,
    /// A script may postpone its job until this time after the first attempt.
    #[serde(with = "units::duration")]
    pub postponed_max: Duration,
    /// The longest wait of a script for an event, for jobs or for a time.
    #[serde(with = "units::duration")]
    pub wait_max: Duration,
    /// The number of waits that one job may ask for.
    pub waits_max: u32,
    /// The number of actors that may die running a job before it ends in `error`.
    pub crash_limit: u32,
    /// Runs an ended job again when a program pushes its id.
    pub requeue_by_push: bool,
    /// The time to keep a job after its end, unless it has its own; up to a twentieth longer.
    #[serde(with = "units::duration")]
    pub retention: Duration,
    /// The time to keep a job that ended in `error`, unless it has its own; no less than `retention`.
    #[serde(with = "units::duration")]
    pub retention_failed: Duration,
    /// The longest time that a job may ask for.
    #[serde(with = "units::duration")]
    pub retention_max: Duration,
    /// The format of the reply to a job that does not set one.
    pub reply_format: ReplyFormat,
    /// The largest script, in bytes.
    #[serde(with = "units::size")]
    pub script_size_max: u64,
    /// The largest output, in bytes.
    #[serde(with = "units::size")]
    pub output_size_max: u64,
    /// The fate of a larger output.
    pub output_overflow: OutputOverflow,
    /// The largest output in the hash of its job; a larger one has a key of its own in Redis.
    #[serde(with = "units::size")]
    pub output_inline_max: u64,
    /// The largest total output of one job's prerequisites, in bytes.
    #[serde(with = "units::size")]
    pub inputs_size_max: u64,
    /// The maximum number of bytes of the files that a job is given, and of those that it leaves.
    #[serde(with = "units::size")]
    pub files_size_max: u64,
    /// The most jobs that the script of one job may submit.
    pub children_max: u64,
    /// The most sessions of one caller at a time; 0 for none.
    pub sessions_max: u64,
    /// The longest time that a session may take.
    #[serde(with = "units::duration")]
    pub session_timeout_max: Duration,
    /// The largest log of a job, in bytes.
    #[serde(with = "units::size")]
    pub log_size_max: u64,
    /// Writes the standard output of a running job to its log, from its first second on.
    pub live_output: bool,
    /// The folder of the jobs' log files.
    pub log_dir: PathBuf,
    /// Writes every transition of a job to the event log.
    pub events: bool,
    /// Copies the lines of a job's log to the daemon's log.
    pub log_to_journal: bool,
    /// The time between SIGTERM and SIGKILL for a child process.
    #[serde(with = "units::duration")]
    pub kill_grace: Duration,
    /// The folder for compiled scripts and packages.
    pub cache_dir: PathBuf,
    /// The largest size of that folder, in bytes.
    #[serde(with = "units::size")]
    pub cache_size_max: u64,
    /// The folder of `[artifacts]`, for all who handle files of jobs.
    #[serde(skip)]
    pub artifacts: Option<ArtifactFolder>,
}

impl Default for JobConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            timeout_max: Duration::from_hours(24),
            retries: 0,
            retry_backoff: Duration::from_secs(1),
            retry_backoff_max: Duration::from_mins(15),
            postponed_max: Duration::from_hours(24),
            wait_max: Duration::from_hours(30 * 24),
            waits_max: 1000,
            crash_limit: 3,
            requeue_by_push: true,
            retention: Duration::from_hours(24),
            retention_failed: Duration::from_hours(7 * 24),
            retention_max: Duration::from_hours(365 * 24),
            reply_format: ReplyFormat::Json,
            script_size_max: 1 << 20,
            output_size_max: 1 << 20,
            output_overflow: OutputOverflow::Truncate,
            output_inline_max: 64 << 10,
            inputs_size_max: 8 << 20,
            files_size_max: 8 << 20,
            children_max: 1000,
            sessions_max: 4,
            session_timeout_max: Duration::from_hours(1),
            log_size_max: 4 << 20,
            live_output: true,
            log_dir: PathBuf::from("/var/log/hero/jobs"),
            events: false,
            log_to_journal: false,
            kill_grace: Duration::from_secs(2),
            cache_dir: PathBuf::from("/var/cache/hero"),
            cache_size_max: 2 << 30,
            artifacts: None,
        }
    }
}

/// `[actor]`: defaults of every actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ActorConfig {
    /// The number of jobs that run at once, per script type and group.
    pub tasks: usize,
    /// The time between heartbeats.
    #[serde(with = "units::duration")]
    pub heartbeat: Duration,
    /// The time after the last heartbeat when an actor counts as dead.
    #[serde(with = "units::duration")]
    pub lease: Duration,
    /// The time that a stopping actor waits for its running jobs.
    #[serde(with = "units::duration")]
    pub drain_timeout: Duration,
    /// One claim in this many begins with the background queues; 0 for none.
    pub fair_every: u32,
    /// The load of the machine above which it claims no jobs; 0 for no bound.
    pub load_max: LoadMax,
    /// The available memory of the machine below which it claims no jobs; 0 for no bound.
    #[serde(with = "units::size")]
    pub memory_min: u64,
    /// Sandboxes the process of an actor whose scripts need only Redis.
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
