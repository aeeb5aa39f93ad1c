//! The files of a job beside its working directory: its input, and the folder for those that it leaves.

use std::ffi::{CStr, OsString};
use std::fs::{self, File};
use std::path::Path;

use super::scratch::Scratch;
use crate::artifacts::{ArtifactError, Contents};
use crate::engine::process::tree;
use crate::engine::{Failure, InputFiles};
use crate::proto::job::FileBody;

/// The variables with the paths of the two folders, which no job can override.
pub(in crate::process) const INPUT: &str = "HERO_INPUT_DIR";
const OUTPUT: &str = "HERO_OUTPUT_DIR";
/// The path from the folder of a job to the folder of the files that its script leaves.
pub(in crate::process) const WAY_TO_OUTPUT: [&CStr; 2] = [c"hero", c"output"];

/// Creates the folders and writes the files of the job. Returns its standard input, if it has one.
pub(super) fn provide(
    env: &mut Vec<(OsString, OsString)>,
    files: Option<&InputFiles>,
    to: (&Contents, &Scratch),
) -> Result<Option<File>, Failure> {
    const WHAT: &str = "cannot write the files of the job";
    env.retain(|(name, _)| name != INPUT && name != OUTPUT);
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
    env: &mut Vec<(OsString, OsString)>,
    files: Option<&InputFiles>,
    (contents, scratch): (&Contents, &Scratch),
) -> Result<Option<File>, ArtifactError> {
    let new_folder = |path: &Path| tree::create_private(path).map_err(ArtifactError::Target);
    let output = scratch.own().join("output");
    new_folder(&output)?;
    env.push((OUTPUT.into(), output.into()));
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
    env.push((INPUT.into(), input.into()));
    let Some(content) = &files.stdin else { return Ok(None) };
    let path = scratch.own().join("stdin");
    write(&path, content)?;
    let stdin = File::open(&path).map_err(ArtifactError::Target)?;
    fs::remove_file(path).map_err(ArtifactError::Target)?;
    Ok(Some(stdin))
}
