//! `hero job edit`: changes a job that has not started.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::cli::exec::parsed;
use crate::cli::{Global, output};
use crate::client::Client;
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::job::{JobSpec, Setting};
use crate::store::JobEdit;

/// Change a job that has not started: its priority, its group, or its earliest time
///
/// A job that moves to another queue goes to its end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job edit 7f9c2ba4 --priority 0\n  \
                        hero job edit 7f9c2ba4 --delay 2h --group io")]
pub(in crate::cli) struct EditJob {
    /// The job: its id, or the unique beginning of it
    id: String,
    /// The priority: 0 urgent, 1 normal, 2 background
    #[arg(long, value_name = "0|1|2")]
    priority: Option<String>,
    /// The group of actors that may run it; empty for any group. A job for one instance is then for none
    #[arg(short, long, value_name = "GROUP")]
    group: Option<String>,
    /// The earliest time to start, as in hero submit
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// The earliest time to start, this long from now by Redis's clock
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "at")]
    delay: Option<Duration>,
}

impl EditJob {
    pub(super) async fn run(&self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        let edit = self.edit()?;
        if edit == JobEdit::default() && self.delay.is_none() {
            let message = "nothing to change: give --priority, --group, --at or --delay";
            return Err(Error::new(Exit::Usage, message));
        }
        let id = client.job_id(&self.id).await?;
        let state = match self.delay {
            Some(delay) => client.edit_job_after(&id, edit, delay).await?,
            None => client.edit_job(&id, &edit).await?,
        };
        output::print(
            global.json,
            || json!({ "id": id, "result": state }),
            || format!("{id} {state}\n"),
        )?;
        Ok(ExitCode::SUCCESS)
    }

    fn edit(&self) -> Result<JobEdit, Error> {
        let group = self.group.as_deref();
        let group = group.map(|name| (!name.is_empty()).then(|| parsed(name)).transpose());
        Ok(JobEdit {
            priority: self.priority.as_deref().map(parsed).transpose()?,
            group: group.transpose()?,
            run_at: match (&self.at, Setting::of_field("run_at")) {
                (Some(text), Some(setting)) => {
                    let mut spec = JobSpec::default();
                    setting.set(&mut spec, text).map_err(|error| {
                        Error::new(Exit::Data, format!("--at: {}", error.reason))
                    })?;
                    spec.run_at
                }
                _ => None,
            },
        })
    }
}
