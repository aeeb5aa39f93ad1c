//! The configuration of a broker.

use std::sync::Arc;

use crate::config::{AmqpConfig, JobConfig, OsisConfig};

/// The configuration of a broker.
#[derive(Debug, Clone)]
pub struct BrokerSettings {
    pub amqp: AmqpConfig,
    pub job: JobConfig,
    /// `[osis]`, for objects.
    pub osis: OsisConfig,
    /// The text of the script of each route; empty for a built-in.
    pub scripts: Vec<Arc<str>>,
}
