//! The options that give a script its arguments, parameters, variables and files: `-- ARG…`, `--param`, `--params`,
//! `--env-file`, `--input`, `--stdin`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::help::{FILES, WHAT};
use super::input::{bad, open, read_bounded, unreadable};
use crate::artifacts::{ArtifactError, Contents};
use crate::config::JobConfig;
use crate::error::{Error, Exit};
use crate::proto::env_file;
use crate::proto::job::{FileName, InvalidJob, JobFiles, JobSpec, Params, Setting};
use crate::proto::json_text::{refuse_wide_integers, without_mark};
use crate::proto::target::IllegalName;

/// The largest file that is read.
const FILE_SIZE_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
struct ParameterArgument {
    name: String,
    value: Value,
    /// True for NAME=TEXT.
    is_word: bool,
}

/// The arguments, parameters and files of variables of one job.
#[derive(Debug, Args)]
pub(super) struct ScriptArguments {
    /// The arguments of the script, after --; without a script, a command and its arguments
    #[arg(last = true, value_name = "ARG")]
    pub(super) args: Vec<String>,
    /// A parameter of the script: NAME=TEXT, or NAME:=JSON for a number, a list or another value; a published
    /// script that declares a number takes NAME=3 as well; may be repeated
    #[arg(long, value_name = "NAME=TEXT", value_parser = parameter, help_heading = WHAT)]
    param: Vec<ParameterArgument>,
    /// A file with a JSON object: parameters of the script; --param wins
    #[arg(long, value_name = "FILE", help_heading = WHAT)]
    params: Option<PathBuf>,
    /// A file of lines NAME=VALUE: environment variables of the script; may be repeated, --env wins
    #[arg(long, value_name = "FILE", help_heading = WHAT)]
    env_file: Vec<PathBuf>,
}

impl ScriptArguments {
    pub(super) const IDS: [&str; 4] = ["args", "param", "params", "env_file"];

    /// Returns the names of the parameters that were given as NAME=TEXT.
    pub(super) fn words(&self) -> Vec<String> {
        self.param.iter().filter(|of| of.is_word).map(|of| of.name.clone()).collect()
    }

    pub(super) fn spec(&self) -> Result<JobSpec, Error> {
        let mut spec = JobSpec { args: self.args.clone(), ..JobSpec::default() };
        if let Some(file) = &self.params {
            spec.params = parameters_of(file)?;
        }
        let given = self.param.iter().cloned();
        spec.params.extend(given.map(|ParameterArgument { name, value, .. }| (name, value)));
        for file in &self.env_file {
            let text = read_bounded(file, FILE_SIZE_MAX)?;
            let variables = env_file::parse(&text)
                .map_err(|error| bad(format!("{}:{error}", file.display())))?;
            spec.env_vars.extend(variables);
        }
        for (field, option) in [("args", "--"), ("params", "--param"), ("env_vars", "--env-file")] {
            let fault = Setting::of_field(field).and_then(|setting| setting.fault(&spec));
            if let Some(InvalidJob { reason, .. }) = fault {
                return Err(bad(format!("{option}: {reason}")));
            }
        }
        Ok(spec)
    }
}

fn parameters_of(file: &Path) -> Result<Params, Error> {
    let text = read_bounded(file, FILE_SIZE_MAX)?;
    let text = without_mark(text.as_bytes());
    refuse_wide_integers(text).map_err(|why| bad(format!("{}: {why}", file.display())))?;
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| bad(format!("{}: not JSON: {error}", file.display())))?;
    if let Value::Object(entries) = value {
        Ok(entries.into_iter().collect())
    } else {
        let form = "such as {\"name\": \"value\"}";
        Err(bad(format!("{}: not a JSON object, {form}", file.display())))
    }
}

fn parameter(text: &str) -> Result<ParameterArgument, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("expected NAME=TEXT or NAME:=JSON".to_owned());
    };
    let (name, value, is_word) = match name.strip_suffix(':') {
        None => (name, Value::from(value), true),
        Some(name) => {
            refuse_wide_integers(value.as_bytes())?;
            let read = serde_json::from_str(value);
            let why = |error| format!("the value after := is not JSON: {error}");
            (name, read.map_err(why)?, false)
        }
    };
    if name.is_empty() {
        return Err("the name of the parameter is missing".to_owned());
    }
    Ok(ParameterArgument { name: name.to_owned(), value, is_word })
}

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
            return Err(bad(format!("--input: `{name}` cannot be standard input: see --stdin")));
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
        let name: FileName =
            name.parse().map_err(|error: IllegalName| bad(format!("--input: {error}")))?;
        if files.inputs.insert(name.clone(), read(&path)?).is_some() {
            return Err(bad(format!("--input: two files have the name `{name}`")));
        }
    }
    files.stdin = stdin.map(read).transpose()?;
    files
        .check(job.files_size_max)
        .map_err(|error| bad(format!("the files of --input and --stdin {}", error.reason)))?;
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
    fn parameter_is_a_text_unless_a_colon_says_that_it_is_json() {
        for (text, name, value) in [
            ("a=5", "a", Value::from("5")),
            ("a:=5", "a", Value::from(5)),
            ("a=", "a", Value::from("")),
            ("a=b:=c", "a", Value::from("b:=c")),
            ("a b:=[true]", "a b", serde_json::json!([true])),
        ] {
            let given = parameter(text).expect(text);
            assert_eq!((given.name.as_str(), given.value), (name, value), "{text}");
            assert_eq!(given.is_word, !text.contains(":=") || text == "a=b:=c", "{text}");
        }
        for wrong in ["a", "=b", ":=5", "a:=x", "a:=", "a:=[100000000000000000000]"] {
            assert!(parameter(wrong).is_err(), "{wrong}");
        }
    }

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
