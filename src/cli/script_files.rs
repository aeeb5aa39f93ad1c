//! The options that give a script files.

use std::path::{Path, PathBuf};

use clap::Args;

use super::input::{open, unreadable};
use super::sections::FILES;
use crate::artifacts::{ArtifactError, Contents};
use crate::config::JobConfig;
use crate::error::{Error, Exit};
use crate::proto::job::{FileName, JobFiles};
use crate::proto::target::IllegalName;

/// The files and the standard input of one job.
#[derive(Debug, Args)]
pub(super) struct InputOptions {
    /// A file for the script, in the folder that `HERO_INPUT_DIR` names, there as NAME or with its own name;
    /// may be repeated
    #[arg(long, value_name = "[NAME=]FILE", value_parser = named, help_heading = FILES)]
    input: Vec<(String, PathBuf)>,
    /// The file that the script gets as its standard input; `-` passes on standard input
    #[arg(long, value_name = "FILE", help_heading = FILES)]
    stdin: Option<PathBuf>,
}

impl InputOptions {
    pub(super) const IDS: [&'static str; 2] = ["input", "stdin"];

    /// Returns the options with a line in place of each `place`. A file that is named by it has its own name.
    pub(super) fn with_line(&self, place: &str, line: &str) -> Self {
        let fill = |path: &Path| match path.to_str() {
            Some(text) => PathBuf::from(text.replace(place, line)),
            None => path.to_owned(),
        };
        let named = |(name, path): &(String, PathBuf)| {
            let name = name.replace(place, line);
            let own = Path::new(&name).file_name().and_then(|name| name.to_str());
            (own.unwrap_or(&name).to_owned(), fill(path))
        };
        let stdin = self.stdin.as_deref().map(fill);
        Self { input: self.input.iter().map(named).collect(), stdin }
    }

    /// Reads the files. `is_stdin_taken` if the script itself comes from standard input.
    pub(super) fn read(&self, job: &JobConfig, is_stdin_taken: bool) -> Result<JobFiles, Error> {
        let is_standard_input = |path: &PathBuf| path == Path::new("-");
        if let Some((name, _)) = self.input.iter().find(|(_, path)| is_standard_input(path)) {
            let message = format!("--input: `{name}` cannot be standard input: see --stdin");
            return Err(Error::new(Exit::Data, message));
        }
        if is_stdin_taken && self.stdin.as_ref().is_some_and(is_standard_input) {
            let message = "--stdin: standard input is the script already; name a file";
            return Err(Error::new(Exit::Usage, message));
        }
        let inputs = self.input.iter().map(|(name, path)| (name.as_str(), path.clone()));
        read_files(job, inputs, self.stdin.as_deref())
    }
}

/// Reads the files of a job, by their names. Fails with [`Exit::Data`] if a name is not legal, or the files are too many
/// or too large.
pub(super) fn read_files<'a>(
    job: &JobConfig,
    inputs: impl Iterator<Item = (&'a str, PathBuf)>,
    stdin: Option<&Path>,
) -> Result<JobFiles, Error> {
    let contents = Contents::of(job);
    let read = |path: &Path| {
        let mut source = open(path)?;
        contents.take(&mut source, job.files_size_max).map_err(|error| wrong(path, &error))
    };
    let mut files = JobFiles::default();
    for (name, path) in inputs {
        let name: FileName = name
            .parse()
            .map_err(|error: IllegalName| Error::new(Exit::Data, format!("--input: {error}")))?;
        if files.inputs.insert(name.clone(), read(&path)?).is_some() {
            let message = format!("--input: two files have the name `{name}`");
            return Err(Error::new(Exit::Data, message));
        }
    }
    files.stdin = stdin.map(read).transpose()?;
    files.check(job.files_size_max).map_err(|error| {
        Error::new(Exit::Data, format!("the files of --input and --stdin {}", error.reason))
    })?;
    Ok(files)
}

/// Returns the folder of a file of jobs, where their files are. None of these is `-`, standard input.
pub(super) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn wrong(path: &Path, error: &ArtifactError) -> Error {
    match error {
        ArtifactError::Source(error) => unreadable(path, error),
        error => Error::new(error.exit(), format!("{}: {error}", path.display())),
    }
}

/// Reads `NAME=FILE`, or a file with its own name.
pub(super) fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), path.into()))
        }
        Some(_) => Err("expected NAME=FILE".to_owned()),
        None => match Path::new(text).file_name().and_then(|name| name.to_str()) {
            Some(name) => Ok((name.to_owned(), text.into())),
            None => Err("expected FILE or NAME=FILE".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_without_a_name_has_its_own() {
        for (text, name, path) in [
            ("a=b/c.csv", "a", "b/c.csv"),
            ("in.csv", "in.csv", "in.csv"),
            ("/tmp/b.csv", "b.csv", "/tmp/b.csv"),
        ] {
            assert_eq!(named(text), Ok((name.to_owned(), path.into())), "{text}");
        }
        for wrong in ["", "=b", "a=", "/", ".."] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
