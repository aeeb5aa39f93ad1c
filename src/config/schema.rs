//! The tables and keys of the configuration, with their defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::amqp::AmqpConfig;
use super::api::ApiConfig;
use super::artifacts::ArtifactsConfig;
use super::connection::{RedisConfig, empty_is_none};
use super::job_config::JobConfig;
use super::key_row::{ANY, DAY, HOUR, PIB, TEN_YEARS};
use super::keys::KeyConfig;
use super::limits::{LimitConfig, LimitName};
use super::log::LogConfig;
use super::notify::NotifyConfig;
use super::osis::OsisConfig;
use super::sal::SalConfig;
use super::secrets::SecretsConfig;
use super::thresholds::CheckConfig;
use super::trace::TraceConfig;
use super::types::{self, TypeConfig};
use super::unit_config::UnitConfig;
use super::units::{duration, load_average, size};
use super::webhook::{HookName, WebhookConfig};
use crate::config::toml_table::toml_table;
use crate::proto::cron::{CalendarName, FreeDays};
use crate::proto::job::KeyName;
use crate::proto::labels::Labels;
use crate::proto::legacy::{self, LegacyQueue, RhailibCircle};
use crate::proto::notification::NotifyName;
use crate::proto::target::ScriptType;

toml_table! {
    /// The configuration in force: the defaults, overridden by the files.
    pub struct Config {
        pub log: LogConfig = LogConfig::default(),
        pub redis: RedisConfig = RedisConfig::default(),
        pub supervisor: SupervisorConfig = SupervisorConfig::default(),
        pub job: JobConfig = JobConfig::default(),
        pub actor: ActorConfig = ActorConfig::default(),
        pub check: CheckConfig = CheckConfig::default(),
        pub metrics: MetricsConfig = MetricsConfig::default(),
        pub trace: TraceConfig = TraceConfig::default(),
        pub api: ApiConfig = ApiConfig::default(),
        pub client: ClientConfig = ClientConfig::default(),
        pub amqp: AmqpConfig = AmqpConfig::default(),
        pub osis: OsisConfig = OsisConfig::default(),
        pub sal: SalConfig = SalConfig::default(),
        pub secrets: SecretsConfig = SecretsConfig::default(),
        pub artifacts: ArtifactsConfig = ArtifactsConfig::default(),
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub keys: BTreeMap<KeyName, KeyConfig> = BTreeMap::new(),
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub notify: BTreeMap<NotifyName, NotifyConfig> = BTreeMap::new(),
        #[serde(rename = "hook", skip_serializing_if = "BTreeMap::is_empty")]
        pub hooks: BTreeMap<HookName, WebhookConfig> = BTreeMap::new(),
        #[serde(rename = "limit", skip_serializing_if = "BTreeMap::is_empty")]
        pub limits: BTreeMap<LimitName, LimitConfig> = BTreeMap::new(),
        #[serde(rename = "calendar", skip_serializing_if = "BTreeMap::is_empty")]
        pub calendars: BTreeMap<CalendarName, CalendarConfig> = BTreeMap::new(),
        /// `[type.NAME]`, including the types that come with Hero.
        #[serde(rename = "type", serialize_with = "types::serialize")]
        pub types: BTreeMap<ScriptType, TypeConfig> = types::defaults(),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Migration {
    /// Only Hero's own.
    Canonical,
    /// Hero's own and the legacy ones.
    Dual,
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
        #[serde(deserialize_with = "load_average")]
        load_max: f64 = 0.0 => Decimal(100_000);
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

toml_table! {
    /// The number of series that `hero metrics` prints.
    pub struct MetricsConfig in "metrics" {
        /// The queues with series of their own, the longest first; the others are one, `others`.
        queues_max: usize = 100 => Number(0, ANY);
        /// The script types with series, in the order of their names.
        types_max: usize = 100 => Number(0, ANY);
    }
}

toml_table! {
    /// Calendars: days on which the periodic jobs that name one (`calendar = "holidays"`) do not fire. All machines
    /// with a supervisor must have the same calendars.
    ///
    ///     [calendar.holidays]
    ///     days = ["12-25", "2026-04-06", "2026-12-28..2026-12-31", "SUN"]
    /// ---
    /// Names have 1 to 32 of a-z, 0-9, `_` and `-`.
    pub struct CalendarConfig in "calendar.NAME" {
        /// Dates (`2026-12-25`), days of every year (`12-25`), ranges (`2026-07-01..2026-07-31`) and days of the week
        /// (`SUN`), at most 1000. A day is one of the time zone of the periodic job.
        days: Vec<FreeDays> = Vec::new() => Texts;
    }
}

toml_table! {
    /// The daemon that commands speak to, in place of Redis.
    pub struct ClientConfig in "client" {
        /// The address of the API of a daemon elsewhere: `https://HOST:PORT`, `http://HOST:PORT`, or `unix:PATH` of a socket.
        /// Commands such as `hero exec` and `hero job list` call it and need no login of Redis; `--api` and `HERO_API` name
        /// another. Empty, the default: they use Redis itself. It belongs into `~/.config/hero/hero.toml`.
        api: Option<String> as "empty_is_none" = None => Text;
        /// The file of the token for it, from `hero token new`; `HERO_TOKEN` has the token itself. Empty: no token.
        token_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// The certificate authorities for its certificate, in PEM. Empty: those that the system trusts.
        tls_ca_file: Option<PathBuf> as "empty_is_none" = None => File;
    }
}
