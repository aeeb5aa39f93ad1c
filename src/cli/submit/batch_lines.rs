//! The lines of a batch, read in parts that one call submits: each is a job as JSON, with the files that it names, whose
//! paths are relative to the batch's file; or of `hero submit --each`, as `xargs` and `parallel` run a command for each line.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::cli::api::settings;
use crate::cli::input;
use crate::cli::job_options::{JobOptions, spoken_time};
use crate::cli::script::{ScriptSource, fill_command};
use crate::cli::script_inputs::{folder_of, named, read_files};
use crate::client::{FilesByPlace, members_of_line};
use crate::config::{Config, format_size};
use crate::error::Error;
use crate::proto::job::{FileBody, InvalidJob, Job, JobFiles, JobSpec, Setting, TraceParent};
use crate::rpc::results::Refused;
use crate::store::Store;

/// The size of a line beside its script: escapes, variables, prerequisites.
const LINE_MARGIN_BYTES: u64 = 1 << 20;
/// The jobs, and the bytes of their lines and files, that are submitted and reported together.
const JOBS_PER_CALL: usize = 250;
const BYTES_PER_CALL: u64 = 1 << 20;
/// The part of an argument that a line replaces.
const PLACE: &str = "{}";

const NAME_BYTES_MAX: usize = 256;

#[derive(Default)]
pub(super) struct LinesOfCall {
    pub(super) jobs: Vec<Value>,
    /// The numbers of their lines, from 1.
    pub(super) numbers: Vec<usize>,
    /// The files of some, by their places among the jobs.
    pub(super) files: FilesByPlace,
    /// The lines that make no job, and why.
    pub(super) rejected: Vec<Refused>,
    pub(super) is_last: bool,
}

pub(super) struct BatchLines<'a> {
    from: Box<dyn BufRead>,
    path: &'a Path,
    /// The options of all jobs, if lines are their arguments.
    each: Option<&'a JobPerLine<'a>>,
    config: &'a Config,
    /// The trace of the jobs that are in no other.
    trace: Option<TraceParent>,
    /// The number of the last line read, from 1.
    number: usize,
}

impl<'a> BatchLines<'a> {
    pub(super) fn open(
        path: &'a Path,
        each: Option<&'a JobPerLine<'a>>,
        config: &'a Config,
        trace: Option<TraceParent>,
    ) -> Result<Self, Error> {
        Ok(Self { from: input::open(path)?, path, each, config, trace, number: 0 })
    }

    /// Reads the jobs of the next call: some, or all. Fails if the file cannot be read, or a line is too long for any job.
    pub(super) fn next(&mut self, is_whole: bool) -> Result<LinesOfCall, Error> {
        let (mut of_call, mut bytes) = (LinesOfCall::default(), 0);
        // More than all that one call takes are rejected by it.
        let (jobs_max, bytes_max) = if is_whole {
            (Store::WHOLE_MAX + 1, u64::MAX)
        } else {
            (JOBS_PER_CALL, BYTES_PER_CALL)
        };
        while of_call.jobs.len() < jobs_max && bytes < bytes_max {
            let Some(line) = self.line()? else {
                of_call.is_last = true;
                break;
            };
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            match self.job(text) {
                Ok((job, files)) => {
                    bytes += text.len() as u64;
                    if !files.is_empty() {
                        bytes += files.contents().map(FileBody::redis_bytes).sum::<u64>();
                        of_call.files.insert(of_call.jobs.len(), files);
                    }
                    of_call.jobs.push(job.into());
                    of_call.numbers.push(self.number);
                }
                Err(error) => {
                    let error = error.to_string();
                    of_call.rejected.push(Refused { line: self.number, error });
                }
            }
        }
        Ok(of_call)
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let script_max = self.config.job.script_size_max;
        let bytes_max = script_max.saturating_mul(2).saturating_add(LINE_MARGIN_BYTES);
        self.number += 1;
        let mut bytes = Vec::new();
        let mut line = self.from.as_mut().take(bytes_max + 1);
        let read = line.read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| input::unreadable(self.path, &error))?;
        if read as u64 > bytes_max {
            let (path, most) = (self.path.display(), format_size(bytes_max));
            let number = self.number;
            return Err(input::bad(format!("{path}:{number}: the line is longer than {most}")));
        }
        Ok((read > 0).then_some(bytes))
    }

    /// Returns the settings of the job of a line, and its files.
    fn job(&self, text: &[u8]) -> Result<(Map<String, Value>, JobFiles), InvalidJob> {
        let (mut job, files) = match self.each {
            Some(each) => {
                let (job, files) = each.job(text)?;
                (settings(&job), files)
            }
            None => read(text, self.path, self.config)?,
        };
        if let Some(trace) = self.trace
            && job.get("traceparent").is_none_or(Value::is_null)
        {
            job.insert("traceparent".to_owned(), trace.to_string().into());
        }
        Ok((job, files))
    }
}

/// Reads the settings of the job of a line, with the script that it names by `file`, and its files: `input` or `inputs`, and
/// `stdin`. [`InvalidJob`] names the key that is wrong.
fn read(
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

pub(super) struct JobPerLine<'a> {
    options: &'a JobOptions,
    config: &'a Config,
    /// The job of the options, whose arguments no line has filled.
    spec: JobSpec,
}

impl<'a> JobPerLine<'a> {
    /// Reads the script and the settings once. The batch has the id and the notifications.
    pub(super) fn new(options: &'a JobOptions, config: &'a Config) -> Result<Self, Error> {
        let spec = JobSpec { id: None, notify: Vec::new(), ..options.job(config)?.spec };
        Ok(Self { options, config, spec })
    }

    /// Returns the job of a line, which is its name, and its files.
    pub(super) fn job(&self, line: &[u8]) -> Result<(Job, JobFiles), InvalidJob> {
        let wrong = |reason: String| InvalidJob::new("the line:", reason);
        let line = str::from_utf8(line).map_err(|error| wrong(error.to_string()))?;
        let args = with_line(&self.options.further.given.args, line);
        // The batch has the name that is given.
        let name = line[..line.floor_char_boundary(NAME_BYTES_MAX)].parse().ok();
        let mut spec = JobSpec { args, name, ..self.spec.clone() };
        if self.options.is_plain_command() {
            fill_command(&mut spec, self.config).map_err(|error| wrong(error.message))?;
        }
        let mut job = Job::from(spec);
        self.options.further.delay.apply(&mut job).map_err(|error| wrong(error.message))?;
        let files = self.options.files(Some((PLACE, line)), &job, self.config);
        let files = files.map_err(|error| InvalidJob::new("its files:", error.message))?;
        Ok((job, files))
    }
}

/// Returns arguments with a line in place of each `{}`, or after them if none has one.
fn with_line(args: &[String], line: &str) -> Vec<String> {
    let mut filled: Vec<String> = args.iter().map(|arg| arg.replace(PLACE, line)).collect();
    if !args.iter().any(|arg| arg.contains(PLACE)) {
        filled.push(line.to_owned());
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_stands_in_place_of_braces_or_at_the_end() {
        let filled = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            with_line(&args, "a b.png")
        };
        assert_eq!(filled(&["convert", "{}", "small/{}"]), ["convert", "a b.png", "small/a b.png"]);
        assert_eq!(filled(&["gzip", "-k"]), ["gzip", "-k", "a b.png"]);
        assert_eq!(filled(&[]), ["a b.png"]);
    }
}
