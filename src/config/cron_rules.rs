//! The rules for periodic jobs in Redis.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::schema::Config;
use super::types::TypeConfig;
use crate::proto::job::JobBounds;
use crate::proto::target::ScriptType;

/// The parts of a configuration that check a periodic job in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronRules {
    pub(super) types: Arc<BTreeMap<ScriptType, TypeConfig>>,
    pub(super) bounds: JobBounds,
}

impl Default for CronRules {
    fn default() -> Self {
        Self::of(&Config::default())
    }
}

impl CronRules {
    /// The names of the script types.
    pub fn type_names(&self) -> Vec<String> {
        self.types.keys().map(ToString::to_string).collect()
    }

    /// The rules of a configuration.
    pub(super) fn of(config: &Config) -> Self {
        Self { types: Arc::new(config.types.clone()), bounds: config.job.bounds() }
    }
}
