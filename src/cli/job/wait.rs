//! `hero job wait`: waits for the ends of jobs, one after the other.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use crate::cli::api::ApiMethods;
use crate::cli::exec::{Waited, wait};
use crate::cli::progress::View;
use crate::cli::{Global, output};
use crate::config::parse_duration;
use crate::error::Error;

/// Wait for the end of jobs and print their outputs
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job wait --wait 30s 7f9c2ba4\n  \
                        hero job wait 7f9c2ba4 d4110c5e\n\n\
                        The outputs of several jobs come in the order of the ids. The exit code comes from \
                        the first job that did not finish, as hero exec has it: the code of its script, from 1 to 63, or 128 and \
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
    pub(super) async fn run(&self, api: &ApiMethods, global: &Global) -> Result<ExitCode, Error> {
        let (mut ids, is_one) = (Vec::new(), self.ids.len() == 1);
        for id in &self.ids {
            let id = api.job_id(id).await?;
            if !is_one {
                // An unknown job is an error at once, not after the ends of those before it.
                api.call("job.get", json!({ "id": id })).await?;
            }
            ids.push(id);
        }
        let began = Instant::now();
        let (mut documents, mut first) = (Vec::new(), None);
        for id in ids {
            let view = View::of_progress(api, &id).await?;
            let left = self.wait.map(|wait| wait.saturating_sub(began.elapsed()));
            let code = match wait(api, &id.into(), view, left).await {
                Ok(Waited::Interrupted(code)) => return Ok(code),
                Ok(Waited::Ended(ended)) => {
                    if global.json {
                        documents.push(ended.document.clone());
                    } else {
                        ended.print(false, self.raw)?;
                    }
                    let (code, job) = (ended.code(), &ended.job);
                    if code != ExitCode::SUCCESS && job.attempt > 0 {
                        output::note(&format!("hero: its log: hero job logs {}", job.id));
                    }
                    code
                }
                Err(error) => {
                    output::print_error(&error);
                    error.exit.into()
                }
            };
            first = first.or((code != ExitCode::SUCCESS).then_some(code));
        }
        if global.json {
            match documents.as_slice() {
                [] if is_one => {}
                [only] if is_one => output::json(only)?,
                all => output::json(&json!({ "jobs": all }))?,
            }
        }
        Ok(first.unwrap_or(ExitCode::SUCCESS))
    }
}
