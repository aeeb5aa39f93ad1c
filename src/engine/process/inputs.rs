//! What a job's prerequisites left, as its child finds it: a file of JSON in the script's folder.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::Scratch;
use crate::engine::Inputs;

/// The variable that names the file.
pub(super) const VARIABLE: &str = "HERO_INPUTS";
const FILE: &str = "inputs.json";

/// Writes the file, if there is anything to write, and names it in the environment, where no job
/// may pretend to have one.
///
/// # Errors
/// A message, if the file cannot be written.
pub(super) fn provide(
    env: &mut Vec<(OsString, OsString)>,
    inputs: &Inputs,
    scratch: &Scratch,
) -> Result<(), String> {
    env.retain(|(name, _)| name != VARIABLE);
    if inputs.is_empty() {
        return Ok(());
    }
    let file = scratch
        .file(FILE, &text(inputs))
        .map_err(|error| format!("cannot write the script's inputs: {error}"))?;
    env.push((VARIABLE.into(), file.into()));
    Ok(())
}

/// One JSON object, null for a prerequisite that did not finish.
fn text(inputs: &Inputs) -> String {
    let values: BTreeMap<&str, Option<&str>> =
        inputs.iter().map(|(name, output)| (name.as_str(), output.as_deref())).collect();
    serde_json::json!(values).to_string()
}
