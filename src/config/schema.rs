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
use crate::config::toml_table::toml_table;
use crate::proto::cron::CalendarName;
use crate::proto::job::{KeyName, OutputOverflow, ReplyFormat};
use crate::proto::legacy::{self, LegacyQueue, RhailibCircle};
use crate::proto::notification::NotifyName;
use crate::proto::target::ScriptType;

toml_table! {
    /// The configuration in force: the defaults, overridden by the files.
    pub struct Config {
        /// `[log]`.
        pub log: LogConfig = LogConfig::default(),
        /// `[redis]`.
        pub redis: RedisConfig = RedisConfig::default(),
        /// `[supervisor]`.
        pub supervisor: SupervisorConfig = SupervisorConfig::default(),
        /// `[job]`.
        pub job: JobConfig = JobConfig::default(),
        /// `[actor]`.
        pub actor: ActorConfig = ActorConfig::default(),
        /// `[check]`.
        pub check: CheckConfig = CheckConfig::default(),
        /// `[metrics]`.
        pub metrics: MetricsConfig = MetricsConfig::default(),
        /// `[trace]`.
        pub trace: TraceConfig = TraceConfig::default(),
        /// `[api]`.
        pub api: ApiConfig = ApiConfig::default(),
        /// `[amqp]`.
        pub amqp: AmqpConfig = AmqpConfig::default(),
        /// `[osis]`.
        pub osis: OsisConfig = OsisConfig::default(),
        /// `[sal]`.
        pub sal: SalConfig = SalConfig::default(),
        /// `[secrets]`.
        pub secrets: SecretsConfig = SecretsConfig::default(),
        /// `[artifacts]`.
        pub artifacts: ArtifactsConfig = ArtifactsConfig::default(),
        /// `[keys.NAME]`.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub keys: BTreeMap<KeyName, KeyConfig> = BTreeMap::new(),
        /// `[notify.NAME]`.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub notify: BTreeMap<NotifyName, NotifyConfig> = BTreeMap::new(),
        /// `[limit.NAME]`.
        #[serde(rename = "limit", skip_serializing_if = "BTreeMap::is_empty")]
        pub limits: BTreeMap<LimitName, LimitConfig> = BTreeMap::new(),
        /// `[calendar.NAME]`.
        #[serde(rename = "calendar", skip_serializing_if = "BTreeMap::is_empty")]
        pub calendars: BTreeMap<CalendarName, CalendarConfig> = BTreeMap::new(),
        /// `[type.NAME]`, including the types that come with Hero.
        #[serde(rename(serialize = "type"), skip_deserializing)]
        pub types: BTreeMap<ScriptType, TypeConfig> = types::defaults(),
        #[doc(hidden)]
        /// `[type.NAME]` of the files, until [`Config::types`] is made of it.
        #[serde(rename(deserialize = "type"), skip_serializing)]
        pub layers: BTreeMap<ScriptType, TypeLayer> = BTreeMap::new(),
        /// `[unit.NAME]`.
        #[serde(rename = "unit")]
        pub units: BTreeMap<String, UnitConfig> = BTreeMap::new(),
    }
}

toml_table! {
    /// `[supervisor]`: schedules, recovery and migration.
    pub struct SupervisorConfig {
        /// The time between sweeps for due and lost jobs.
        #[serde(with = "units::duration")]
        pub sweep_interval: Duration = Duration::from_secs(1),
        /// The wait of a queue's first job that causes a warning; zero for never.
        #[serde(with = "units::duration")]
        pub wait_warning: Duration = Duration::from_mins(5),
        /// The wait of a job before it falls back from a group or instance without live actors.
        #[serde(with = "units::duration")]
        pub fallback_after: Duration = Duration::from_secs(30),
        /// The folder of the periodic jobs.
        pub cron_dir: PathBuf = PathBuf::from("/etc/hero/cron.d"),
        /// The folder of the published scripts.
        pub scripts_dir: PathBuf = PathBuf::from("/etc/hero/scripts"),
        /// The names that are used in Redis.
        pub migration: Migration = Migration::Canonical,
        /// The legacy queues that are served in `dual`.
        #[serde(deserialize_with = "legacy::queues")]
        pub legacy_queues: Vec<LegacyQueue> = Vec::new(),
        /// The rhailib circles whose tasks become jobs.
        pub rhailib_circles: Vec<RhailibCircle> = Vec::new(),
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

toml_table! {
    /// `[job]`: defaults and bounds of every job.
    pub struct JobConfig {
        /// The timeout of a job without its own.
        #[serde(with = "units::duration")]
        pub timeout: Duration = Duration::from_mins(1),
        /// The longest timeout of a job.
        #[serde(with = "units::duration")]
        pub timeout_max: Duration = Duration::from_hours(24),
        /// The retries of a job without its own.
        pub retries: u32 = 0,
        /// The wait before the first retry; it doubles with each further one.
        #[serde(with = "units::duration")]
        pub retry_backoff: Duration = Duration::from_secs(1),
        /// The longest wait before a retry.
        #[serde(with = "units::duration")]
        pub retry_backoff_max: Duration = Duration::from_mins(15),
        /// A script may postpone its job until this time after the first attempt.
        #[serde(with = "units::duration")]
        pub postponed_max: Duration = Duration::from_hours(24),
        /// The longest wait of a script for an event, for jobs or for a time.
        #[serde(with = "units::duration")]
        pub wait_max: Duration = Duration::from_hours(30 * 24),
        /// The number of waits that one job may ask for.
        pub waits_max: u32 = 1000,
        /// The number of actors that may die running a job before it ends in `error`.
        pub crash_limit: u32 = 3,
        /// Runs an ended job again when a program pushes its id.
        pub requeue_by_push: bool = true,
        /// The time to keep a job after its end, unless it has its own; up to a twentieth longer.
        #[serde(with = "units::duration")]
        pub retention: Duration = Duration::from_hours(24),
        /// The time to keep a job that ended in `error`, unless it has its own; no less than `retention`.
        #[serde(with = "units::duration")]
        pub retention_failed: Duration = Duration::from_hours(7 * 24),
        /// The longest time that a job may ask for.
        #[serde(with = "units::duration")]
        pub retention_max: Duration = Duration::from_hours(365 * 24),
        /// The format of the reply to a job that does not set one.
        pub reply_format: ReplyFormat = ReplyFormat::Json,
        /// The largest script, in bytes.
        #[serde(with = "units::size")]
        pub script_size_max: u64 = 1 << 20,
        /// The largest output, in bytes.
        #[serde(with = "units::size")]
        pub output_size_max: u64 = 1 << 20,
        /// The fate of a larger output.
        pub output_overflow: OutputOverflow = OutputOverflow::Truncate,
        /// The largest output in the hash of its job; a larger one has a key of its own in Redis.
        #[serde(with = "units::size")]
        pub output_inline_max: u64 = 64 << 10,
        /// The largest total output of one job's prerequisites, in bytes.
        #[serde(with = "units::size")]
        pub inputs_size_max: u64 = 8 << 20,
        /// The maximum number of bytes of the files that a job is given, and of those that it leaves.
        #[serde(with = "units::size")]
        pub files_size_max: u64 = 8 << 20,
        /// The most jobs that the script of one job may submit.
        pub children_max: u64 = 1000,
        /// The most sessions of one caller at a time; 0 for none.
        pub sessions_max: u64 = 4,
        /// The longest time that a session may take.
        #[serde(with = "units::duration")]
        pub session_timeout_max: Duration = Duration::from_hours(1),
        /// The largest log of a job, in bytes.
        #[serde(with = "units::size")]
        pub log_size_max: u64 = 4 << 20,
        /// Writes the standard output of a running job to its log, from its first second on.
        pub live_output: bool = true,
        /// The folder of the jobs' log files.
        pub log_dir: PathBuf = PathBuf::from("/var/log/hero/jobs"),
        /// Writes every transition of a job to the event log.
        pub events: bool = false,
        /// Copies the lines of a job's log to the daemon's log.
        pub log_to_journal: bool = false,
        /// The time between SIGTERM and SIGKILL for a child process.
        #[serde(with = "units::duration")]
        pub kill_grace: Duration = Duration::from_secs(2),
        /// The folder for compiled scripts and packages.
        pub cache_dir: PathBuf = PathBuf::from("/var/cache/hero"),
        /// The largest size of that folder, in bytes.
        #[serde(with = "units::size")]
        pub cache_size_max: u64 = 2 << 30,
        /// The folder of `[artifacts]`, for all who handle files of jobs.
        #[serde(skip)]
        pub artifacts: Option<ArtifactFolder> = None,
    }
}

toml_table! {
    /// `[actor]`: defaults of every actor.
    pub struct ActorConfig {
        /// The number of jobs that run at once, per script type and group.
        pub tasks: usize = 4,
        /// The time between heartbeats.
        #[serde(with = "units::duration")]
        pub heartbeat: Duration = Duration::from_secs(5),
        /// The time after the last heartbeat when an actor counts as dead.
        #[serde(with = "units::duration")]
        pub lease: Duration = Duration::from_secs(15),
        /// The time that a stopping actor waits for its running jobs.
        #[serde(with = "units::duration")]
        pub drain_timeout: Duration = Duration::from_secs(25),
        /// One claim in this many begins with the background queues; 0 for none.
        pub fair_every: u32 = 8,
        /// The load of the machine above which it claims no jobs; 0 for no bound.
        pub load_max: LoadMax = LoadMax::default(),
        /// The available memory of the machine below which it claims no jobs; 0 for no bound.
        #[serde(with = "units::size")]
        pub memory_min: u64 = 0,
        /// Sandboxes the process of an actor whose scripts need only Redis.
        pub sandbox: bool = true,
    }
}
