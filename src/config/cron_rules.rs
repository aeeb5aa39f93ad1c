//! The rules for periodic jobs in Redis.

use std::collections::BTreeSet;

use super::schema::Config;
use crate::proto::job::JobBounds;
use crate::proto::target::ScriptType;

/// The parts of a configuration by which a periodic job in Redis is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronRules {
    pub(super) types: BTreeSet<ScriptType>,
    pub(super) bounds: JobBounds,
}

impl Default for CronRules {
    fn default() -> Self {
        Self::of(&Config::default())
    }
}

impl CronRules {
    pub(super) fn of(config: &Config) -> Self {
        Self { types: config.types.keys().cloned().collect(), bounds: config.job.bounds() }
    }
}
