//! `hero job edit`: changes a job that has not started.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::tz::TimeZone;
use serde_json::json;

use crate::cli::exec::parsed;
use crate::cli::job_options::{TIME_HELP, priority_of, spoken_time};
use crate::cli::time::{local, local_zone};
use crate::cli::{Global, output};
use crate::client::Client;
use crate::config::{parse_duration, time_zone};
use crate::error::{Error, Exit};
use crate::proto::job::JobStatus;
use crate::store::JobEdit;

/// Change a job that has not started: its priority, its group, or its earliest time
///
/// A job that moves to another queue goes to its end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job edit 7f9c2ba4 --priority 0\n  \
                        hero job edit 7f9c2ba4 --delay 2h --group io\n  \
                        hero job edit 7f9c2ba4 --at \"tomorrow 09:00\" --timezone Europe/Brussels")]
pub(in crate::cli) struct EditJob {
    /// The job: its id, or the unique beginning of it, of 4 characters or more
    id: String,
    /// The priority: urgent (0), normal (1) or background (2)
    #[arg(long, value_name = "PRIORITY")]
    priority: Option<String>,
    /// The group of actors that may run it; empty for any group. A job for one instance is then for none
    #[arg(short, long, value_name = "GROUP")]
    group: Option<String>,
    #[arg(long, value_name = "TIME", help = TIME_HELP)]
    at: Option<String>,
    /// The time zone of --at, such as Europe/Brussels; by default the zone of TZ, else of this machine
    #[arg(long, visible_alias = "time-zone", value_name = "ZONE", value_parser = time_zone)]
    #[arg(requires = "at")]
    timezone: Option<TimeZone>,
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
        let is_scheduled = state == JobStatus::Scheduled;
        let start = if is_scheduled { client.get_job(&id).await?.spec.run_at } else { None };
        output::print(
            global.json,
            || match start {
                Some(time) => {
                    json!({ "id": id, "result": state, "run_at": format!("{time:.3}") })
                }
                None => json!({ "id": id, "result": state }),
            },
            || match start {
                Some(time) => format!("{id} {state}, starts {}\n", local(time, &local_zone())),
                None => format!("{id} {state}\n"),
            },
        )?;
        Ok(ExitCode::SUCCESS)
    }

    fn edit(&self) -> Result<JobEdit, Error> {
        let group = self.group.as_deref();
        let group = group.map(|name| (!name.is_empty()).then(|| parsed(name)).transpose());
        Ok(JobEdit {
            priority: self.priority.as_deref().map(|text| parsed(priority_of(text))).transpose()?,
            group: group.transpose()?,
            run_at: match &self.at {
                Some(text) => Some(
                    spoken_time(text, self.timezone.as_ref())
                        .map_err(|error| Error::new(Exit::Data, format!("--at: {error}")))?,
                ),
                None => None,
            },
        })
    }
}
