//! `[metrics]`: how many series `hero metrics` prints.

use crate::config::toml_table::toml_table;

toml_table! {
    /// `[metrics]`: how many series `hero metrics` prints, so that a monitoring system is not flooded.
    pub struct MetricsConfig {
        /// The queues with series of their own, the longest first; the others are one, `others`.
        pub queues_max: usize = 100,
        /// The script types with series, in the order of their names.
        pub types_max: usize = 100,
    }
}
