//! The table of the configuration: a row for each key of hero.toml. The shipped file, the page hero.toml(5), the
//! schema for editors, the checks of ranges and the keys that need a restart are made from it.
//!
//! The rows of a table stand in its struct, by [`toml_table`](super::toml_table), or beside it.

mod bounds;
mod changes;

pub(super) use bounds::check_bounds;

use super::amqp::RELATIONAL_TABLE;
use super::api::API_KEYS;
use super::keys::KEYS;
use super::osis;
use super::unit_config::UNIT_ACTORS;
use super::{
    ActorConfig, AmqpConfig, ApiConfig, ArtifactsConfig, CalendarConfig, CheckConfig, ClientConfig,
    DependenciesConfig, JobConfig, KeyTable, LimitConfig, LogConfig, LogsConfig, MetricsConfig,
    NotifyConfig, OsisConfig, RedisConfig, RelationalConfig, RhaiLimits, RouteConfig, SalConfig,
    SandboxConfig, SecretRule, SecretsConfig, SupervisorConfig, TraceConfig, TypeConfig,
    UnitConfig, WebhookConfig,
};

/// Every table of the file, in the order of the shipped file.
pub const KEY_TABLES: &[KeyTable] = &[
    LogConfig::TABLE,
    RedisConfig::TABLE,
    SupervisorConfig::TABLE,
    JobConfig::TABLE,
    ActorConfig::TABLE,
    CheckConfig::TABLE,
    MetricsConfig::TABLE,
    TraceConfig::TABLE,
    ApiConfig::TABLE,
    API_KEYS,
    ClientConfig::TABLE,
    AmqpConfig::TABLE,
    RouteConfig::TABLE,
    LogsConfig::TABLE,
    RelationalConfig::TABLE,
    RELATIONAL_TABLE,
    OsisConfig::TABLE,
    osis::INDEX,
    osis::ACCESS,
    osis::SCHEMA,
    osis::GROUPS,
    osis::RIGHTS,
    SalConfig::TABLE,
    SecretsConfig::TABLE,
    SecretRule::TABLE,
    ArtifactsConfig::TABLE,
    TypeConfig::TABLE,
    RhaiLimits::TABLE,
    DependenciesConfig::TABLE,
    SandboxConfig::TABLE,
    LimitConfig::TABLE,
    CalendarConfig::TABLE,
    KEYS,
    NotifyConfig::TABLE,
    WebhookConfig::TABLE,
    UnitConfig::TABLE,
    UNIT_ACTORS,
];
