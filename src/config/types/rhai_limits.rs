//! The limits of scripts in Rhai, and the extensions of well-known languages.

use crate::config::key_row::{ANY, GIB, MIB, TIB};
use crate::config::toml_table::toml_table;
use crate::config::units::size;
use crate::proto::target::ScriptType;

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

pub(super) fn usual_extension(name: &ScriptType) -> &'static str {
    match name.as_str() {
        "sh" => ".sh",
        _ => "",
    }
}
