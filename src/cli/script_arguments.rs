//! Arguments, parameters and files of variables: `-- ARG…`, `--param`, `--params`, `--env-file`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::input::{bad, read_bounded};
use super::sections::WHAT;
use crate::error::Error;
use crate::proto::env_file;
use crate::proto::job::{InvalidJob, JobSpec, Params, Setting};
use crate::proto::json_text::{refuse_wide_integers, without_mark};

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
}
