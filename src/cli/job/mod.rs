//! `hero job …`: lists, shows, awaits, stops, retries and deletes jobs.

mod errors;
mod list;
pub(super) mod show;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::exec::{explained, parsed, wait};
use super::progress::View;
use super::{Global, output};
use crate::client::{Client, ClientError};
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::text::counted;
use crate::store::LogLine;

/// List jobs, wait for them, stop, retry, clone or delete them
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero job list --status error\n  hero job show ID")]
pub(super) enum JobCommand {
    List(list::JobList),
    Errors(errors::JobErrors),
    /// Show every field of a job
    #[command(after_help = "Example:\n  hero job show 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7")]
    Show(Show),
    Wait(Wait),
    /// Write the output of a finished job, its bytes unchanged
    #[command(
        after_help = "Example:\n  hero job output 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7 > image.png"
    )]
    Output {
        /// The job
        id: String,
    },
    Logs(Logs),
    /// Stop jobs, waiting or running
    #[command(after_help = "Example:\n  hero job stop 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7")]
    Stop(Many),
    Retry(RetryJobs),
    Clone(CloneJob),
    /// Delete jobs that are not running, with their logs
    #[command(after_help = "Example:\n  hero job delete 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7")]
    Delete(Many),
    Clear(Clear),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The job
    pub(super) id: String,
    /// Leave control characters as they are
    #[arg(long)]
    pub(super) raw: bool,
}

#[derive(Debug, Args)]
pub(super) struct Many {
    /// The jobs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// Run ended jobs again
///
/// A job waits again for those of its prerequisites that have not finished. It is rejected if one
/// failed or does not exist any more, as it would run without an input.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job retry 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7\n  \
                        hero job retry --with-dependents 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7")]
pub(super) struct RetryJobs {
    #[command(flatten)]
    jobs: Many,
    /// Resume the failed part of a graph: retry the jobs that failed, and all their dependents
    /// that failed because of a prerequisite
    #[arg(long)]
    with_dependents: bool,
}

/// Submit a copy of a job, and print its id
///
/// The copy has a new id, no unique key and no earliest time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job clone 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7\n  \
                        hero job clone 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7 --set timeout=60 \
                        --set 'env_vars={\"A\": \"b\"}'\n\n\
                        The fields are those of the job's hash, the values as the hash has them: seconds, \
                        JSON.\nAn empty value takes the field away.")]
pub(super) struct CloneJob {
    /// The job
    id: String,
    /// A field of the copy that differs; may be repeated
    #[arg(long, value_name = "FIELD=VALUE", value_parser = change)]
    set: Vec<(String, String)>,
}

fn change(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected FIELD=VALUE".to_owned()),
    }
}

impl CloneJob {
    async fn run(self, client: &Client, json: bool) -> Result<ExitCode, Error> {
        let value = |text: String| if text.is_empty() { Value::Null } else { Value::String(text) };
        let changes = self.set.into_iter().map(|(name, text)| (name, value(text)));
        let id = client.clone_job(&parsed(&self.id)?, &changes.collect()).await?;
        output::print(json, || json!({ "id": id }), || format!("{id}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Wait for the end of a job and print its output
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job wait --wait 30s 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7")]
pub(super) struct Wait {
    /// The job
    id: String,
    /// Give up after this time; the job continues
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

/// Print the log of a job
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job logs -f 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7\n  \
                        hero job logs --since 10m 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7\n  \
                        hero job logs -f --timestamps 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7\n\n\
                        The standard output of a job is in its log once it has run for a second.\n\
                        With --json and -f, one document per line as the log grows.")]
pub(super) struct Logs {
    /// The job
    id: String,
    /// Follow the log until the job has ended
    #[arg(short, long)]
    follow: bool,
    /// Only lines since a time in RFC 3339, or since a duration ago, such as 10m
    #[arg(long, value_name = "DURATION|TIME")]
    since: Option<String>,
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
        let client = global.client()?;
        match self {
            Self::List(list) => list.run(&client, global).await,
            Self::Errors(errors) => errors.run(&client, global).await,
            Self::Show(Show { id, raw }) => show::run(&client, &parsed(&id)?, global, raw).await,
            Self::Wait(Wait { id, wait: patience }) => {
                let id = parsed(&id)?;
                let view = View::of_progress(&client, &id).await?;
                wait(&client, &id, view, patience, global.json).await
            }
            Self::Output { id } => write_output(&client, &parsed(&id)?, global.json).await,
            Self::Logs(logs) => logs.run(&client, global.json).await,
            Self::Stop(many) => {
                many.each(global, async |id| {
                    let ended = client.stop_job(id).await?;
                    Ok(if ended { "stopped" } else { "told to stop" }.to_owned())
                })
                .await
            }
            Self::Retry(RetryJobs { jobs, with_dependents: true }) => {
                apply(&jobs.ids, global, async |id| retry_with_dependents(&client, id).await).await
            }
            Self::Retry(RetryJobs { jobs, with_dependents: false }) => {
                jobs.each(global, async |id| Ok(client.retry_job(id).await?.to_string())).await
            }
            Self::Clone(clone) => clone.run(&client, global.json).await,
            Self::Delete(many) => {
                many.each(global, async |id| {
                    client.delete_job(id).await?;
                    Ok("deleted".to_owned())
                })
                .await
            }
            Self::Clear(Clear { yes: _ }) => {
                let deleted = client.clear_all_jobs().await?;
                output::print(
                    global.json,
                    || json!({ "deleted": deleted }),
                    || format!("{} deleted\n", counted(deleted, "job", "jobs")),
                )?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

async fn write_output(client: &Client, id: &JobId, json: bool) -> Result<ExitCode, Error> {
    let Some(result) = client.get_job_output(id).await.map_err(|error| explained(id, error))?
    else {
        let message = format!("job {id} has no output yet; wait for it: hero job wait {id}");
        return Err(Error::new(Exit::Data, message));
    };
    if json {
        output::json(&result.to_json())?;
    } else {
        output::unchanged(result.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A job, and what was done to it.
pub(super) type Told = (JobId, Result<String, ClientError>);

impl Many {
    /// Applies an operation to each job, also after failures. The exit code is that of the first
    /// failure.
    async fn each(
        &self,
        global: &Global,
        act: impl AsyncFn(&JobId) -> Result<String, ClientError>,
    ) -> Result<ExitCode, Error> {
        apply(&self.ids, global, async |id| Ok(vec![(id.clone(), act(id).await)])).await
    }
}

/// Applies an operation that may concern further jobs to each job, also after failures. The exit code
/// is that of the first failure.
pub(super) async fn apply(
    ids: &[String],
    global: &Global,
    act: impl AsyncFn(&JobId) -> Result<Vec<Told>, ClientError>,
) -> Result<ExitCode, Error> {
    let ids: Vec<JobId> = ids.iter().map(|id| parsed(id)).collect::<Result<_, _>>()?;
    let mut document = Vec::new();
    let mut worst = Exit::Ok;
    for id in ids {
        let told = act(&id).await.unwrap_or_else(|error| vec![(id, Err(error))]);
        for (id, result) in told {
            match result.map_err(Error::from) {
                Ok(done) if global.json => document.push(json!({ "id": id, "result": done })),
                Ok(done) => output::line(&format!("{id} {done}"))?,
                Err(error) => {
                    output::print_error(&error);
                    document.push(json!({ "id": id, "problem": error.message }));
                    worst = if worst == Exit::Ok { error.exit } else { worst };
                }
            }
        }
    }
    if global.json {
        output::json(&json!({ "jobs": document }))?;
    }
    Ok(worst.into())
}

/// Retries a job that failed, and its dependents that failed because of a prerequisite.
pub(super) async fn retry_with_dependents(
    client: &Client,
    id: &JobId,
) -> Result<Vec<Told>, ClientError> {
    let graph = client.retry_job_with_dependents(id).await?;
    let told = |(id, status): (_, Result<JobStatus, _>)| (id, status.map(|of| of.to_string()));
    Ok(graph.into_iter().map(told).collect())
}

impl Logs {
    const PAGE: usize = 1000;

    async fn run(&self, client: &Client, json: bool) -> Result<ExitCode, Error> {
        let id = parsed(&self.id)?;
        let since = match &self.since {
            Some(text) => Some(LogLine::place_before(since(text, client.now().await?)?)),
            None => None,
        };
        if self.follow || since.is_some() {
            // An unknown job is an error at once, not after the first wait.
            client.get_job_status(&id).await?;
        }
        if self.follow {
            let mut log = match since {
                Some(place) => client.follow_job_logs_after(&id, place),
                None => client.follow_job_logs(&id),
            };
            while let Some(lines) = log.next().await? {
                for line in lines {
                    self.print(&line, json, &mut |line| output::json(&line))?;
                }
            }
            return Ok(ExitCode::SUCCESS);
        }
        let mut document: Vec<Value> = Vec::new();
        let mut after = since;
        loop {
            let lines = client.get_job_logs(&id, after.as_deref(), Self::PAGE).await?;
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
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Logs {
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

/// Parses a time, or a duration before now.
pub(super) fn since(text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let ago = parse_duration(text).ok().and_then(|ago| now.checked_sub(ago).ok());
    ago.ok_or_else(|| {
        let message = "--since: expected a duration such as 10m, or a time in RFC 3339 such as \
                       2026-12-24T18:00:00+01:00";
        Error::new(Exit::Data, message)
    })
}
