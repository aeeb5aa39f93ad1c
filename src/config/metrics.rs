//! `[metrics]`: how many series `hero metrics` prints.

use super::key_row::ANY;
use crate::config::toml_table::toml_table;

toml_table! {
    /// The number of series that `hero metrics` prints.
    pub struct MetricsConfig in "metrics" {
        /// The queues with series of their own, the longest first; the others are one, `others`.
        queues_max: usize = 100 => Number(0, ANY);
        /// The script types with series, in the order of their names.
        types_max: usize = 100 => Number(0, ANY);
    }
}
