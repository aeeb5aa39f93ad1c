//! `hero job edit`: changes a job that has not started.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::bulk::JobChoice;
use super::remote;
use crate::cli::Global;
use crate::cli::api::ApiMethods;
use crate::cli::correction::{Correction, check};
use crate::cli::input::{bad, parsed};
use crate::cli::job_options::{TIME_HELP, spoken_time};
use crate::cli::time::{local, local_zone};
use crate::client::{Client, JobChange, JobValues};
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::job::JobStatus;
use crate::proto::target::Priority;
use crate::store::JobEdit;

/// Change jobs that have not started: priority, group, earliest time, script and other settings
///
/// Jobs are named, or chosen by filters. A job that moves to another queue goes to its end.
#[derive(Debug, Args)]
#[command(mut_arg("yes", |arg| arg.hide(true)))]
#[command(after_help = "Examples:\n  hero job edit 7f9c2ba4 --priority 0\n  \
                        hero job edit 7f9c2ba4 --delay 2h --group io\n  \
                        hero job edit 7f9c2ba4 --file tr.py --set timeout=5m\n  \
                        hero job edit --type python --status waiting --priority background --dry-run\n  \
                        hero job edit 7f9c2ba4 --at \"tomorrow 09:00\" --timezone Europe/Brussels")]
pub(in crate::cli) struct EditJob {
    #[command(flatten)]
    jobs: JobChoice,
    /// The priority: urgent (0), normal (1) or background (2)
    #[arg(long, value_name = "PRIORITY")]
    priority: Option<String>,
    /// The group of actors that may run it; empty for any group. A job for one instance is then for none
    #[arg(short, long, value_name = "GROUP")]
    group: Option<String>,
    #[arg(long, value_name = "TIME", help = TIME_HELP)]
    at: Option<String>,
    /// The earliest time to start, this long from now by Redis's clock
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "at")]
    delay: Option<Duration>,
    #[command(flatten)]
    correction: Correction,
}

impl EditJob {
    pub(super) async fn run(&self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        let mut place = self.place()?;
        if let Some(delay) = self.delay {
            let now = client.now().await?;
            place.run_at = Some(now.checked_add(delay).unwrap_or(Timestamp::MAX));
        }
        let changes = self.correction.changes(global.config()?)?;
        let values = JobValues { place, changes };
        if values == JobValues::default() {
            let message =
                "nothing to change: give --priority, --group, --at, --delay, --file or --set";
            return Err(Error::new(Exit::Usage, message));
        }
        let Some(id) = self.jobs.only_id() else {
            return self.jobs.each(client, global, &JobChange::Edit(values)).await;
        };
        let id = client.job_id(id).await?;
        check(client, &id, &values.changes, global.config()?).await?;
        let state = client.edit_job(&id, &values).await?;
        let is_scheduled = state == JobStatus::Scheduled;
        let start = if is_scheduled { client.get_job(&id).await?.spec.run_at } else { None };
        let document = || match start {
            Some(time) => json!({ "id": id, "result": state, "run_at": format!("{time:.3}") }),
            None => json!({ "id": id, "result": state }),
        };
        let starts = start.map(|time| format!(", starts {}", local(time, &local_zone())));
        global.print(document, || format!("{id} {state}{}\n", starts.unwrap_or_default()))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Changes named jobs over the API.
    pub(super) async fn run_remote(
        &self,
        api: &ApiMethods,
        global: &Global,
    ) -> Result<ExitCode, Error> {
        let place = self.place()?;
        let delayed = self.delay.map(|delay| Timestamp::now().checked_add(delay));
        let run_at = place.run_at.or(delayed.map(|time| time.unwrap_or(Timestamp::MAX)));
        let further = json!({
            "priority": place.priority.map(|of| of.as_str().parse::<u8>().unwrap_or_default()),
            "group": place.group.map(|group| group.map_or(String::new(), |of| of.to_string())),
            "run_at": run_at.map(|time| time.to_string()),
            "changes": self.correction.changes(global.config()?)?,
        });
        remote::change(api, &self.jobs, ("edit", "edited"), further, global).await
    }

    fn place(&self) -> Result<JobEdit, Error> {
        let (group, priority) = (self.group.as_deref(), self.priority.as_deref());
        let at = self.at.as_ref().map(|text| spoken_time(text, self.jobs.zone()));
        let group = group.map(|name| (!name.is_empty()).then(|| parsed(name)).transpose());
        Ok(JobEdit {
            priority: priority.map(|text| parsed(Priority::of_word(text))).transpose()?,
            group: group.transpose()?,
            run_at: at.transpose().map_err(|error| bad(format!("--at: {error}")))?,
            ..JobEdit::default()
        })
    }
}
