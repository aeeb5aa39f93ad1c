//! Published scripts: a text with its settings and the parameters that it declares, kept in Redis under a name, in
//! versions. A job that names one gets the text and the settings when it is submitted.

mod definition;
mod parameter_kind;
mod parameters;

pub use super::script_use::{ScriptName, ScriptUse};
pub use definition::{Provenance, PublishedScript, ScriptDefinition, ScriptVersion, digest_of};
pub use parameter_kind::{Items, ParameterKind};
pub use parameters::{Parameter, Parameters};

pub const SCRIPTS_MAX: usize = 500;
/// The number of versions that are kept of a script: the latest.
pub const VERSIONS_KEPT: u32 = 20;
/// The maximum number of bytes of the versions that are kept of a script: older ones go first.
pub const VERSIONS_BYTES_MAX: u64 = 8 << 20;
/// The largest definition of a script without its text, in bytes of JSON.
pub const DEFINITION_BYTES_MAX: usize = 16 << 10;
pub const TEXT_BYTES_MAX: u64 = 1 << 20;
