//! `hero job edit`: changes a job that has not started.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::bulk::JobChoice;
use crate::cli::Global;
use crate::cli::api::ApiMethods;
use crate::cli::correction::Correction;
use crate::cli::input::{bad, parsed};
use crate::cli::job_options::{TIME_HELP, spoken_time};
use crate::cli::time::{local_text, local_zone};
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::target::Priority;
use crate::proto::text::escape_lines;

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
    pub(super) async fn run(&self, api: &ApiMethods, global: &Global) -> Result<ExitCode, Error> {
        let values = self.values(api, global).await?;
        let Some(id) = self.jobs.only_id() else {
            return self.jobs.change(api, "edit", values, global).await;
        };
        let document = api.of_job("job.edit", id, values).await?;
        let word = |name: &str| document[name].as_str().unwrap_or_default();
        let start = document["run_at"].as_str();
        let starts = start.map(|time| format!(", starts {}", local_text(time, &local_zone())));
        let text = format!("{} {}{}", word("id"), word("result"), starts.unwrap_or_default());
        global.print(|| document.clone(), || escape_lines(&text) + "\n")?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the new values as the API takes them.
    async fn values(&self, api: &ApiMethods, global: &Global) -> Result<Value, Error> {
        let mut values = Map::new();
        if let Some(text) = &self.priority {
            let priority: Priority = parsed(Priority::of_word(text))?;
            let number: u8 = priority.as_str().parse().unwrap_or_default();
            values.insert("priority".to_owned(), number.into());
        }
        values.extend(self.group.as_ref().map(|group| ("group".to_owned(), json!(group))));
        let zone = self.jobs.filter.zone.timezone.as_ref();
        let at = self.at.as_ref().map(|text| spoken_time(text, zone)).transpose();
        let mut run_at = at.map_err(|error| bad(format!("--at: {error}")))?;
        if let Some(delay) = self.delay {
            run_at = Some(api.now().await?.checked_add(delay).unwrap_or(Timestamp::MAX));
        }
        values.extend(run_at.map(|time| ("run_at".to_owned(), time.to_string().into())));
        let changes = self.correction.changes(global.config()?)?;
        if !changes.is_empty() {
            values.insert("changes".to_owned(), changes.into());
        }
        if values.is_empty() {
            let message =
                "nothing to change: give --priority, --group, --at, --delay, --file or --set";
            return Err(Error::new(Exit::Usage, message));
        }
        Ok(values.into())
    }
}
