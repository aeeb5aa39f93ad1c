//! `hero cron …`: lists the periodic jobs of this machine's configuration, shows the firings of one, runs one,
//! enables or disables them.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::answer::NoResults;
use super::api::ApiMethods;
use super::cron_edit::{Add, Edit};
use super::cron_import::CronImport;
use super::cron_past::{Backfill, CronHistory, brief_seconds, firing_table, zone_of};
use super::input::NameArguments;
use super::job::show::with_unit;
use super::table::{TextTable, facts, first_line};
use super::terminal_style::TerminalStyle;
use super::time::{age, age_of_text, local_text, local_zone, wall_clock, with_offset};
use super::{Global, output};
use crate::client::{PeriodicJobDocument, PeriodicJobHistoryDocument, SpreadDocument};
use crate::error::{Error, Exit};
use crate::proto::cron::CronGraph;
use crate::proto::graph_plan::PlannedJob;
use crate::proto::text::escape;
use crate::proto::units::format_duration;
use crate::rpc::results::{Id, PeriodicJobList, Switched};

/// Run jobs on a schedule: add, list, show, change, run and disable periodic jobs
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero cron list\n\n\
                        Periodic jobs are files in /etc/hero/cron.d, see hero.toml(5), which supervisors read when \
                        they start and when they are reloaded; or in Redis, by hero cron add, which supervisors see \
                        at once. A name is in one of them: files win.\n\
                        DECLARED in the list is that file, or redis and who added it. A firing is left out if the \
                        job of the last one still runs (overlap), or if no supervisor ran at its time (catch_up).")]
pub(super) enum CronCommand {
    /// List the periodic jobs: when each is due next, in its own time zone, and how its last firing ended
    #[command(after_help = "Example:\n  hero cron list --json")]
    List,
    /// Show a periodic job: its next five firings and its latest twenty, with the job of each, how late it was
    /// submitted, and why a firing was left out
    #[command(after_help = "Example:\n  hero cron show nightly")]
    Show(OneCron),
    Add(Box<Add>),
    Edit(Box<Edit>),
    /// Delete periodic jobs in Redis, with their history; their jobs stay
    #[command(after_help = "Example:\n  hero cron delete report")]
    Delete(NameArguments),
    /// Run a periodic job now, besides its schedule, and print the id
    #[command(after_help = "Example:\n  hero job wait \"$(hero cron run nightly)\"")]
    Run(OneCron),
    History(CronHistory),
    Backfill(Backfill),
    Import(CronImport),
    /// Let disabled periodic jobs fire again; what they missed is not made up for
    #[command(after_help = "Example:\n  hero cron enable nightly")]
    Enable(NameArguments),
    /// Stop periodic jobs from firing, on every machine, until they are enabled; their files stay as they are
    #[command(after_help = "Example:\n  hero cron disable nightly")]
    Disable(NameArguments),
}

#[derive(Debug, Args)]
pub(super) struct OneCron {
    /// The name of the periodic job
    name: String,
}

impl CronCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::List => return list(global).await,
            Self::Show(OneCron { name }) => show(&name, global).await?,
            Self::Add(add) => add.run(global).await?,
            Self::Edit(edit) => edit.run(global).await?,
            Self::Delete(NameArguments { names }) => delete(&names, global).await?,
            Self::History(history) => history.run(global).await?,
            Self::Backfill(backfill) => backfill.run(global).await?,
            Self::Import(import) => return import.run(global),
            Self::Run(OneCron { name }) => run_now(&name, global).await?,
            Self::Enable(NameArguments { names }) => enable(&names, true, global).await?,
            Self::Disable(NameArguments { names }) => enable(&names, false, global).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn list(global: &Global) -> Result<ExitCode, Error> {
    let methods = global.methods()?;
    let (document, list) = methods.typed::<PeriodicJobList>("cron.list", json!({})).await?;
    let PeriodicJobList { cron, problems } = list;
    output::notes(&problems);
    let cron_dir = global.config()?.supervisor.cron_dir.display();
    let own = matches!(methods, ApiMethods::Local { .. }).then_some(cron_dir);
    let none = NoResults::new("periodic job").by("in Redis or in", own);
    let now = methods.now().await?;
    global.list(|| document, || table(&cron, now), none)?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { Exit::Config.into() })
}

async fn show(name: &str, global: &Global) -> Result<(), Error> {
    let params = json!({ "name": name });
    let (document, found) =
        global.methods()?.typed::<PeriodicJobHistoryDocument>("cron.get", params).await?;
    let text = || format!("{}{}", readable(&found, global.look()), settings(&found, global.look()));
    global.print(|| document, text)
}

async fn run_now(name: &str, global: &Global) -> Result<(), Error> {
    let (document, Id { id }) =
        global.methods()?.typed("cron.run", json!({ "name": name })).await?;
    global.print(|| document, || format!("{id}\n"))
}

async fn enable(names: &[String], enabled: bool, global: &Global) -> Result<(), Error> {
    let methods = global.methods()?;
    let done = if enabled { "enabled" } else { "disabled" };
    let method = if enabled { "cron.enable" } else { "cron.disable" };
    let enable = async |name: &String| {
        let (_, Switched { changed, .. }) = methods.typed(method, json!({ "name": name })).await?;
        let said = if changed { done.to_owned() } else { format!("was {done} already") };
        Ok((changed, said))
    };
    global.each(names, done, enable).await
}

async fn delete(names: &[String], global: &Global) -> Result<(), Error> {
    let methods = global.methods()?;
    let delete =
        async |name: &String| methods.call("cron.delete", json!({ "name": name })).await.map(drop);
    global.each_done(names, "deleted", delete).await
}

fn table(jobs: &[PeriodicJobDocument], now: Timestamp) -> TextTable<'_, PeriodicJobDocument> {
    let next = |job: &PeriodicJobDocument| match &job.next {
        Some(next) if job.enabled => wall_clock(next, &zone_of(job)),
        _ if job.enabled => job.not_in_force.clone().unwrap_or_default(),
        _ => disabled(job),
    };
    let due = |job: &PeriodicJobDocument| job.next.as_ref().map(|next| age_of_text(next, now));
    let last = |job: &PeriodicJobDocument| {
        job.last.as_ref().map(|last| wall_clock(&last.due, &zone_of(job)))
    };
    // The job of the last firing may have expired, or was deleted.
    let status = |job: &PeriodicJobDocument| {
        job.last.as_ref().map(|last| last.status.clone().unwrap_or("gone".to_owned()))
    };
    TextTable::of(jobs)
        .column("!NAME", &|job| job.name.clone())
        .column("SCHEDULE", &|job| job.schedule.clone())
        .column("TIME ZONE", &|job| job.time_zone.clone())
        .column("NEXT", &next)
        .column(">DUE", &|job| due(job).unwrap_or_default())
        .column("?LAST", &|job| last(job).unwrap_or_default())
        .column("*STATUS", &|job| status(job).unwrap_or_default())
        .column("SUCCEEDED", &|job| succeeded(job, now))
        .column("?>FIRED", &|job| job.fired.to_string())
        .column("?~DECLARED", &declared)
}

/// Returns a periodic job as lines, and its firings as tables, in its own time zone.
fn readable(found: &PeriodicJobHistoryDocument, look: TerminalStyle) -> String {
    let (job, zone) = (&found.job, zone_of(&found.job));
    let mut state = if job.enabled { "enabled".to_owned() } else { disabled(job) };
    if let Some(why) = &job.not_in_force {
        let _ = write!(state, ", {why}");
    }
    let fired = format!("{}, left out {}, missed {}", job.fired, job.left_out, job.missed);
    let own = [
        ("name", Some(job.name.clone())),
        ("state", Some(state)),
        ("schedule", Some(job.schedule.clone())),
        ("time zone", Some(job.time_zone.clone())),
        ("type", Some(job.type_words())),
        ("catch up", Some(job.catch_up.clone())),
        ("overlap", Some(job.overlap.clone())),
        ("declared", Some(declared_when(job))),
        ("every", job.every.map(|every| format!("{every}, {}", job.window))),
        ("spread", job.spread.as_ref().map(spread)),
        ("calendar", job.calendar.clone()),
        ("succeeded", job.succeeded_at.as_ref().map(|at| with_offset(at, &zone))),
        ("failed", job.failed_at.as_ref().map(|at| failed(job, at, &zone))),
        ("duration", job.duration_s.map(brief_seconds)),
        ("overdue", job.overdue_at.as_ref().map(|at| overdue(job, at, &zone))),
        ("fired", Some(fired)),
    ];
    let mut text = facts(10, own.map(|(name, value)| (name, value.unwrap_or_default())));
    if !found.upcoming.is_empty() {
        text.push_str("\nnext:\n");
        for next in &found.upcoming {
            let _ = writeln!(text, "  {}", with_offset(next, &zone));
        }
    }
    if !found.history.is_empty() {
        text.push_str("\nhistory:\n");
        text.push_str(&firing_table(&found.history, &zone).indented(look));
    }
    text
}

fn succeeded(job: &PeriodicJobDocument, now: Timestamp) -> String {
    let at = job.succeeded_at.as_ref().and_then(|at| at.parse().ok());
    let text = at.map_or_else(|| "never".to_owned(), |at: Timestamp| age(at, now));
    if job.overdue { format!("{text}, overdue") } else { text }
}

fn spread(spread: &SpreadDocument) -> String {
    let span = |seconds| format_duration(Duration::from_secs(seconds));
    let own = spread.own_s.map(|own| format!("{} for this name", span(own)));
    format!("{}, {}", span(spread.most_s), own.unwrap_or_else(|| "by machine".to_owned()))
}

fn failed(job: &PeriodicJobDocument, at: &str, zone: &TimeZone) -> String {
    let why = job.failed_why.as_deref().unwrap_or_default();
    let of = job.failed_id.as_deref().map(|id| format!("job {id}"));
    let of = of.as_deref().unwrap_or("not submitted");
    format!("{}, {of}: {}", with_offset(at, zone), first_line(why))
}

fn overdue(job: &PeriodicJobDocument, at: &str, zone: &TimeZone) -> String {
    let at = with_offset(at, zone);
    if job.overdue { format!("since {at}") } else { format!("from {at}, without a success") }
}

/// Returns what its jobs have: their settings, the names of their variables, and the start of the script.
fn settings(found: &PeriodicJobHistoryDocument, look: TerminalStyle) -> String {
    const LINES: usize = 10;
    let mut text = String::new();
    for (name, value) in found.settings.as_object().into_iter().flatten() {
        let (name, value) = match (name.as_str(), value) {
            ("id" | "script_type" | "reply", _) => continue,
            ("env_vars", Value::Object(variables)) => {
                ("env", variables.keys().cloned().collect::<Vec<_>>().join(" "))
            }
            (name, value) => (name, with_unit(name, value)),
        };
        if !value.is_empty() {
            let _ = writeln!(text, "  {name}  {}", first_line(&escape(&value)));
        }
    }
    if !text.is_empty() {
        text.insert_str(0, "\njobs:\n");
    }
    if let Some(plan) = &found.graph {
        text.push_str("\ngraph:\n");
        text.push_str(&graph_table(plan, look));
    }
    let lines: Vec<&str> = found.script.lines().collect();
    if lines.is_empty() {
        return text;
    }
    text.push_str("\nscript:\n");
    for line in lines.iter().take(LINES) {
        let _ = writeln!(text, "  {}", escape(line));
    }
    if lines.len() > LINES {
        let _ = writeln!(text, "  … and {} more lines", lines.len() - LINES);
    }
    text
}

fn graph_table(plan: &CronGraph, look: TerminalStyle) -> String {
    let text = |of: &PlannedJob<Map<String, Value>>, field: &str| {
        of.job.get(field).and_then(Value::as_str).map(str::to_owned)
    };
    TextTable::of(&plan.jobs)
        .column("!JOB", &|of| of.name.clone())
        .column("TYPE", &|of| text(of, "script_type").or(text(of, "uses")).unwrap_or_default())
        .column("AFTER", &|of| {
            of.after.iter().chain(&of.after_any).cloned().collect::<Vec<_>>().join(", ")
        })
        .indented(look)
}

/// The place that declares a periodic job: its file, or Redis and who added it.
fn declared(job: &PeriodicJobDocument) -> String {
    match &job.added_by {
        Some(by) => format!("redis, by {by}"),
        None => job.file.clone(),
    }
}

fn declared_when(job: &PeriodicJobDocument) -> String {
    let at = job.added_at.as_deref().map(|at| local_text(at, &local_zone()));
    at.map_or_else(|| declared(job), |at| format!("{}, {at}", declared(job)))
}

fn disabled(job: &PeriodicJobDocument) -> String {
    match job.disabled_by.as_deref() {
        Some(by) if !by.is_empty() => format!("disabled by {by}"),
        _ => "disabled".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_periodic_job_have_no_values_of_variables_and_the_begin_of_the_script() {
        let lines: Vec<String> = (1..=12).map(|line| format!("line {line}\n")).collect();
        let script = lines.concat();
        let found = PeriodicJobHistoryDocument {
            job: PeriodicJobDocument::default(),
            upcoming: Vec::new(),
            script,
            settings: json!({ "env_vars": { "TOKEN": "s3cret" }, "retries": 3 }),
            history: Vec::new(),
            graph: None,
        };
        let text = settings(&found, TerminalStyle::PLAIN);
        assert!(
            text.starts_with("\njobs:\n  env  TOKEN\n  retries  3\n\nscript:\n  line 1\n"),
            "{text}"
        );
        assert!(text.ends_with("  line 10\n  … and 2 more lines\n"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
