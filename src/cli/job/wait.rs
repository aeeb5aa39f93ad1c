//! `hero job wait`: waits for the ends of jobs, one after the other.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::exec::{Awaited, awaited, explained, wait};
use crate::cli::progress::View;
use crate::cli::{Global, output};
use crate::client::{Client, ClientError};
use crate::config::parse_duration;
use crate::error::{Error, Exit};

/// Wait for the end of jobs and print their outputs
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job wait --wait 30s 7f9c2ba4\n  \
                        hero job wait 7f9c2ba4 d4110c5e\n\n\
                        The outputs of several jobs come in the order of the ids. The exit code comes from \
                        the\nfirst job that did not finish.")]
pub(in crate::cli) struct Wait {
    /// The jobs: ids, or their unique beginnings of 4 characters or more
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Give up after this time; the jobs continue
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

impl Wait {
    pub(super) async fn run(&self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        if let [id] = self.ids.as_slice() {
            let id = client.job_id(id).await?;
            let view = View::of_progress(client, &id).await?;
            return wait(client, &id.into(), view, self.wait, global.json).await;
        }
        let mut ids = Vec::new();
        for id in &self.ids {
            let id = client.job_id(id).await?;
            // An unknown job is an error at once, not after the ends of those before it.
            client.get_job_status(&id).await?;
            ids.push(id);
        }
        let began = Instant::now();
        let (mut document, mut worst): (Vec<Value>, _) = (Vec::new(), Exit::Ok);
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
                output::result(result)?;
            }
            if let Err(error) = ended {
                let error = explained(&id, error);
                output::print_error(&error);
                worst = if worst == Exit::Ok { error.exit } else { worst };
            }
        }
        if global.json {
            output::json(&json!({ "jobs": document }))?;
        }
        Ok(worst.into())
    }
}
