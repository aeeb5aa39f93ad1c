//! `hero job …`: lists, shows, awaits, stops, retries and deletes jobs.

mod bulk;
mod clone;
mod edit;
mod errors;
mod files;
mod filter;
mod find;
mod list;
mod log_search;
mod logs;
mod open;
pub(super) mod show;
mod tell;
mod wait;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

pub(super) use self::bulk::JobChoice;
pub(super) use self::errors::JobErrors;
pub(super) use self::list::JobList;
use super::api::ApiMethods;
use super::correction::Correction;
use super::{Global, output};
use crate::error::{Error, Exit};
use crate::proto::job::JobOutput;
use crate::proto::text::counted;

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
    Open(open::OpenJob),
    Find(find::FindJob),
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
    Logs(logs::Logs),
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
                            hero job delete --status finished --until 2d --yes   # 2 days old, or older")]
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
    pub(super) async fn run(self, api: &ApiMethods, global: &Global) -> Result<ExitCode, Error> {
        let changes = self.correction.changes(global.config()?)?;
        let further = json!({ "with_dependents": self.with_dependents, "changes": changes });
        self.jobs.change(api, "retry", further, global).await
    }
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
        let api = &global.methods()?;
        match self {
            Self::List(list) => list.run(api, global).await?,
            Self::Errors(errors) => errors.run(api, global).await?,
            Self::Show(show) => show::run(api, &show, false, global).await?,
            Self::Open(open) => open.run(api, global).await?,
            Self::Find(find) => find.run(api, global).await?,
            Self::Wait(wait) => return wait.run(api, global).await,
            Self::Output { id, raw } => write_output(api, &id, (global.json, raw)).await?,
            Self::Logs(logs) => logs.run(api, global.json).await?,
            Self::Files(files) => files.run(api, global).await?,
            Self::Fetch(fetch) => fetch.run(api, global).await?,
            Self::Stop(StopJobs { jobs, children }) => {
                return jobs.change(api, "stop", json!({ "children": children }), global).await;
            }
            Self::Tell(tell) => tell.run(api, global).await?,
            Self::Retry(retry) => return retry.run(api, global).await,
            Self::Edit(edit) => return edit.run(api, global).await,
            Self::Clone(clone) => Box::pin(clone.run(api, global)).await?,
            Self::Delete(jobs) => return jobs.change(api, "delete", json!({}), global).await,
            Self::Clear(Clear { yes }) => {
                let result = api.call("job.clear", json!({ "yes": yes })).await?;
                let deleted = result["deleted"].as_u64().unwrap_or_default();
                let text = || format!("{} deleted\n", counted(deleted, "job", "jobs"));
                global.print(|| result.clone(), text)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn write_output(api: &ApiMethods, id: &str, (json, raw): (bool, bool)) -> Result<(), Error> {
    let result = api.of_job("job.output", id, json!({})).await.map_err(|error| {
        let message = if error.exit == Exit::JobError {
            format!("job {id} failed: {}", error.message)
        } else {
            let hint = format!("wait for it: hero job wait {id}");
            error.message.replace("wait for it with job.wait", &hint)
        };
        Error { message, ..error }
    })?;
    if json { output::json(&result) } else { output::stored(&JobOutput::read(&result), raw) }
}
