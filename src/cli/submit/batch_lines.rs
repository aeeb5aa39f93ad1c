//! The lines of a batch, read one by one.

use std::io::{BufRead, Read};
use std::path::Path;

use super::batch_line::{self, LineFiles};
use super::each::JobPerLine;
use crate::cli::input;
use crate::cli::script_files::{folder_of, read_files};
use crate::client::Client;
use crate::config::{Config, format_size};
use crate::error::{Error, Exit};
use crate::proto::job::{InvalidJob, Job, JobFiles, TraceParent};

/// A line of the file.
pub(super) struct BatchLine {
    /// Its number, from 1.
    pub(super) number: u64,
    pub(super) job: Job,
    pub(super) files: LineFiles,
}

/// Reads the lines of the file as jobs.
pub(super) struct BatchLines<'a> {
    pub(super) from: Box<dyn BufRead>,
    pub(super) path: &'a Path,
    /// The options of all jobs, if lines are their arguments.
    pub(super) each: Option<&'a JobPerLine<'a>>,
    pub(super) config: &'a Config,
    pub(super) bytes_max: u64,
    /// The trace of the jobs that are in no other.
    pub(super) trace: Option<TraceParent>,
    /// The number of the last line read, from 1.
    pub(super) number: u64,
}

impl BatchLines<'_> {
    /// Reads the next line that is not empty; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, or a line is too long for any job.
    pub(super) fn next(
        &mut self,
        client: &Client,
    ) -> Result<Option<Result<BatchLine, InvalidJob>>, Error> {
        loop {
            self.number += 1;
            let mut bytes = Vec::new();
            let mut line = self.from.as_mut().take(self.bytes_max + 1);
            let read = line.read_until(b'\n', &mut bytes);
            let read = read.map_err(|error| input::unreadable(self.path, &error))?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 > self.bytes_max {
                let (path, most) = (self.path.display(), format_size(self.bytes_max));
                let message = format!("{path}:{}: the line is longer than {most}", self.number);
                return Err(Error::new(Exit::Data, message));
            }
            let text = bytes.trim_ascii();
            if !text.is_empty() {
                let check =
                    |job: &Job| client.check(job).and_then(|()| self.config.check_asked(&job.spec));
                let read = match self.each {
                    Some(each) => each.job(text).map(|job| (job, LineFiles::default())),
                    None => batch_line::read(text, self.path, self.config),
                };
                return Ok(Some(read.and_then(|(mut job, files)| {
                    job.spec.traceparent = job.spec.traceparent.or(self.trace);
                    check(&job).map(|()| BatchLine { number: self.number, job, files })
                })));
            }
        }
    }

    /// Reads the files of a job.
    pub(super) fn read_files(&self, job: &Job, files: &LineFiles) -> Result<JobFiles, InvalidJob> {
        let folder = folder_of(self.path);
        let inputs = files.inputs.iter().map(|(name, file)| (name.as_str(), folder.join(file)));
        let stdin = files.stdin.as_ref().map(|file| folder.join(file));
        let files = read_files(&self.config.job, inputs, stdin.as_deref()).map_err(|error| {
            InvalidJob::new("its files:", error.message.replace("--input: ", ""))
        })?;
        self.config.check_files(&job.spec, &files)?;
        Ok(files)
    }
}
