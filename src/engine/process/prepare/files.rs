//! The files of a job in its private folder: those that it is given, and the folder for those that it leaves.

use std::ffi::{CStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::scratch::Scratch;
use crate::engine::{Failure, InputFiles};

/// The variables with the paths of the two folders, which no job can override.
const INPUT: &str = "HERO_INPUT_DIR";
const OUTPUT: &str = "HERO_OUTPUT_DIR";
/// The folder of both, below that of the job.
const FOLDER: &str = ".hero";
/// The way from the folder of a job to that of the files that its script leaves.
pub(in crate::engine::process) const WAY_TO_OUTPUT: [&CStr; 2] = [c".hero", c"output"];

/// Creates the folders and writes the files that the job is given. Returns its standard input, if it
/// has one.
///
/// # Errors
/// A file cannot be written.
pub(super) fn provide(
    env: &mut Vec<(OsString, OsString)>,
    files: Option<&InputFiles>,
    scratch: &Scratch,
) -> Result<Option<File>, Failure> {
    env.retain(|(name, _)| name != INPUT && name != OUTPUT);
    write_all(env, files, scratch)
        .map_err(|error| Failure::before_start("cannot write the files of the job", &error))
}

fn write_all(
    env: &mut Vec<(OsString, OsString)>,
    files: Option<&InputFiles>,
    scratch: &Scratch,
) -> io::Result<Option<File>> {
    let output = scratch.path().join(FOLDER).join("output");
    new_folder(&output)?;
    env.push((OUTPUT.into(), output.into()));
    let Some(files) = files.filter(|files| !files.is_empty()) else { return Ok(None) };
    let input = scratch.path().join(FOLDER).join("input");
    new_folder(&input)?;
    for (name, bytes) in &files.own {
        write(&input.join(name.as_str()), bytes)?;
    }
    for (prerequisite, files) in &files.of_prerequisites {
        let folder = input.join(prerequisite);
        new_folder(&folder)?;
        for (name, bytes) in files {
            write(&folder.join(name.as_str()), bytes)?;
        }
    }
    env.push((INPUT.into(), input.into()));
    let Some(bytes) = &files.stdin else { return Ok(None) };
    let path = scratch.path().join(FOLDER).join("stdin");
    write(&path, bytes)?;
    let stdin = File::open(&path)?;
    fs::remove_file(path)?;
    Ok(Some(stdin))
}

fn new_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}
