//! The options that give a script files.

use std::path::{Path, PathBuf};

use clap::Args;

use super::input::{open, unreadable};
use crate::artifacts::{ArtifactError, Contents};
use crate::config::JobConfig;
use crate::error::{Error, Exit};
use crate::proto::job::{FileName, JobFiles};
use crate::proto::target::IllegalName;

/// The files and the standard input of one job.
#[derive(Debug, Args)]
pub(super) struct GivenFiles {
    /// A file for the script, in the folder that `HERO_INPUT_DIR` names; may be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    input: Vec<(String, PathBuf)>,
    /// The file that the script gets as its standard input; `-` passes on standard input
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
}

impl GivenFiles {
    /// The ids of the options.
    pub(super) const IDS: [&'static str; 2] = ["input", "stdin"];

    /// Reads the files. `is_stdin_taken` if the script itself comes from standard input.
    ///
    /// # Errors
    /// [`Exit::Data`] if a name is not legal, or the files are too many or too large; those of reading
    /// them.
    pub(super) fn read(&self, job: &JobConfig, is_stdin_taken: bool) -> Result<JobFiles, Error> {
        let contents = Contents::of(job);
        let read = |path: &Path| {
            let mut source = open(path)?;
            contents.take(&mut source, job.files_size_max).map_err(|error| wrong(path, &error))
        };
        let mut files = JobFiles::default();
        for (name, path) in &self.input {
            let wrong = |error: String| Error::new(Exit::Data, format!("--input: {error}"));
            let name: FileName =
                name.parse().map_err(|error: IllegalName| wrong(error.to_string()))?;
            if path == Path::new("-") {
                return Err(wrong(format!("`{name}` cannot be standard input: see --stdin")));
            }
            if files.inputs.insert(name.clone(), read(path)?).is_some() {
                return Err(wrong(format!("two files have the name `{name}`")));
            }
        }
        if let Some(path) = &self.stdin {
            if path == Path::new("-") && is_stdin_taken {
                let message = "--stdin: standard input is the script already; name a file";
                return Err(Error::new(Exit::Usage, message));
            }
            files.stdin = Some(read(path)?);
        }
        files.check(job.files_size_max).map_err(|error| {
            Error::new(Exit::Data, format!("the files of --input and --stdin {}", error.reason))
        })?;
        Ok(files)
    }
}

fn wrong(path: &Path, error: &ArtifactError) -> Error {
    match error {
        ArtifactError::Source(error) => unreadable(path, error),
        error => Error::new(error.exit(), format!("{}: {error}", path.display())),
    }
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), path.into()))
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}
