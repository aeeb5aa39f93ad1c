//! The limits of scripts in Rhai, and the extensions of well-known languages.

use serde::{Deserialize, Serialize};

use crate::config::units;
use crate::proto::target::ScriptType;

/// `[type.NAME.limits]`: the limits of one Rhai script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RhaiLimits {
    /// The maximum number of operations; 0 leaves it to the timeout.
    pub operations: u64,
    /// The deepest nesting of calls.
    pub depth: usize,
    /// The longest string, in bytes.
    #[serde(with = "units::size")]
    pub string_size_max: u64,
    /// The maximum number of elements of an array.
    pub array_len_max: usize,
    /// The maximum number of entries of a map.
    pub map_len_max: usize,
    /// The memory that the process may grow by while the script runs.
    #[serde(with = "units::size")]
    pub memory: u64,
}

impl Default for RhaiLimits {
    fn default() -> Self {
        Self {
            operations: 0,
            depth: 128,
            string_size_max: 100_000_000,
            array_len_max: 100_000,
            map_len_max: 100_000,
            memory: 512 << 20,
        }
    }
}

/// Returns the extension of a well-known language.
pub(super) fn usual_extension(name: &ScriptType) -> &'static str {
    match name.as_str() {
        "sh" => ".sh",
        _ => "",
    }
}
