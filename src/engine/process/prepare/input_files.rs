//! The files that a job's child gets beside its folder: the outputs of its prerequisites, the state that the attempt
//! before has kept, and its secrets. Variables with their paths tell it where they are.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::scratch::Scratch;
use crate::engine::process::tree;
use crate::engine::{Failure, Inputs, Script};

const INPUTS: &str = "HERO_INPUTS";
/// The file beside the inputs with the name of each prerequisite, for the module `hero`.
const NAMES: &str = "prerequisites.json";
const STATE: &str = "HERO_STATE";
const SECRETS: &str = "HERO_SECRET_DIR";
const SECRETS_FOLDER: &str = "secrets";

/// Writes what there is, and sets the variables, which no job can override.
pub(super) fn provide(
    env: &mut Vec<(OsString, OsString)>,
    script: &Script<'_>,
    scratch: &Scratch,
) -> Result<(), Failure> {
    let Inputs { by_name, .. } = script.inputs;
    let inputs = (!by_name.is_empty()).then(|| write_inputs(script.inputs, scratch));
    let state = script.state.map(|state| scratch.own_file("state.json", state));
    let secrets = &script.secrets.files;
    let secrets = (!secrets.is_empty()).then(|| write_secrets(secrets, scratch));
    for (variable, what, written) in
        [(INPUTS, "inputs", inputs), (STATE, "state", state), (SECRETS, "secrets", secrets)]
    {
        env.retain(|(name, _)| name != variable);
        let what = format!("cannot write the {what} of the script");
        let path = written.transpose().map_err(|error| Failure::before_start(what, &error))?;
        env.extend(path.map(|path| (variable.into(), path.into())));
    }
    Ok(())
}

/// Writes one JSON object, with null for a prerequisite that did not finish, and a list of names.
fn write_inputs(inputs: &Inputs, scratch: &Scratch) -> io::Result<PathBuf> {
    let of_jobs = serde_json::json!({ "names": inputs.prerequisites, "jobs": inputs.jobs });
    scratch.own_file(NAMES, of_jobs.to_string())?;
    let by_name = inputs.by_name.iter().map(|(name, output)| (name.as_str(), output.as_deref()));
    let by_name: BTreeMap<&str, Option<&str>> = by_name.collect();
    scratch.own_file("inputs.json", serde_json::json!(by_name).to_string())
}

fn write_secrets(files: &BTreeMap<String, Vec<u8>>, scratch: &Scratch) -> io::Result<PathBuf> {
    let folder = scratch.own().join(SECRETS_FOLDER);
    tree::create_private(&folder)?;
    for (name, content) in files {
        scratch.own_file(&format!("{SECRETS_FOLDER}/{name}"), content)?;
    }
    Ok(folder)
}
