//! The choices of a script type, and the limits of scripts in Rhai.

use serde::{Deserialize, Serialize};

use crate::config::key_row::{ANY, GIB, MIB, TIB};
use crate::config::toml_table::toml_table;
use crate::config::units::size;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Rhai without access to the system.
    #[default]
    Osis,
    /// Rhai with access to the system.
    Sal,
    /// `HeroScript` with functions in Rhai, without access to the system.
    HeroScript,
    Command,
}

impl EngineKind {
    /// Returns whether its scripts need nothing but Redis.
    pub fn needs_only_redis(self) -> bool {
        matches!(self, Self::Osis | Self::HeroScript)
    }
}

/// The failed jobs of a type that become dead letters, beside those that took down too many actors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeadLetters {
    /// Jobs with retries that used up their attempts.
    #[default]
    Retried,
    /// Jobs without retries too.
    All,
}

toml_table! {
    /// The limits of one script, for the engines `osis`, `sal` and `heroscript`; with the last, the operations of
    /// one action are counted.
    pub struct RhaiLimits in "type.NAME.limits" {
        /// Operations; 0: no limit but the job's timeout.
        operations: u64 = 0 => Number(0, ANY);
        /// Depth of nested calls.
        depth: usize = 128 => Number(1, 512);
        /// The longest string; also the bytes of all strings in one array or map.
        string_size_max: u64 as "size" = 100_000_000 => Size(1, GIB);
        /// The length of an array with the arrays in it. Each call of a function on an array takes time for all of its
        /// elements.
        array_len_max: usize = 100_000 => Number(1, 1_000_000);
        /// The size of a map with the maps in it.
        map_len_max: usize = 100_000 => Number(1, 1_000_000);
        /// The memory that the process may add while the script runs. It is measured for the whole process: scripts
        /// that grow at the same time count together.
        memory: u64 as "size" = 512 << 20 => Size(16 * MIB, TIB);
    }
}
