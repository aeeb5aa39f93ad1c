//! What Python scripts have beyond other commands: a module of Hero's, errors that name the line,
//! and packages that they ask for.

mod metadata;
mod packages;
mod traceback;
mod version;

use std::path::Path;

use super::Scratch;
use crate::engine::Failure;
use crate::proto::job::InvalidJob;

pub(super) use packages::{Packages, interpreter};

/// The module `hero`.
const MODULE: &str = include_str!("hero.py");
const MODULE_FILE: &str = "hero.py";

/// Puts the module beside a script that names it: the script's own folder is the first in which
/// Python looks.
///
/// # Errors
/// Those of writing it.
pub(super) fn provide_module(source: &str, scratch: &Scratch) -> std::io::Result<()> {
    if source.contains("hero") {
        scratch.file(MODULE_FILE, MODULE)?;
    }
    Ok(())
}

/// The error of a script that failed, if it failed with an exception.
pub(super) fn error_of(stderr_tail: &str, script: &Path) -> Option<String> {
    traceback::error(stderr_tail, script)
}

/// What a script asks for.
///
/// # Errors
/// [`Failure::Invalid`] with the line that is wrong.
fn metadata_of(source: &str) -> Result<Option<metadata::Metadata>, Failure> {
    metadata::read(source).map_err(|reason| {
        let message = InvalidJob::new("script", reason).to_string();
        Failure::Invalid { message }
    })
}
