//! The secrets that a job wants as files, in a folder beside its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use super::scratch::Scratch;
use crate::engine::Failure;

/// The variable with the path of the folder.
const VARIABLE: &str = "HERO_SECRET_DIR";
const FOLDER: &str = "secrets";

/// Writes the files if there are any, and sets [`VARIABLE`], which no job can override.
///
/// # Errors
/// A file cannot be written.
pub(super) fn provide(
    env: &mut Vec<(OsString, OsString)>,
    files: &BTreeMap<String, Vec<u8>>,
    scratch: &Scratch,
) -> Result<(), Failure> {
    env.retain(|(name, _)| name != VARIABLE);
    if files.is_empty() {
        return Ok(());
    }
    let folder = write(files, scratch)
        .map_err(|error| Failure::before_start("cannot write the secrets of the script", &error))?;
    env.push((VARIABLE.into(), folder.into()));
    Ok(())
}

/// Writes them where only this user can read them.
fn write(files: &BTreeMap<String, Vec<u8>>, scratch: &Scratch) -> io::Result<PathBuf> {
    let folder = scratch.own().join(FOLDER);
    DirBuilder::new().mode(0o700).create(&folder)?;
    for (name, content) in files {
        scratch.own_file(&format!("{FOLDER}/{name}"), content)?;
    }
    Ok(folder)
}
