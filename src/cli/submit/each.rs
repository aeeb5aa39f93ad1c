//! `hero submit --each`: a job for each line of a file, as `xargs` and `parallel` run a command for each.

use crate::cli::job_options::JobOptions;
use crate::cli::plain_command;
use crate::config::Config;
use crate::error::Error;
use crate::proto::job::{InvalidJob, Job, JobFiles, JobSpec};

/// The part of an argument that a line replaces.
const PLACE: &str = "{}";

/// The longest name of a job.
const NAME_BYTES_MAX: usize = 256;

/// The options of the jobs of all lines.
pub(super) struct JobPerLine<'a> {
    options: &'a JobOptions,
    config: &'a Config,
    /// The job of the options, whose arguments no line has filled.
    spec: JobSpec,
}

impl<'a> JobPerLine<'a> {
    /// Reads the script and the settings once. The batch has the id and the notifications.
    ///
    /// # Errors
    /// As [`JobOptions::job`].
    pub(super) fn new(options: &'a JobOptions, config: &'a Config) -> Result<Self, Error> {
        let spec = JobSpec { id: None, notify: Vec::new(), ..options.job(config)?.spec };
        Ok(Self { options, config, spec })
    }

    /// Returns the job of a line, which is its name, and its files.
    ///
    /// # Errors
    /// [`InvalidJob`] if the line is not UTF-8, or makes no job, or a file cannot be read.
    pub(super) fn job(&self, line: &[u8]) -> Result<(Job, JobFiles), InvalidJob> {
        let wrong = |reason: String| InvalidJob::new("the line:", reason);
        let line = str::from_utf8(line).map_err(|error| wrong(error.to_string()))?;
        let args = with_line(self.options.args(), line);
        // The batch has the name that is given.
        let name = line[..line.floor_char_boundary(NAME_BYTES_MAX)].parse().ok();
        let mut spec = JobSpec { args, name, ..self.spec.clone() };
        if self.options.is_plain_command() {
            plain_command::fill(&mut spec, self.config).map_err(|error| wrong(error.message))?;
        }
        let mut job = Job::from(spec);
        self.options.delay(&mut job).map_err(|error| wrong(error.message))?;
        let files = self.options.files_of_line((PLACE, line), &job, self.config);
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
