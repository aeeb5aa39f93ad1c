//! `hero job wait`: waits for the ends of jobs, one after the other.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::exec::{Awaited, awaited, explained, failed, wait};
use crate::cli::progress::View;
use crate::cli::{Global, output};
use crate::client::{Client, ClientError};
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::job::JobId;

/// Wait for the end of jobs and print their outputs
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job wait --wait 30s 7f9c2ba4\n  \
                        hero job wait 7f9c2ba4 d4110c5e\n\n\
                        The outputs of several jobs come in the order of the ids. The exit code comes from \
                        the\nfirst job that did not finish, as hero exec has it: the code of its script, from 1 to 63, or\n128 and \
                        the number of the signal that ended it; else 1.")]
#[expect(clippy::struct_field_names, reason = "it is the word of the option")]
pub(in crate::cli) struct Wait {
    /// The jobs: ids, or their unique beginnings of 4 characters or more
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Give up after this time; the jobs continue
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) wait: Option<Duration>,
    /// At a terminal, leave control characters as they are
    #[arg(long)]
    pub(super) raw: bool,
}

impl Wait {
    pub(super) async fn run(&self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        if let [id] = self.ids.as_slice() {
            let id = client.job_id(id).await?;
            let view = View::of_progress(client, &id).await?;
            let ended =
                wait(client, &id.clone().into(), view, self.wait, (global.json, self.raw)).await;
            return match ended {
                Ok(code) => Ok(code),
                Err(error) => told(client, &id, error).await,
            };
        }
        let mut ids = Vec::new();
        for id in &self.ids {
            let id = client.job_id(id).await?;
            // An unknown job is an error at once, not after the ends of those before it.
            client.get_job_status(&id).await?;
            ids.push(id);
        }
        let began = Instant::now();
        let (mut document, mut first): (Vec<Value>, _) = (Vec::new(), None);
        for id in ids {
            let view = View::of_progress(client, &id).await?;
            let left = self.wait.map(|wait| wait.saturating_sub(began.elapsed()));
            let ended = match awaited(client, &id.clone().into(), view, left).await? {
                Awaited::Ended(ended) => ended,
                Awaited::Interrupted(code) => return Ok(code),
            };
            if global.json && matches!(ended, Ok(_) | Err(ClientError::JobFailed { .. })) {
                document.push(client.get_job(&id).await?.to_json());
            } else if let Ok(result) = &ended {
                output::result(result, self.raw)?;
            }
            if let Err(error) = ended {
                let code = told(client, &id, explained(&id, error)).await.unwrap_or_else(|error| {
                    output::print_error(&error);
                    error.exit.into()
                });
                first = first.or(Some(code));
            }
        }
        if global.json {
            output::json(&json!({ "jobs": document }))?;
        }
        Ok(first.unwrap_or(ExitCode::SUCCESS))
    }
}

/// Prints why a job failed and where its log is, if it has run, and returns its exit code; returns any other error.
async fn told(client: &Client, id: &JobId, error: Error) -> Result<ExitCode, Error> {
    if error.exit != Exit::JobError {
        return Err(error);
    }
    let job = client.get_job(id).await.ok();
    let code = failed(error, job.as_ref())?;
    if job.is_some_and(|job| job.attempt > 0) {
        output::note(&format!("hero: its log: hero job logs {id}"));
    }
    Ok(code)
}
