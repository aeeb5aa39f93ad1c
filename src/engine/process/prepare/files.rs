//! The files of a job beside its working directory: its input, the folder for those that it leaves, the outputs of its
//! prerequisites, the state that the attempt before has kept, and its secrets. Variables, which no job can override,
//! tell it where they are.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::scratch::Scratch;
use crate::artifacts::{ArtifactError, Contents};
use crate::engine::process::tree;
use crate::engine::{Failure, InputFiles, Inputs, Script};
use crate::proto::job::FileBody;

pub(in crate::process) const INPUT: &str = "HERO_INPUT_DIR";
const OUTPUT: &str = "HERO_OUTPUT_DIR";
/// The path from the folder of a job to the folder of the files that its script leaves.
pub(in crate::process) const WAY_TO_OUTPUT: [&CStr; 2] = [c"hero", c"output"];
const INPUTS: &str = "HERO_INPUTS";
/// The file beside the inputs with the name of each prerequisite, for the module `hero`.
const NAMES: &str = "prerequisites.json";
const STATE: &str = "HERO_STATE";
const SECRETS: &str = "HERO_SECRET_DIR";
const SECRETS_FOLDER: &str = "secrets";

/// Creates the folders and writes the files of the job. Returns its standard input, if it has one.
pub(super) fn provide(
    env: &mut Environment,
    files: Option<&InputFiles>,
    to: (&Contents, &Scratch),
) -> Result<Option<File>, Failure> {
    const WHAT: &str = "cannot write the files of the job";
    env.remove(OsStr::new(INPUT));
    write_all(env, files, to).map_err(|error| match error {
        ArtifactError::Target(error) | ArtifactError::Source(error) => {
            Failure::before_start(WHAT, &error)
        }
        error @ ArtifactError::Folder { .. } => {
            Failure::Machine { message: format!("{WHAT}: {error}") }
        }
        error => Failure::script(format!("{WHAT}: {error}")),
    })
}

fn write_all(
    env: &mut Environment,
    files: Option<&InputFiles>,
    (contents, scratch): (&Contents, &Scratch),
) -> Result<Option<File>, ArtifactError> {
    let new_folder = |path: &Path| tree::create_private(path).map_err(ArtifactError::Target);
    let output = scratch.own().join("output");
    new_folder(&output)?;
    env.insert(OUTPUT.into(), output.into());
    let Some(files) = files.filter(|files| !files.is_empty()) else { return Ok(None) };
    let write = |path: &Path, content: &FileBody| {
        let mut file = tree::create_file(path).map_err(ArtifactError::Target)?;
        contents.give(content, &mut file)
    };
    let input = scratch.own().join("input");
    new_folder(&input)?;
    for (name, content) in &files.own {
        write(&input.join(name.as_str()), content)?;
    }
    for (prerequisite, files) in &files.of_prerequisites {
        let folder = input.join(prerequisite);
        new_folder(&folder)?;
        for (name, content) in files {
            write(&folder.join(name.as_str()), content)?;
        }
    }
    env.insert(INPUT.into(), input.into());
    let Some(content) = &files.stdin else { return Ok(None) };
    let path = scratch.own().join("stdin");
    write(&path, content)?;
    let stdin = File::open(&path).map_err(ArtifactError::Target)?;
    fs::remove_file(path).map_err(ArtifactError::Target)?;
    Ok(Some(stdin))
}

/// Writes the inputs, the state and the secrets that there are.
pub(super) fn provide_job_data(
    env: &mut Environment,
    script: &Script<'_>,
    scratch: &Scratch,
) -> Result<(), Failure> {
    let inputs = (!script.inputs.by_name.is_empty()).then(|| write_inputs(script.inputs, scratch));
    let state = script.state.map(|state| scratch.own_file("state.json", state));
    let secrets = &script.secrets.files;
    let secrets = (!secrets.is_empty()).then(|| write_secrets(secrets, scratch));
    for (variable, what, written) in
        [(INPUTS, "inputs", inputs), (STATE, "state", state), (SECRETS, "secrets", secrets)]
    {
        env.remove(OsStr::new(variable));
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
