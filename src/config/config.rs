//! The configuration `/etc/hero/hero.toml`: its schema, its defaults, and checks with line and
//! column.
//!
//! [`Config::load`] reads the file and its drop-ins, [`Config::unit`] returns the actors of a unit,
//! and [`Config::to_toml`] writes the configuration in force. A role gets its own slice, such as
//! [`ActorConfig`], never all of it.

extern crate self as config;
use hero_proto as proto;

mod ack;
mod added_cron;
mod amqp;
mod api;
mod api_address;
mod artifacts;
mod asked_bounds;
mod check;
mod command;
mod config_error;
mod connection;
mod cron_rules;
mod files;
mod graph_file;
mod interpreter;
mod job_config;
mod job_table;
mod key_row;
mod keys;
mod limits;
mod load;
mod log;
mod named_scripts;
mod notify;
mod offered;
mod osis;
mod periodic_jobs;
mod readable;
mod redis_url;
mod sal;
mod sandbox;
mod schema;
mod secret_files;
mod secret_url;
mod secrets;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod thresholds;
mod time_zones;
mod toml_table;
mod trace;
mod type_of_script;
mod types;
mod unit;
mod unit_config;
mod units;
mod user;
mod webhook;

pub use crate::proto::legacy::{LegacyQueue, RhailibCircle};
pub use crate::proto::units::{
    AmountError, format_duration, format_size, parse_duration, parse_size,
};
pub use ack::Ack;
pub use amqp::{
    AckMode, AmqpConfig, AmqpMode, AmqpUrl, BrokerName, BuiltInName, ColumnType, LogsConfig, Node,
    QueueKind, RelationalAddress, RelationalConfig, RelationalServer, RelationalUrl, RouteConfig,
    SqlName, TableConfig,
};
pub use api::{AddressRange, ApiConfig, ApiKey, Listen, is_caller_name};
pub use api_address::ApiAddress;
pub use artifacts::{ArtifactFolder, ArtifactsConfig};
pub use asked_bounds::no_process;
pub use command::{DependenciesConfig, is_node, is_python};
pub use config_error::{ConfigError, FilePlace};
pub use connection::{Password, RedisConfig, TlsFiles};
pub use cron_rules::CronRules;
pub use files::{DEFAULT_FILE, changed_at};
pub use graph_file::{GraphFile, GraphJobFiles};
pub use interpreter::{ENV_SPLITS, file_name, is_interpreter_of, runs_with};
pub use job_config::JobConfig;
pub use job_table::JobTable;
pub use key_row::{KeyKind, KeyRow, KeyTable};
pub use keys::KeyConfig;
pub use limits::{Fair, LimitConfig, LimitName, Per, Rate};
pub use log::{LogConfig, LogLevel, LoggedJobs};
pub use named_scripts::{ScriptFile, ScriptFiles, ScriptHead, read_script_head};
pub use notify::NotifyConfig;
pub use osis::OsisConfig;
pub use periodic_jobs::{CronEntry, CronPlace, Crontab};
pub use readable::FileReader;
pub use redis_url::{ClusterUrl, RedisUrl, SentinelUrl};
pub use sal::SalConfig;
pub use sandbox::{Require, SandboxConfig, machine_memory_bytes};
pub use schema::{
    ActorConfig, CalendarConfig, ClientConfig, Config, MetricsConfig, Migration, SupervisorConfig,
};
pub use secret_files::SecretFiles;
pub use secrets::{SECRET_SIZE_MAX, SecretRule, SecretsConfig};
pub use source::Source;
pub use table::KEY_TABLES;
pub use thresholds::CheckConfig;
pub use time_zones::{local_zone, time_zone};
pub use trace::{TraceConfig, TraceReceiver};
pub use type_of_script::{ScriptTypes, check_configured, type_of_script, unreadable};
pub use types::{DeadLetters, EngineKind, RhaiLimits, TypeConfig};
pub use unit::{ActorUnit, Unit};
pub use unit_config::{Role, UnitActor, UnitConfig};
pub use units::FileDuration;
pub use user::UserFolders;
pub use webhook::{HookName, HookProof, SignatureEncoding, WebhookConfig};
