//! The outputs of a job's prerequisites, passed to its child as a JSON file in its folder.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::scratch::Scratch;
use crate::engine::{Failure, Inputs};

/// The variable with the path of the file.
const VARIABLE: &str = "HERO_INPUTS";
const FILE: &str = "inputs.json";

/// Writes the file if the job has prerequisites, and sets [`VARIABLE`], which no job can override.
///
/// # Errors
/// The file cannot be written.
pub(super) fn provide(
    env: &mut Vec<(OsString, OsString)>,
    inputs: &Inputs,
    scratch: &Scratch,
) -> Result<(), Failure> {
    env.retain(|(name, _)| name != VARIABLE);
    if inputs.is_empty() {
        return Ok(());
    }
    let file = scratch
        .file(FILE, text(inputs))
        .map_err(|error| Failure::before_start("cannot write the inputs of the script", &error))?;
    env.push((VARIABLE.into(), file.into()));
    Ok(())
}

/// Returns one JSON object, with null for a prerequisite that did not finish.
fn text(inputs: &Inputs) -> String {
    let values: BTreeMap<&str, Option<&str>> =
        inputs.iter().map(|(name, output)| (name.as_str(), output.as_deref())).collect();
    serde_json::json!(values).to_string()
}
