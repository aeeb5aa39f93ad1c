//! A line of a batch: a job as JSON, with the files that it names. Their paths are relative to the batch's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::cli::job_options::spoken_time;
use crate::cli::script::ScriptSource;
use crate::cli::script_files::{folder_of, named};
use crate::client::{job_of_line, job_of_members};
use crate::config::Config;
use crate::error::Error;
use crate::proto::job::{InvalidJob, Job};
use crate::proto::json_text::{refuse_wide_integers, without_mark};
use crate::proto::target::ScriptType;

/// The files that a line names, by their names in the folder of the script, and its standard input.
#[derive(Clone, Default)]
pub(super) struct LineFiles {
    pub(super) inputs: BTreeMap<String, PathBuf>,
    pub(super) stdin: Option<PathBuf>,
}

impl LineFiles {
    pub(super) fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.stdin.is_none()
    }
}

/// Reads the job of a line, the script that it names by `file`, and the names of its files: `input` or `inputs`, and
/// `stdin`.
///
/// # Errors
/// [`InvalidJob`] names the key that is wrong.
pub(super) fn read(
    text: &[u8],
    batch: &Path,
    config: &Config,
) -> Result<(Job, LineFiles), InvalidJob> {
    let text = without_mark(text);
    refuse_wide_integers(text)
        .map_err(|why| InvalidJob::new("the line", format!("cannot be read: {why}")))?;
    let Ok(Value::Object(mut line)) = serde_json::from_slice(text) else {
        return job_of_line(text).map(|job| (job, LineFiles::default()));
    };
    let files = files_of(&mut line)?;
    for key in ["at", "run_at"] {
        let Some(Value::String(text)) = line.get_mut(key) else { continue };
        let time = spoken_time(text, None);
        *text = time.map_err(|error| InvalidJob::new(key, error.to_string()))?.to_string();
    }
    let from = match line.remove("file") {
        Some(Value::String(file)) => ScriptSource::of(Some(folder_of(batch).join(file)), None),
        Some(_) => return Err(InvalidJob::new("file", "is not the path of a script")),
        None => return Ok((job_of_members(line)?, files)),
    };
    if line.contains_key("script") {
        return Err(InvalidJob::new("file", "cannot be set beside script"));
    }
    let script = from.read(config.job.script_size_max).map_err(|error| of_file(&error))?;
    line.insert("script".to_owned(), script.into());
    let mut job = job_of_members(line)?;
    set_type(&mut job, &from, config)?;
    job.spec.name = job.spec.name.or_else(|| from.job_name());
    Ok((job, files))
}

fn files_of(line: &mut Map<String, Value>) -> Result<LineFiles, InvalidJob> {
    let mut files = LineFiles::default();
    for key in ["input", "inputs"] {
        let Some(value) = line.remove(key) else { continue };
        for (name, path) in inputs(key, value)? {
            if files.inputs.insert(name.clone(), path).is_some() {
                return Err(InvalidJob::new(key, format!("names two files `{name}`")));
            }
        }
    }
    let stdin = line.remove("stdin").map(serde_json::from_value).transpose();
    files.stdin = stdin.map_err(|_| InvalidJob::new("stdin", "does not name a file"))?;
    Ok(files)
}

/// Reads an object of names and paths, or texts as `--input` takes them.
fn inputs(key: &str, value: Value) -> Result<Vec<(String, PathBuf)>, InvalidJob> {
    let wrong = |why: &str| InvalidJob::new(key, format!("does not name files: {why}"));
    match value {
        Value::String(text) => Ok(vec![named(&text).map_err(|why| wrong(&why))?]),
        Value::Array(texts) => {
            let one = |text: &Value| match text {
                Value::String(text) => named(text).map_err(|why| wrong(&why)),
                _ => Err(wrong("expected texts")),
            };
            texts.iter().map(one).collect()
        }
        value => serde_json::from_value::<BTreeMap<String, PathBuf>>(value)
            .map(|files| files.into_iter().collect())
            .map_err(|_| wrong("expected an object of names and paths, or a list of paths")),
    }
}

/// Finds the type of a script by the extension of its file where none is named.
fn set_type(job: &mut Job, from: &ScriptSource, config: &Config) -> Result<(), InvalidJob> {
    let spec = &mut job.spec;
    let named = spec.script_type.as_ref().map(ScriptType::as_str);
    let script_type = from.script_type(named, config).map_err(|error| of_file(&error))?;
    if spec.extension.is_empty() {
        spec.extension = from.extension(&script_type, config);
    }
    spec.script_type = Some(script_type);
    Ok(())
}

fn of_file(error: &Error) -> InvalidJob {
    InvalidJob::new("file:", error.message.replace("--type", "`type`"))
}
