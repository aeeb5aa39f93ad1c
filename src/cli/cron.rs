//! `hero cron …`: lists the periodic jobs of this machine's configuration, or runs one.

use std::fmt::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::table::Table;
use super::time::age;
use super::{Global, output};
use crate::client::Client;
use crate::config::{Config, CronEntry};
use crate::error::{Error, Exit};
use crate::proto::job::JobId;
use crate::store::LastFiring;

/// List periodic jobs, or run one now
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero cron list\n\n\
                        Periodic jobs are files in /etc/hero/cron.d: see hero.toml(5). Supervisors \
                        read them when they start and when they are reloaded.")]
pub(super) enum CronCommand {
    /// List the periodic jobs: when each is due next, and how its last firing ended
    #[command(after_help = "Example:\n  hero cron list --json")]
    List,
    Run(RunNow),
}

/// Run a periodic job now, besides its schedule, and print the id
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job wait \"$(hero cron run nightly)\"")]
pub(super) struct RunNow {
    /// The name of the periodic job
    name: String,
}

impl CronCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        match self {
            Self::List => list(&config, global.json).await,
            Self::Run(RunNow { name }) => run_now(&config, &name, global.json).await,
        }
    }
}

async fn list(config: &Config, json: bool) -> Result<ExitCode, Error> {
    let crontab = config.crontab();
    let client = Client::open(config)?;
    let now = client.now().await?;
    let mut entries = Vec::with_capacity(crontab.entries.len());
    for entry in &crontab.entries {
        entries.push((entry, client.last_firing(&entry.name).await?));
    }
    let problems: Vec<String> = crontab.problems.iter().map(ToString::to_string).collect();
    for problem in &problems {
        output::note(&format!("hero: {problem}"));
    }
    output::print(
        json,
        || {
            let entries = entries.iter().map(|(entry, last)| document(entry, last.as_ref(), now));
            json!({ "cron": entries.collect::<Vec<Value>>(), "problems": problems })
        },
        || table(&entries, now),
    )?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { Exit::Config.into() })
}

async fn run_now(config: &Config, name: &str, json: bool) -> Result<ExitCode, Error> {
    let crontab = config.crontab();
    let Some(entry) = crontab.entries.iter().find(|entry| entry.name.as_str() == name) else {
        let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
        let mut message = format!(
            "no such periodic job: `{shown}` in {}; hero cron list shows all",
            config.supervisor.cron_dir.display()
        );
        for problem in &crontab.problems {
            let _ = write!(message, "\n{problem}");
        }
        return Err(Error::new(Exit::NotFound, message));
    };
    let client = Client::open(config)?;
    let mut job = entry.job(client.now().await?);
    job.id = JobId::random();
    let id = client.submit(job).await?;
    output::print(json, || json!({ "id": id }), || format!("{id}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn table(entries: &[(&CronEntry, Option<LastFiring>)], now: Timestamp) -> String {
    let titles = ["NAME", "SCHEDULE", "TIME ZONE", "NEXT", ">DUE", "LAST", "STATUS", ">FIRED"];
    let mut table = Table::new(&titles);
    for (entry, last) in entries {
        let next = entry.schedule.next_after(now);
        let last = last.as_ref();
        table.row([
            entry.name.to_string(),
            entry.schedule.line().to_owned(),
            entry.schedule.zone().to_owned(),
            next.map(|next| next.to_string()).unwrap_or_default(),
            next.map(|next| age(next, now)).unwrap_or_default(),
            last.map(|last| last.due.to_string()).unwrap_or_default(),
            last.map(status).unwrap_or_default(),
            last.map_or(0, |last| last.fired).to_string(),
        ]);
    }
    table.render()
}

/// The status of the last firing's job, which may have expired.
fn status(last: &LastFiring) -> String {
    last.status.map_or_else(|| "expired".to_owned(), |status| status.to_string())
}

fn document(entry: &CronEntry, last: Option<&LastFiring>, now: Timestamp) -> Value {
    json!({
        "name": entry.name,
        "file": entry.file.display().to_string(),
        "schedule": entry.schedule.line(),
        "time_zone": entry.schedule.zone(),
        "script_type": entry.script_type(),
        "catch_up": entry.catch_up,
        "overlap": entry.overlap,
        "next": entry.schedule.next_after(now).map(|next| next.to_string()),
        "last": last.map(|last| json!({
            "due": last.due.to_string(),
            "job_id": last.id,
            "status": last.status,
        })),
        "fired": last.map_or(0, |last| last.fired),
        "left_out": last.map_or(0, |last| last.left_out),
    })
}
