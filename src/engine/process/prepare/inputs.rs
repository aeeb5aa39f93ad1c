//! The outputs of a job's prerequisites, passed to its child as a JSON file beside its folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::scratch::Scratch;
use crate::engine::{Failure, Inputs};

/// The variable with the path of the file.
const VARIABLE: &str = "HERO_INPUTS";
const FILE: &str = "inputs.json";
/// The file beside it with the name of each prerequisite, for the module `hero`.
const NAMES: &str = "prerequisites.json";

/// Writes the files if the job has prerequisites, and sets [`VARIABLE`], which no job can override.
///
/// # Errors
/// A file cannot be written.
pub(super) fn provide(
    env: &mut Vec<(OsString, OsString)>,
    inputs: &Inputs,
    scratch: &Scratch,
) -> Result<(), Failure> {
    env.retain(|(name, _)| name != VARIABLE);
    if inputs.by_name.is_empty() {
        return Ok(());
    }
    let file = write(inputs, scratch)
        .map_err(|error| Failure::before_start("cannot write the inputs of the script", &error))?;
    env.push((VARIABLE.into(), file.into()));
    Ok(())
}

/// Writes one JSON object, with null for a prerequisite that did not finish, and a list of names.
fn write(inputs: &Inputs, scratch: &Scratch) -> io::Result<PathBuf> {
    scratch.own_file(
        NAMES,
        serde_json::json!({ "names": inputs.prerequisites, "jobs": inputs.jobs }).to_string(),
    )?;
    let by_name = inputs.by_name.iter().map(|(name, output)| (name.as_str(), output.as_deref()));
    let by_name: BTreeMap<&str, Option<&str>> = by_name.collect();
    scratch.own_file(FILE, serde_json::json!(by_name).to_string())
}
