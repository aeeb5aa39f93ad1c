//! The lines of a batch, read in parts that one call submits.

use std::io::{BufRead, Read};
use std::path::Path;

use serde_json::{Map, Value};

use super::batch_line::{self, JobPerLine};
use crate::cli::api::settings;
use crate::cli::input;
use crate::client::FilesByPlace;
use crate::config::{Config, format_size};
use crate::error::{Error, Exit};
use crate::proto::job::{FileBody, InvalidJob, JobFiles, TraceParent};
use crate::rpc::results::Refused;
use crate::store::Store;

/// The size of a line beside its script: escapes, variables, prerequisites.
const LINE_MARGIN_BYTES: u64 = 1 << 20;
/// The jobs, and the bytes of their lines and files, that are submitted and reported together.
const JOBS_PER_CALL: usize = 250;
const BYTES_PER_CALL: u64 = 1 << 20;

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
            let message = format!("{path}:{}: the line is longer than {most}", self.number);
            return Err(Error::new(Exit::Data, message));
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
            None => batch_line::read(text, self.path, self.config)?,
        };
        if let Some(trace) = self.trace
            && job.get("traceparent").is_none_or(Value::is_null)
        {
            job.insert("traceparent".to_owned(), trace.to_string().into());
        }
        Ok((job, files))
    }
}
