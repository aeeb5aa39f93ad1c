//! The state that the attempt before has kept, passed to a child as a JSON file beside its folder.

use std::ffi::OsString;

use super::scratch::Scratch;
use crate::engine::Failure;

/// The variable with the path of the file.
const VARIABLE: &str = "HERO_STATE";
const FILE: &str = "state.json";

/// Writes the file if there is a state, and sets [`VARIABLE`], which no job can override.
///
/// # Errors
/// The file cannot be written.
pub(super) fn provide(
    env: &mut Vec<(OsString, OsString)>,
    state: Option<&str>,
    scratch: &Scratch,
) -> Result<(), Failure> {
    env.retain(|(name, _)| name != VARIABLE);
    let Some(state) = state else { return Ok(()) };
    let file = scratch.own_file(FILE, state);
    let file = file
        .map_err(|error| Failure::before_start("cannot write the state of the script", &error))?;
    env.push((VARIABLE.into(), file.into()));
    Ok(())
}
