//! `[metrics]`: how many series `hero metrics` prints.

use serde::{Deserialize, Serialize};

/// `[metrics]`: how many series `hero metrics` prints, so that a monitoring system is not flooded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct MetricsConfig {
    /// The queues with series of their own, the longest first; the others are one, `others`.
    pub queues_max: usize,
    /// The script types with series, in the order of their names.
    pub types_max: usize,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { queues_max: 100, types_max: 100 }
    }
}
