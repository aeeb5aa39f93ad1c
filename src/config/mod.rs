//! What `/etc/hero/hero.toml` says: its schema, its defaults, and checks that name line and column.
//!
//! [`Config::load`] reads the file and its drop-ins, [`Config::unit`] tells what a unit is, and
//! [`Config::to_toml`] prints what is in force. A role gets its own slice, such as
//! [`ActorConfig`], never the whole.

mod check;
mod command;
mod connection;
mod error;
mod files;
mod load;
mod osis;
mod redis_url;
mod sal;
mod schema;
mod source;
#[cfg(test)]
mod tests;
mod types;
mod unit;
mod units;

pub use crate::proto::legacy::{LegacyQueue, RhailibCircle};
pub use command::{CommandOptions, DependenciesConfig, is_python};
pub use connection::{Password, RedisConfig, TlsFiles};
pub use error::{ConfigError, Place};
pub(crate) use error::{KeyPath, explain};
pub use files::DEFAULT_FILE;
pub use osis::OsisConfig;
pub use redis_url::{RedisUrl, SentinelUrl};
pub use sal::SalConfig;
pub use schema::{
    ActorConfig, Config, JobConfig, LogConfig, LogLevel, Migration, Role, SupervisorConfig,
    UnitActor, UnitConfig,
};
pub(crate) use source::place;
pub use types::{EngineKind, RhaiLimits, TypeConfig};
pub use unit::{ActorUnit, Unit};
pub use units::{AmountError, format_duration, format_size, parse_duration, parse_size};
