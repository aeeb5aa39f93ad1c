//! The table of the configuration: a row for each key of hero.toml. The shipped file, the page hero.toml(5), the
//! schema for editors, the checks of ranges and the keys that need a restart are made from it.

mod actor;
mod amqp;
mod amqp_data;
mod api;
mod bounds;
mod changes;
mod check;
mod connection;
mod job;
mod log;
mod notify;
mod osis;
mod places;
mod row;
mod sal;
mod sandbox;
mod script_type;
mod supervisor;
mod trace;
mod unit;

pub(super) use bounds::check_bounds;
pub use row::{KeyKind, KeyRow, KeyTable};

/// Every table of the file, in the order of the shipped file.
pub const KEY_TABLES: &[KeyTable] = &[
    log::LOG,
    connection::REDIS,
    supervisor::SUPERVISOR,
    job::JOB,
    actor::ACTOR,
    check::CHECK,
    log::METRICS,
    trace::TRACE,
    api::API,
    api::API_KEYS,
    amqp::AMQP,
    amqp::ROUTE,
    amqp_data::LOGS,
    amqp_data::RELATIONAL,
    amqp_data::RELATIONAL_TABLE,
    osis::OSIS,
    osis::INDEX,
    osis::ACCESS,
    osis::SCHEMA,
    osis::GROUPS,
    osis::RIGHTS,
    sal::SAL,
    sal::SECRETS,
    sal::ALLOW,
    sal::ARTIFACTS,
    script_type::TYPE,
    script_type::LIMITS,
    script_type::DEPENDENCIES,
    sandbox::SANDBOX,
    unit::LIMIT,
    unit::CALENDAR,
    notify::KEYS,
    notify::NOTIFY,
    unit::UNIT,
    unit::UNIT_ACTORS,
];
