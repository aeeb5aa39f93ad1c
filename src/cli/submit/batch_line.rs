//! A line of a batch: a job as JSON, with the files that it names. Their paths are relative to the batch's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::cli::job_options::spoken_time;
use crate::cli::script::ScriptSource;
use crate::cli::script_files::{folder_of, named, read_files};
use crate::client::members_of_line;
use crate::config::Config;
use crate::error::Error;
use crate::proto::job::{InvalidJob, JobFiles, Setting};

/// Reads the settings of the job of a line, with the script that it names by `file`, and its files: `input` or `inputs`, and
/// `stdin`.
///
/// # Errors
/// [`InvalidJob`] names the key that is wrong.
pub(super) fn read(
    text: &[u8],
    batch: &Path,
    config: &Config,
) -> Result<(Map<String, Value>, JobFiles), InvalidJob> {
    let mut line = members_of_line(text)?;
    let files = files_of(&mut line, batch, config)?;
    for key in ["at", "run_at"] {
        let Some(Value::String(text)) = line.get_mut(key) else { continue };
        let time = spoken_time(text, None);
        *text = time.map_err(|error| InvalidJob::new(key, error.to_string()))?.to_string();
    }
    match line.remove("file") {
        Some(Value::String(file)) => {
            let from = ScriptSource::of(Some(folder_of(batch).join(file)), None);
            add_script(&mut line, &from, config)?;
        }
        Some(_) => return Err(InvalidJob::new("file", "is not the path of a script")),
        None => {}
    }
    Ok((line, files))
}

fn files_of(
    line: &mut Map<String, Value>,
    batch: &Path,
    config: &Config,
) -> Result<JobFiles, InvalidJob> {
    let mut inputs = BTreeMap::new();
    for key in ["input", "inputs"] {
        let Some(value) = line.remove(key) else { continue };
        for (name, path) in named_files(key, value)? {
            if inputs.insert(name.clone(), path).is_some() {
                return Err(InvalidJob::new(key, format!("names two files `{name}`")));
            }
        }
    }
    let stdin: Option<PathBuf> = line
        .remove("stdin")
        .map(serde_json::from_value)
        .transpose()
        .map_err(|_| InvalidJob::new("stdin", "does not name a file"))?;
    let folder = folder_of(batch);
    let inputs = inputs.iter().map(|(name, file)| (name.as_str(), folder.join(file)));
    let stdin = stdin.map(|file| folder.join(file));
    read_files(&config.job, inputs, stdin.as_deref())
        .map_err(|error| InvalidJob::new("its files:", error.message.replace("--input: ", "")))
}

/// Reads an object of names and paths, or texts as `--input` takes them.
fn named_files(key: &str, value: Value) -> Result<Vec<(String, PathBuf)>, InvalidJob> {
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

/// Adds the script of a file, and its type, extension and name where the line has none.
fn add_script(
    line: &mut Map<String, Value>,
    from: &ScriptSource,
    config: &Config,
) -> Result<(), InvalidJob> {
    if line.contains_key("script") {
        return Err(InvalidJob::new("file", "cannot be set beside script"));
    }
    let script = from.read(config.job.script_size_max).map_err(|error| of_file(&error))?;
    *line = Setting::by_fields(line)?;
    let named = line.get("script_type").and_then(Value::as_str);
    let script_type = from.script_type(named, config).map_err(|error| of_file(&error))?;
    let name = from.job_name().map(|name| name.to_string());
    for (field, text) in [
        ("extension", from.extension(&script_type, config)),
        ("name", name.unwrap_or_default()),
        ("script_type", script_type.to_string()),
        ("script", script),
    ] {
        let is_open = line.get(field).is_none_or(|value| value.is_null() || *value == "");
        if is_open && !text.is_empty() {
            line.insert(field.to_owned(), text.into());
        }
    }
    Ok(())
}

fn of_file(error: &Error) -> InvalidJob {
    InvalidJob::new("file:", error.message.replace("--type", "`type`"))
}
