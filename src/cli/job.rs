//! `hero job …`: lists, shows, awaits, stops, retries and deletes jobs.

mod bulk;
mod clone;
mod each;
mod edit;
mod errors;
mod files;
mod filter;
mod list;
mod past_time;
pub(super) mod remote;
mod search_progress;
pub(super) mod show;
mod tell;
mod unfinished;
mod wait;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

pub(super) use self::bulk::JobChoice;
pub(super) use self::errors::JobErrors;
pub(super) use self::list::JobList;
pub(super) use self::past_time::PastZone;
use self::unfinished::PrintedEnd;
use super::correction::Correction;
use super::exec::explained;
use super::{Global, output};
use crate::client::{Client, JobChange};
use crate::error::{Error, Exit};
use crate::proto::job::{Job, JobId};
use crate::proto::text::counted;
use crate::store::LogLine;

/// List jobs, wait for them, stop, retry, change, clone or delete them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero job list --status failed\n  hero job show ID\n\n\
                        For an ID its beginning is enough, of 4 characters or more, while one job alone has it.")]
pub(super) enum JobCommand {
    List(JobList),
    Errors(JobErrors),
    /// Show every field of a job
    #[command(after_help = "Example:\n  hero job show 7f9c2ba4")]
    Show(Show),
    Wait(wait::Wait),
    /// Write the output of a finished job: text without its last line end, other bytes unchanged
    #[command(after_help = "Example:\n  hero job output 7f9c2ba4 > image.png\n\n\
                            A file that must keep its last line end: HERO_OUTPUT_DIR, hero job fetch.")]
    Output {
        /// The job
        id: String,
        /// At a terminal, leave control characters as they are
        #[arg(long)]
        raw: bool,
    },
    Logs(Logs),
    Files(files::ListFiles),
    Fetch(files::FetchFile),
    /// Stop jobs, waiting or running
    #[command(after_help = "Examples:\n  hero job stop 7f9c2ba4\n  \
                            hero job stop --children 7f9c2ba4\n  \
                            hero job stop --type python --since 1h --dry-run\n  \
                            hero job stop --tag nightly --yes")]
    Stop(StopJobs),
    Tell(tell::TellJob),
    Retry(RetryJobs),
    Edit(edit::EditJob),
    Clone(Box<clone::CloneJob>),
    /// Delete jobs that are not running, with their logs
    #[command(after_help = "Examples:\n  hero job delete 7f9c2ba4\n  \
                            hero job delete --status finished --until 2d --yes   # submitted 2 days ago or \
                            earlier")]
    Delete(JobChoice),
    Clear(Clear),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The job: its id, or the unique beginning of it, of 4 characters or more
    pub(super) id: String,
    /// Leave control characters as they are
    #[arg(long)]
    pub(super) raw: bool,
}

#[derive(Debug, Args)]
pub(super) struct StopJobs {
    #[command(flatten)]
    jobs: JobChoice,
    /// Stop the jobs that their scripts submitted as well, and those below them
    #[arg(long)]
    children: bool,
}

impl StopJobs {
    async fn run(self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        let change = if self.children { JobChange::StopTree } else { JobChange::Stop };
        self.jobs.each(client, global, &change).await
    }
}

/// Run ended jobs again: named ones, or all that match filters
///
/// Filters choose failed jobs, unless --status names another state.
/// A job waits again for its prerequisites that have not finished. It is rejected if one
/// failed or does not exist any more, as it would run without an input.
#[derive(Debug, Args)]
#[command(mut_arg("yes", |arg| arg.hide(true)))]
#[command(after_help = "Examples:\n  hero job retry 7f9c2ba4\n  \
                        hero job retry 7f9c2ba4 --file tr.py --set timeout=5m\n  \
                        hero job retry --with-dependents 7f9c2ba4\n  \
                        hero job retry --type python --since 24h --failed-because timeout")]
pub(super) struct RetryJobs {
    #[command(flatten)]
    jobs: JobChoice,
    /// Resume the failed part of a graph: retry the jobs that failed, and all their dependents
    /// that failed because of a prerequisite
    #[arg(long)]
    with_dependents: bool,
    #[command(flatten)]
    correction: Correction,
}

impl RetryJobs {
    /// Returns the retry of dead letters alone.
    pub(super) fn of_dead(self) -> Self {
        Self { jobs: self.jobs.of_dead(), ..self }
    }

    pub(super) async fn run(self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        let Self { jobs, with_dependents, correction } = self;
        let changes = correction.changes(global.config()?)?;
        jobs.each(client, global, &JobChange::Retry { with_dependents, changes }).await
    }
}

/// Print the log of a job
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job logs -f 7f9c2ba4\n  \
                        hero job logs --since 10m 7f9c2ba4\n  \
                        hero job logs -f --timestamps 7f9c2ba4\n\n\
                        The standard output of a job is in its log once it has run for a second, or has written to\n\
                        standard error; else hero job output prints it.\n\
                        With --json and -f, one document per line as the log grows.")]
#[expect(clippy::struct_excessive_bools, reason = "they are the options of a command")]
pub(super) struct Logs {
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

/// Delete every job that is not running
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job clear --yes")]
pub(super) struct Clear {
    /// Confirm that all are deleted
    #[arg(long, required = true)]
    yes: bool,
}

impl JobCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        if let Some(remote) = global.remote()? {
            return Box::pin(remote::run(self, remote, global)).await;
        }
        let client = global.client()?;
        match self {
            Self::List(list) => list.run(&client, global).await?,
            Self::Errors(errors) => errors.run(&client, global).await?,
            Self::Show(Show { id, raw }) => {
                show::run(&client, &client.job_id(&id).await?, global, raw).await?;
            }
            Self::Wait(wait) => return wait.run(&client, global).await,
            Self::Output { id, raw } => {
                write_output(&client, &client.job_id(&id).await?, (global.json, raw)).await?;
            }
            Self::Logs(logs) => logs.run(&client, global.json).await?,
            Self::Files(files) => files.run(&client, global).await?,
            Self::Fetch(fetch) => fetch.run(&client, global).await?,
            Self::Stop(stop) => return stop.run(&client, global).await,
            Self::Tell(tell) => tell.run(&client, global).await?,
            Self::Retry(retry) => return retry.run(&client, global).await,
            Self::Edit(edit) => return edit.run(&client, global).await,
            Self::Clone(clone) => Box::pin(clone.run(&client, global)).await?,
            Self::Delete(jobs) => return jobs.each(&client, global, &JobChange::Delete).await,
            Self::Clear(Clear { yes: _ }) => {
                let deleted = client.clear_all_jobs().await?;
                global.print(
                    || json!({ "deleted": deleted }),
                    || format!("{} deleted\n", counted(deleted, "job", "jobs")),
                )?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn write_output(client: &Client, id: &JobId, (json, raw): (bool, bool)) -> Result<(), Error> {
    let Some(result) = client.get_job_output(id).await.map_err(|error| explained(id, error))?
    else {
        let message = format!("job {id} has no output yet; wait for it: hero job wait {id}");
        return Err(Error::new(Exit::Data, message));
    };
    if json { output::json(&result.to_json()) } else { output::stored(&result, raw) }
}

impl Logs {
    const PAGE: usize = 1000;

    async fn run(&self, client: &Client, json: bool) -> Result<(), Error> {
        let id = client.job_id(&self.id).await?;
        let since = self.zone.place(self.since.as_ref(), client).await?;
        if self.follow || since.is_some() {
            // An unknown job is an error at once, not after the first wait.
            client.get_job_status(&id).await?;
        }
        if self.follow {
            return self.follow(client, &id, since, json).await;
        }
        let mut document: Vec<Value> = Vec::new();
        let (mut after, mut has_lines) = (since, false);
        loop {
            let lines = client.get_job_logs(&id, after.as_deref(), Self::PAGE).await?;
            has_lines |= !lines.is_empty();
            for line in &lines {
                self.print(line, json, &mut |line| {
                    document.push(line);
                    Ok(())
                })?;
            }
            match lines.last() {
                Some(last) if lines.len() == Self::PAGE => after = Some(last.id.clone()),
                _ => break,
            }
        }
        if json {
            output::json(&json!({ "id": id, "lines": document }))?;
        } else if !has_lines {
            note_without_log(client, &id, self.since.as_ref()).await;
        }
        Ok(())
    }
}

/// Says that a log is empty, and where the output of the job is.
async fn note_without_log(client: &Client, id: &JobId, since: Option<&String>) {
    // An unknown job is no error here: its log may have outlived it.
    let job = client.get_job(id).await;
    let job = job.ok();
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

impl Logs {
    /// Prints the log as it grows, until the job has ended.
    async fn follow(
        &self,
        client: &Client,
        id: &JobId,
        since: Option<String>,
        json: bool,
    ) -> Result<(), Error> {
        let mut log = match since {
            Some(place) => client.follow_job_logs_after(id, place),
            None => client.follow_job_logs(id),
        };
        let mut end = PrintedEnd::new(!json && !self.timestamps && !self.streams, self.raw);
        let mut has_lines = false;
        while let Some(lines) = log.next().await? {
            has_lines |= !lines.is_empty();
            for mut line in lines {
                if !json && line.progress.is_none() {
                    let printed = end.before(&line.line)?.len();
                    line.line.drain(..printed);
                }
                self.print(&line, json, &mut |line| output::json(&line))?;
            }
            if !json {
                end.show(log.unfinished())?;
            }
        }
        end.end()?;
        if !(has_lines || json) {
            note_without_log(client, id, self.since.as_ref()).await;
        }
        Ok(())
    }

    /// Prints a line, or passes its document on.
    fn print(
        &self,
        line: &LogLine,
        json: bool,
        document: &mut dyn FnMut(Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if json {
            let mut of_line = json!(line);
            if let Some(time) = line.time() {
                of_line["time"] = format!("{time:.3}").into();
            }
            return document(of_line);
        }
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
