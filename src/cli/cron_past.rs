//! `hero cron history` and `backfill`: the past firings of a periodic job, and firings as a table.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::answer::NoResults;
use super::table::TextTable;
use super::time::{PastZone, brief, local_zone, with_offset};
use super::{Global, output};
use crate::client::{
    BACKFILL_MAX, BackfillPeriod, BackfilledFiring, FiringDocument, PeriodicJobDocument,
    PeriodicJobHistoryDocument,
};
use crate::config::{Crontab, time_zone};
use crate::error::{Error, Exit};
use crate::proto::text::counted;
use crate::rpc::results::FiringList;
use crate::store::FIRINGS_MAX;

/// The firings of a backfill that an unconfirmed call names.
const NAMED: usize = 5;

/// List the latest firings of a periodic job, the newest first: at most 100 are kept
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero cron history nightly")]
pub(super) struct CronHistory {
    /// The name of the periodic job
    name: String,
    /// The most firings, 1 to 100
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = FIRINGS_MAX as u64,
          value_parser = clap::value_parser!(u64).range(1..=FIRINGS_MAX as u64))]
    limit: u64,
}

/// Submit the jobs of a periodic job for its firings in a period of the past, each with its own time
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero cron backfill nightly --since 2026-11-01 --until 2026-11-07 --dry-run\n  \
                        hero cron backfill nightly --since 2d --only-missing --yes\n\n\
                        The jobs are cron-NAME-TIME-fill: a second backfill submits none twice while they are kept. \
                        Unless the overlap of the periodic job is allow, each waits for the one before."
)]
pub(super) struct Backfill {
    /// The name of the periodic job
    name: String,
    /// The start of the period: a time such as 2026-11-01 or "yesterday 18:00", or a duration ago such as 2d
    #[arg(long, value_name = "TIME")]
    since: String,
    /// The end of the period, as --since; now without it
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Leave out the times for which it fired
    #[arg(long)]
    only_missing: bool,
    /// List the firings, and submit nothing
    #[arg(long)]
    dry_run: bool,
    /// Confirm that the jobs are submitted
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    zone: PastZone,
}

impl CronHistory {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let methods = global.methods()?;
        let params = json!({ "name": self.name, "limit": self.limit });
        let (document, list) = methods.typed::<FiringList>("cron.history", params).await?;
        let zone = json!({ "name": self.name });
        let (_, found) = methods.typed::<PeriodicJobHistoryDocument>("cron.get", zone).await?;
        let none = NoResults::new("firing").by("of", Some(&self.name));
        let table = || firing_table(&list.firings, &zone_of(&found.job));
        global.list(|| document, table, none)
    }
}

impl Backfill {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let client = global.client()?;
        let now = client.system().now().await?;
        let since = self.zone.read("--since", &self.since, now)?;
        let until = self.zone.read_given("--until", self.until.as_ref(), now)?.unwrap_or(now);
        let period = BackfillPeriod { since, until, only_missing: self.only_missing };
        let crontab = global.config()?.crontab();
        if self.dry_run || !self.yes {
            let times = client.cron().firings_within(&crontab, &self.name, &period).await?;
            if times.is_empty() {
                let name = &self.name;
                let why = "it fired, or was backfilled, for each time of the period";
                output::note(&format!("hero: nothing to submit of {name}: {why}"));
            } else if !self.dry_run {
                return Err(unconfirmed(&self.name, &times));
            }
            let crontab = client.cron().crontab(&crontab).await?;
            let zone = zone_of_entry(&crontab, &self.name);
            let line = |at: &Timestamp| [with_offset(&at.to_string(), &zone), "\n".to_owned()];
            return global.print(
                || json!({ "due": times.iter().map(ToString::to_string).collect::<Vec<_>>() }),
                || times.iter().flat_map(line).collect(),
            );
        }
        let done = client.cron().backfill(&crontab, &self.name, &period).await?;
        global.print(|| json!({ "firings": done }), || table(&done).show(global.look()))
    }
}

/// Returns firings as a table, in the time zone of their periodic job.
pub(super) fn firing_table<'t>(
    firings: &'t [FiringDocument],
    zone: &TimeZone,
) -> TextTable<'t, FiringDocument> {
    TextTable::of(firings)
        .column("DUE", &|of| with_offset(&of.due, zone))
        .column(">LATE", &|of| brief_seconds(of.late_s))
        .column("FIRING", &|of| of.outcome.replace('_', " "))
        .column("#JOB", &|of| of.job_id.clone().or(of.batch_id.clone()).unwrap_or_default())
        .column("*STATUS", &|of| of.status.clone().unwrap_or_default())
        .column("!WHY", &|of| of.why.clone().unwrap_or_default())
}

/// Formats seconds, ten years at most.
pub(super) fn brief_seconds(seconds: f64) -> String {
    brief(Duration::from_secs_f64(seconds.clamp(0.0, 315_360_000.0)))
}

/// The time zone of a periodic job; a name that this machine does not know is shown as UTC.
pub(super) fn zone_of(job: &PeriodicJobDocument) -> TimeZone {
    time_zone(&job.time_zone).unwrap_or(TimeZone::UTC)
}

/// Returns the time zone of a periodic job; the machine's if it does not exist any more.
fn zone_of_entry(crontab: &Crontab, name: &str) -> TimeZone {
    let entry = crontab.entries.iter().find(|entry| entry.name.as_str() == name);
    entry.and_then(|entry| time_zone(entry.schedule.zone()).ok()).unwrap_or_else(local_zone)
}

fn table(done: &[BackfilledFiring]) -> TextTable<'_, BackfilledFiring> {
    TextTable::of(done)
        .column("DUE", &|of| with_offset(&of.due, &local_zone()))
        .column("FIRING", &|of| of.outcome.replace('_', " "))
        .column("~JOB", &|of| of.job_id.clone())
}

fn unconfirmed(name: &str, times: &[Timestamp]) -> Error {
    let named: Vec<String> = times.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if times.len() > NAMED { ", …" } else { "" };
    let number = counted(times.len() as u64, "job", "jobs");
    Error::new(
        Exit::Usage,
        format!(
            "this submits {number} of {name}, of at most {BACKFILL_MAX}: {}{more}; confirm with --yes, or list them with --dry-run",
            named.join(", ")
        ),
    )
}
