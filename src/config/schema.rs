//! The tables and keys of the configuration, with their defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::amqp::AmqpConfig;
use super::api::ApiConfig;
use super::artifacts::{ArtifactFolder, ArtifactsConfig};
use super::calendar::CalendarConfig;
use super::client::ClientConfig;
use super::connection::RedisConfig;
use super::key_row::{DAY, HOUR, PIB, TEN_YEARS};
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
use super::units::{duration, size};
use crate::config::toml_table::toml_table;
use crate::proto::cron::CalendarName;
use crate::proto::job::{KeyName, OutputOverflow, ReplyFormat};
use crate::proto::labels::Labels;
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
        /// `[client]`.
        pub client: ClientConfig = ClientConfig::default(),
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
    /// The supervisor: schedules, retries, recovery and other things that happen later.
    pub struct SupervisorConfig in "supervisor" {
        /// The time between two looks for due and lost jobs and all other work. Statistics, warnings and clearing away
        /// pause for five of these intervals. What has no work rests until a look finds some, for at most 30 of them.
        sweep_interval: Duration as "duration" = Duration::from_secs(1) => Duration(10, HOUR);
        /// If the first job of a queue waits longer than this, the supervisor logs it once, and once more when the wait
        /// is over. The counter `long_waits` of the script type counts these. `0s`: never.
        wait_warning: Duration as "duration" = Duration::from_mins(5) => Duration(0, TEN_YEARS);
        /// The wait of a job in the queue of a group or instance without live actors, before it falls back to the
        /// next wider queue, if the job, or its type, has a fallback.
        fallback_after: Duration as "duration" = Duration::from_secs(30) => Duration(0, TEN_YEARS);
        /// The folder of the periodic jobs, files `*.toml` as in hero.toml(5), PERIODIC JOBS.
        cron_dir: PathBuf = PathBuf::from("/etc/hero/cron.d") => Folder;
        /// The folder of the published scripts, files `*.toml` as in hero.toml(5), PUBLISHED SCRIPTS, which a supervisor
        /// publishes when it starts and when it is reloaded.
        scripts_dir: PathBuf = PathBuf::from("/etc/hero/scripts") => Folder;
        /// The names used in Redis: `canonical`, Hero's own only, or `dual`, the `legacy_queues` as well, while older
        /// programs migrate; see docs/migration.md. The supervisor, the actors and `hero` itself all read it.
        migration: Migration = Migration::Canonical => OneOf(&["canonical", "dual"]), restart;
        /// The legacy queues to serve in `dual`, each written `{ legacy = "KEY", type = "TYPE", group = "GROUP",
        /// instance = NUMBER }`. The default group is `default`; without an instance the queue is for every actor of
        /// the group. The KEY is `hero:work_queue:NAME`, `hero:job:NAME` or `hero:job:actor_queue:NAME`, with the
        /// namespace in place of `hero`; a `*` in it is any text, as in `hero:work_queue:*`, for queues that a
        /// supervisor finds. A KEY alone is a queue of type osis. No queue may be listed twice.
        #[serde(deserialize_with = "legacy::queues")]
        legacy_queues: Vec<LegacyQueue> = Vec::new() => Form, restart;
        /// Looks through the hashes of all jobs, some hundred a second, for those that a foreign actor popped from an
        /// empty queue before Hero knew of them, and puts them where they belong. Where no program speaks the open
        /// protocol, nothing is lost without it.
        foreign: bool = true => Flag;
        /// The time for which a machine is listed, and is one of `--every-machine`, after its last actor was seen.
        machines_kept: Duration as "duration" = Duration::from_hours(7 * 24) => Duration(60_000, TEN_YEARS);
        /// The circles of rhailib whose tasks become jobs, each written `{ circle = "NAME", type = "TYPE" }`. A `*` in
        /// the NAME is any text. They are served in both migration modes.
        rhailib_circles: Vec<RhailibCircle> = Vec::new() => Form, restart;
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
    /// `[job]`: defaults and bounds of every job. The file has its keys in another order, the order of their rows in
    /// `table/job.rs`.
    pub struct JobConfig {
        /// The timeout of a job without its own.
        pub timeout: Duration as "duration" = Duration::from_mins(1),
        /// The longest timeout of a job.
        pub timeout_max: Duration as "duration" = Duration::from_hours(24),
        /// The retries of a job without its own.
        pub retries: u32 = 0,
        /// The wait before the first retry; it doubles with each further one.
        pub retry_backoff: Duration as "duration" = Duration::from_secs(1),
        /// The longest wait before a retry.
        pub retry_backoff_max: Duration as "duration" = Duration::from_mins(15),
        /// A script may postpone its job until this time after the first attempt.
        pub postponed_max: Duration as "duration" = Duration::from_hours(24),
        /// The longest wait of a script for an event, for jobs or for a time.
        pub wait_max: Duration as "duration" = Duration::from_hours(30 * 24),
        /// The number of waits that one job may ask for.
        pub waits_max: u32 = 1000,
        /// The number of actors that may die running a job before it ends in `error`.
        pub crash_limit: u32 = 3,
        /// Runs an ended job again when a program pushes its id.
        pub requeue_by_push: bool = true,
        /// A push this soon after the end of its job is a repetition, and runs nothing.
        pub requeue_after: Duration as "duration" = Duration::from_secs(5),
        /// The time to keep a job after its end, unless it has its own; up to a twentieth longer.
        pub retention: Duration as "duration" = Duration::from_hours(24),
        /// The time to keep a job that ended in `error`, unless it has its own; no less than `retention`.
        pub retention_failed: Duration as "duration" = Duration::from_hours(7 * 24),
        /// The longest time that a job may ask for.
        pub retention_max: Duration as "duration" = Duration::from_hours(365 * 24),
        /// The format of the reply to a job that does not set one.
        pub reply_format: ReplyFormat = ReplyFormat::Json,
        /// The largest script, in bytes.
        pub script_size_max: u64 as "size" = 1 << 20,
        /// The largest output, in bytes.
        pub output_size_max: u64 as "size" = 1 << 20,
        /// The fate of a larger output.
        pub output_overflow: OutputOverflow = OutputOverflow::Truncate,
        /// The largest output in the hash of its job; a larger one has a key of its own in Redis.
        pub output_inline_max: u64 as "size" = 64 << 10,
        /// The largest total output of one job's prerequisites, in bytes.
        pub inputs_size_max: u64 as "size" = 8 << 20,
        /// The maximum number of bytes of the files that a job is given, and of those that it leaves.
        pub files_size_max: u64 as "size" = 8 << 20,
        /// The most jobs that the script of one job may submit.
        pub children_max: u64 = 1000,
        /// The most sessions of one caller at a time; 0 for none.
        pub sessions_max: u64 = 4,
        /// The longest time that a session may take.
        pub session_timeout_max: Duration as "duration" = Duration::from_hours(1),
        /// The largest log of a job, in bytes.
        pub log_size_max: u64 as "size" = 4 << 20,
        /// Writes the standard output of a running job to its log, from its first second on.
        pub live_output: bool = true,
        /// The folder of the jobs' log files.
        pub log_dir: PathBuf = PathBuf::from("/var/log/hero/jobs"),
        /// The size at which such a file gets no further lines, in bytes.
        pub log_file_size_max: u64 as "size" = 1 << 30,
        /// The most files and folders in that folder.
        pub log_files_max: u64 = 10_000,
        /// Writes every transition of a job to the event log.
        pub events: bool = false,
        /// Copies the lines of a job's log to the daemon's log.
        pub log_to_journal: bool = false,
        /// The time between SIGTERM and SIGKILL for a child process.
        pub kill_grace: Duration as "duration" = Duration::from_secs(2),
        /// The folder for compiled scripts and packages.
        pub cache_dir: PathBuf = PathBuf::from("/var/cache/hero"),
        /// The largest size of that folder, in bytes.
        pub cache_size_max: u64 as "size" = 2 << 30,
        /// The folder of `[artifacts]`, for all who handle files of jobs.
        #[serde(skip)]
        pub artifacts: Option<ArtifactFolder> = None,
    }
}

toml_table! {
    /// Defaults of every actor, the processes that run jobs.
    pub struct ActorConfig in "actor" {
        /// Jobs that run at once, per script type and group.
        tasks: usize = 4 => Number(1, 1024);
        /// The time after which an actor renews its presence and its lease. Must be less than half of `lease`.
        /// ---
        /// It is shorter if the watchdog of the systemd unit requires that.
        heartbeat: Duration as "duration" = Duration::from_secs(5) => Duration(10, HOUR), restart;
        /// An actor that has not renewed its lease for this long is dead, and its jobs are requeued.
        lease: Duration as "duration" = Duration::from_secs(15) => Duration(30, DAY), restart;
        /// The time that a stopping actor waits for its running jobs. Jobs that still run then are stopped, and
        /// requeued at the front once their processes have ended.
        /// ---
        /// The daemon tells systemd how long stopping may take, so `TimeoutStopSec=` of the unit need not be changed
        /// with it.
        drain_timeout: Duration as "duration" = Duration::from_secs(25) => Duration(0, DAY);
        /// Every N-th claim of an actor begins with the background jobs, and with its type before its group, so that neither
        /// urgent jobs nor a flood for a group starves others. 0: never.
        fair_every: u32 = 8 => Number(0, 10_000);
        /// An actor claims no jobs while the load average of its machine (one minute) is above this, such as `8.0`. 0:
        /// no limit.
        load_max: LoadMax = LoadMax::default() => Decimal(100_000);
        /// An actor claims no jobs while its machine has less available memory than this. `0B`: no limit. It checks
        /// with every heartbeat, and `hero actor list` shows the reason.
        memory_min: u64 as "size" = 0 => Size(0, PIB);
        /// Sandboxes the process of an actor whose types are all of the engine `osis`, as far as the kernel can: it
        /// reads the folder of this file and `/proc`, writes `job.log_dir`, connects to Redis, and starts no program.
        /// Folders that are created later need a restart.
        /// ---
        /// If Redis has a host name instead of an address, it reads `/etc` as well; with sentinels or a cluster it may
        /// connect to any port. `hero check UNIT` and the first lines of its log say what is allowed.
        sandbox: bool = true => Flag, restart;
        /// Labels of the actors of this machine, words or numbers, at most 32 with the labels of the unit: `hero submit
        /// --where 'role = "web"'` reaches the actors whose labels match. Each actor has `arch`, `cores`, `group`, `host`,
        /// `instance`, `kernel`, `machine`, `memory`, `os` and `release` without being configured; docs/fleet.md has more.
        ///
        ///     actor.labels = { role = "web", rack = 4 }
        #[serde(skip_serializing_if = "Labels::is_empty")]
        labels: Labels = Labels::new() => Labels;
    }
}
