//! The limits of scripts in Rhai, and the extensions of well-known languages.

use crate::config::toml_table::toml_table;
use crate::config::units;
use crate::proto::target::ScriptType;

toml_table! {
    /// `[type.NAME.limits]`: the limits of one Rhai script.
    pub struct RhaiLimits {
        /// The maximum number of operations; 0 leaves it to the timeout.
        pub operations: u64 = 0,
        /// The deepest nesting of calls.
        pub depth: usize = 128,
        /// The longest string, in bytes.
        #[serde(with = "units::size")]
        pub string_size_max: u64 = 100_000_000,
        /// The maximum number of elements of an array.
        pub array_len_max: usize = 100_000,
        /// The maximum number of entries of a map.
        pub map_len_max: usize = 100_000,
        /// The memory that the process may grow by while the script runs.
        #[serde(with = "units::size")]
        pub memory: u64 = 512 << 20,
    }
}

/// Returns the extension of a well-known language.
pub(super) fn usual_extension(name: &ScriptType) -> &'static str {
    match name.as_str() {
        "sh" => ".sh",
        _ => "",
    }
}
