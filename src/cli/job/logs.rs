//! `hero job logs`: prints the log of a job, or follows it.

use std::io::{self, IsTerminal};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::api::{ApiMethods, LOG_LINES, job_of, read};
use crate::cli::output;
use crate::cli::progress::{BEGIN, END};
use crate::cli::time::PastZone;
use crate::error::Error;
use crate::proto::job::{Job, JobId};
use crate::proto::text::escape;
use crate::store::LogLine;

/// Print the log of a job
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job logs -f 7f9c2ba4\n  \
                        hero job logs --since 10m 7f9c2ba4\n  \
                        hero job logs -f --timestamps 7f9c2ba4\n\n\
                        The standard output of a job is in its log once it has run for a second, or has written to \
                        standard error; else hero job output prints it.\n\
                        With --json and -f, one document per line as the log grows.")]
#[expect(clippy::struct_excessive_bools, reason = "they are the options of a command")]
pub(in crate::cli) struct Logs {
    /// The job
    id: String,
    /// Follow the log until the job has ended, with the text of a line that has not ended yet
    #[arg(short, long)]
    follow: bool,
    /// Only lines since then: 10m (ago), 09:00, yesterday 18:00, 2026-12-24 18:00, or RFC 3339
    #[arg(long, value_name = "DURATION|TIME")]
    since: Option<String>,
    #[command(flatten)]
    zone: PastZone,
    /// Print the time of each line first: local time at a terminal, else UTC
    #[arg(long)]
    timestamps: bool,
    /// Print the stream of each line before it: out or err
    #[arg(long)]
    streams: bool,
    /// At a terminal, leave control characters as they are
    #[arg(long)]
    raw: bool,
}

impl Logs {
    pub(super) async fn run(&self, api: &ApiMethods, json: bool) -> Result<(), Error> {
        let id = api.job_id(&self.id).await?;
        let since = match &self.since {
            Some(since) => Some(self.zone.place(since, api.now().await?)?),
            None => None,
        };
        if self.follow || since.is_some() {
            // An unknown job is an error at once, not after the first wait.
            api.call("job.get", json!({ "id": id })).await?;
        }
        let has_lines = if self.follow {
            self.follow(api, &id, since, json).await?
        } else {
            self.print_all(api, &id, since, json).await?
        };
        if !(has_lines || json) {
            note_without_log(api, &id, self.since.as_ref()).await;
        }
        Ok(())
    }

    /// Prints the log as it is. Returns whether it has lines.
    async fn print_all(
        &self,
        api: &ApiMethods,
        id: &JobId,
        since: Option<String>,
        json: bool,
    ) -> Result<bool, Error> {
        let (mut params, mut document) = (json!({ "id": id, "after": since }), Vec::new());
        let mut has_lines = false;
        loop {
            params["limit"] = LOG_LINES.into();
            let mut part = api.call("job.log", params.clone()).await?;
            let lines: Vec<LogLine> = read("job.log", &part["lines"])?;
            has_lines |= !lines.is_empty();
            if json {
                document.extend(part["lines"].as_array_mut().into_iter().flat_map(std::mem::take));
            } else {
                lines.iter().try_for_each(|line| self.print(line))?;
            }
            if !part["next"].is_null() {
                params["after"] = part["next"].take();
                continue;
            }
            if json {
                part["lines"] = document.into();
                output::json(&part)?;
            }
            return Ok(has_lines);
        }
    }

    /// Prints the log as it grows, until the job has ended. Returns whether it has lines.
    async fn follow(
        &self,
        api: &ApiMethods,
        id: &JobId,
        since: Option<String>,
        json: bool,
    ) -> Result<bool, Error> {
        let mut log = api.log(id, since);
        let mut end = PrintedEnd::new(!json && !self.timestamps && !self.streams, self.raw);
        let mut has_lines = false;
        while let Some(lines) = log.next().await? {
            has_lines |= !lines.is_empty();
            for mut line in lines {
                if json {
                    output::json(&document(&line))?;
                    continue;
                }
                if line.progress.is_none() {
                    let printed = end.before(&line.line)?.len();
                    line.line.drain(..printed);
                }
                self.print(&line)?;
            }
            if !json {
                end.show(log.unfinished())?;
            }
        }
        end.end()?;
        Ok(has_lines)
    }

    fn print(&self, line: &LogLine) -> Result<(), Error> {
        if line.progress.is_some() {
            return Ok(());
        }
        let mut text = String::new();
        if let Some(time) = line.time().filter(|_| self.timestamps) {
            text += &output::time(time);
            text.push(' ');
        }
        if self.streams {
            text += if line.fd == 2 { "err " } else { "out " };
        }
        output::log_line(&(text + line.line.as_str()), self.raw)
    }
}

fn document(line: &LogLine) -> Value {
    let mut document = json!(line);
    if let Some(time) = line.time() {
        document["time"] = format!("{time:.3}").into();
    }
    document
}

/// Notes that a log is empty, and where the output of the job is.
async fn note_without_log(api: &ApiMethods, id: &JobId, since: Option<&String>) {
    // An unknown job is no error here: its log may have outlived it.
    let job = api.call("job.get", json!({ "id": id })).await;
    let job = job.and_then(|document| job_of(&document)).ok();
    let has_output = |job: &Job| job.output.as_ref().is_some_and(|it| !it.as_bytes().is_empty());
    let has_output = job.as_ref().is_some_and(has_output);
    let output =
        if has_output { format!("; its output: hero job output {id}") } else { String::new() };
    let waiting = job.filter(|job| job.attempt == 0 && !job.status.is_terminal());
    let empty = match (since, waiting) {
        (_, Some(job)) => format!("job {id} has not started: it is {}", job.status),
        (Some(since), _) => format!("the log of job {id} has no line since {since}"),
        (None, _) => format!("the log of job {id} is empty"),
    };
    output::note(&format!("hero: {empty}{output}"));
}

/// The text after the last line of a followed log that has no line end yet, as it is printed: at a terminal in the last line, where the next text replaces it; elsewhere as the
/// script writes it, with a carriage return before a text that replaces another.
struct PrintedEnd {
    is_terminal: bool,
    is_shown: bool,
    raw: bool,
    text: String,
}

impl PrintedEnd {
    /// Prints no text into a file or pipe whose lines have to stay as they are, if not `in_files`.
    fn new(in_files: bool, raw: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self { is_terminal, is_shown: is_terminal || in_files, raw, text: String::new() }
    }

    /// Prints the text that stands now; empty if none does.
    fn show(&mut self, text: &str) -> Result<(), Error> {
        if !self.is_shown || text == self.text {
            return Ok(());
        }
        if self.is_terminal {
            let shown = if self.raw { text.to_owned() } else { escape(text) };
            output::unchanged(format!("{BEGIN}{shown}{END}").as_bytes())?;
        } else if text.is_empty() {
            // Its line is still to come.
            return Ok(());
        } else if let Some(more) = text.strip_prefix(self.text.as_str()) {
            output::unchanged(more.as_bytes())?;
        } else {
            output::unchanged(format!("\r{text}").as_bytes())?;
        }
        text.clone_into(&mut self.text);
        Ok(())
    }

    /// Makes room for the next line. Returns the part of it that is already printed.
    fn before<'l>(&mut self, line: &'l str) -> Result<&'l str, Error> {
        let printed = std::mem::take(&mut self.text);
        if printed.is_empty() {
            return Ok("");
        }
        if self.is_terminal {
            output::unchanged(b"\r\x1b[K")?;
        } else if line.starts_with(printed.as_str()) {
            return Ok(&line[..printed.len()]);
        } else {
            output::unchanged(b"\r")?;
        }
        Ok("")
    }

    fn end(mut self) -> Result<(), Error> {
        let is_open = !self.text.is_empty() && !self.is_terminal;
        self.before("")?;
        if is_open { output::unchanged(b"\n") } else { Ok(()) }
    }
}
