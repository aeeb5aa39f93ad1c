//! `hero cron …`: lists the periodic jobs of this machine's configuration, runs one, enables or disables them.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::table::TextTable;
use super::time::age;
use super::{Global, output};
use crate::client::{Client, PeriodicJobDocument};
use crate::config::Config;
use crate::error::{Error, Exit};

/// List periodic jobs, run one now, enable or disable them
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero cron list\n\n\
                        Periodic jobs are files in /etc/hero/cron.d: see hero.toml(5). Supervisors \
                        read them when they start and when they are reloaded.")]
pub(super) enum CronCommand {
    /// List the periodic jobs: when each is due next, and how its last firing ended
    #[command(after_help = "Example:\n  hero cron list --json")]
    List,
    Run(RunNow),
    /// Let disabled periodic jobs fire again; what they missed is not made up for
    #[command(after_help = "Example:\n  hero cron enable nightly")]
    Enable(CronNames),
    /// Stop periodic jobs from firing, on every machine, until they are enabled; their files stay as they are
    #[command(after_help = "Example:\n  hero cron disable nightly")]
    Disable(CronNames),
}

#[derive(Debug, Args)]
pub(super) struct CronNames {
    /// The names of the periodic jobs
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
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
            Self::List => list(&config, global).await,
            Self::Run(RunNow { name }) => run_now(&config, &name, global.json).await,
            Self::Enable(CronNames { names }) => enable(&config, &names, true, global.json).await,
            Self::Disable(CronNames { names }) => enable(&config, &names, false, global.json).await,
        }
    }
}

async fn list(config: &Config, global: &Global) -> Result<ExitCode, Error> {
    let crontab = config.crontab();
    let client = Client::open(config)?;
    let documents = client.periodic_job_documents(&crontab).await?;
    let now = client.now().await?;
    let problems: Vec<String> = crontab.problems.iter().map(ToString::to_string).collect();
    for problem in &problems {
        output::note(&format!("hero: {problem}"));
    }
    output::print(
        global.json,
        || json!({ "cron": documents, "problems": problems }),
        || table(&documents, now).show(global.look()),
    )?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { Exit::Config.into() })
}

async fn run_now(config: &Config, name: &str, json: bool) -> Result<ExitCode, Error> {
    let id = Client::open(config)?.run_periodic_job(&config.crontab(), name).await?;
    output::print(json, || json!({ "id": id }), || format!("{id}\n"))?;
    Ok(ExitCode::SUCCESS)
}

async fn enable(
    config: &Config,
    names: &[String],
    enabled: bool,
    json: bool,
) -> Result<ExitCode, Error> {
    let (client, crontab, by) = (Client::open(config)?, config.crontab(), user());
    let done = if enabled { "enabled" } else { "disabled" };
    let mut changed = Vec::new();
    for name in names {
        let is_new = client.enable_periodic_job(&crontab, name, enabled, &by).await?;
        if !json {
            let before = if is_new { "" } else { "was " };
            let already = if is_new { "" } else { " already" };
            output::line(&format!("{name} {before}{done}{already}"))?;
        }
        if is_new {
            changed.push(name);
        }
    }
    if json {
        output::json(&json!({ done: changed }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of the user who calls, also through sudo.
fn user() -> String {
    let sudo = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty());
    let own = || {
        let uid = nix::unistd::getuid();
        let user = nix::unistd::User::from_uid(uid).ok().flatten();
        user.map_or_else(|| uid.to_string(), |user| user.name)
    };
    sudo.unwrap_or_else(own)
}

fn table(jobs: &[PeriodicJobDocument], now: Timestamp) -> TextTable {
    let titles =
        ["~NAME", "SCHEDULE", "?TIME ZONE", "?~NEXT", ">DUE", "?LAST", "*STATUS", "?>FIRED"];
    let mut table = TextTable::new(&titles);
    for job in jobs {
        let next: Option<Timestamp> = job.next.as_ref().and_then(|next| next.parse().ok());
        let last = job.last.as_ref();
        // The job of the last firing may have expired.
        let expired = || "expired".to_owned();
        table.row([
            job.name.clone(),
            job.schedule.clone(),
            job.time_zone.clone(),
            if job.enabled { job.next.clone().unwrap_or_default() } else { disabled(job) },
            next.map(|next| age(next, now)).unwrap_or_default(),
            last.map(|last| last.due.clone()).unwrap_or_default(),
            last.map(|last| last.status.clone().unwrap_or_else(expired)).unwrap_or_default(),
            job.fired.to_string(),
        ]);
    }
    table
}

fn disabled(job: &PeriodicJobDocument) -> String {
    match job.disabled_by.as_deref() {
        Some(by) if !by.is_empty() => format!("disabled by {by}"),
        _ => "disabled".to_owned(),
    }
}
