//! `hero cron add`, `edit` and `delete`: the periodic jobs that are kept in Redis.

use std::path::PathBuf;

use clap::{Arg, Args};
use serde_json::{Map, Value, json};

use super::author::user;
use super::cron_firings::zone_of;
use super::every::EveryOptions;
use super::job_options::SettingOptions;
use super::script::ScriptSource;
use super::script_arguments::ScriptArguments;
use super::time::wall_clock;
use super::window_options::WindowOptions;
use super::{Global, job_notes, output};
use crate::client::{Client, PeriodicJobHistoryDocument};
use crate::config::Crontab;
use crate::error::{Error, Exit};
use crate::proto::cron::CronChange;
use crate::proto::job::{Entrance, JobSpec, SETTINGS};

/// Add a periodic job to those in Redis: every supervisor fires it, no file and no reload is needed
#[derive(Debug, Args)]
#[command(
    override_usage = "hero cron add [OPTIONS] --schedule <LINE> <NAME> <FILE|--eval <CODE>|--uses <NAME>>"
)]
#[command(mut_args(without_refused))]
#[command(
    after_help = "Examples:\n  hero cron add report --schedule '0 9 * * 1-5' --timezone Europe/Brussels \
                        --retries 2 report.py -- north\n  \
                        hero cron add tidy --schedule @daily --every-machine --spread 1h --expires 20h clean.sh\n\n\
                        With --every-machine each firing is a batch with a job for each machine, and --spread delays each\n\
                        of these jobs by the name of its machine.\n\n\
                        FILE and the files of --params and --env-file are read now; --input and --stdin, of hero submit,\n\
                        are not taken: a periodic job keeps no files."
)]
pub(super) struct Add {
    /// The name of the periodic job, which no file has
    #[arg(id = "periodic_job", value_name = "NAME")]
    name: String,
    /// Five fields, six with seconds first, a word such as @daily, or @every 90m
    #[arg(long, value_name = "LINE")]
    schedule: String,
    #[command(flatten)]
    script: ScriptSource,
    #[command(flatten)]
    options: CronOptions,
}

/// Change a periodic job in Redis: given options replace its own
#[derive(Debug, Args)]
#[command(mut_args(without_refused))]
#[command(after_help = "Example:\n  hero cron edit report --schedule '30 8 * * 1-5'\n  \
                        hero cron edit report new_report.py")]
pub(super) struct Edit {
    /// The name of the periodic job
    #[arg(id = "periodic_job", value_name = "NAME")]
    name: String,
    /// Five fields, six with seconds first, a word such as @daily, or @every 90m
    #[arg(long, value_name = "LINE")]
    schedule: Option<String>,
    /// The file of a new script
    file: Option<PathBuf>,
    /// A new script
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true, conflicts_with = "file")]
    eval: Option<String>,
    #[command(flatten)]
    options: CronOptions,
}

/// The options of a periodic job and its jobs.
#[derive(Debug, Args)]
struct CronOptions {
    /// The time zone of the schedule, such as Europe/Brussels; UTC without one
    #[arg(long, visible_alias = "time-zone", value_name = "ZONE")]
    timezone: Option<String>,
    /// The action for firings that were missed while no supervisor ran: skip (the default), once (the latest
    /// alone) or all
    #[arg(long, value_name = "skip|once|all", value_parser = word::<crate::proto::cron::CatchUp>)]
    catch_up: Option<crate::proto::cron::CatchUp>,
    /// The action for a firing while the job of the last one has not ended: skip (no job, the default),
    /// allow (another beside it) or replace (that one is stopped)
    #[arg(long, value_name = "skip|allow|replace", value_parser = word::<crate::proto::cron::Overlap>)]
    overlap: Option<crate::proto::cron::Overlap>,
    /// The longest delay of its firings, such as 10m: periodic jobs of one time start apart. Its name alone
    /// decides the delay that they have; 0s for none
    #[arg(long, value_name = "DURATION")]
    spread: Option<String>,
    /// The calendar, [calendar.NAME] of hero.toml, with the days on which it does not fire; '' for none
    #[arg(long, value_name = "NAME")]
    calendar: Option<String>,
    #[command(flatten)]
    every: EveryOptions,
    #[command(flatten)]
    window: WindowOptions,
    #[command(flatten)]
    settings: SettingOptions,
    #[command(flatten)]
    given: ScriptArguments,
    #[command(flatten)]
    refused: NoFiles,
}

/// Hides an option that no periodic job may have: it is understood, and refused with the reason.
fn without_refused(option: Arg) -> Arg {
    let of = SETTINGS.iter().find(|setting| setting.word == option.get_id().as_str());
    let is_refused = of.is_some_and(|of| of.absent_at(Entrance::PeriodicJob).is_some());
    if is_refused { option.hide(true) } else { option }
}

/// Options of `hero submit` that a periodic job cannot have: its definition keeps no files.
#[derive(Debug, Args)]
struct NoFiles {
    #[arg(long, hide = true, value_name = "NAME=FILE")]
    input: Vec<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    stdin: Option<String>,
}

impl Add {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let (client, config) = (global.client()?, global.config()?);
        let mut spec = self.options.spec()?;
        if spec.uses.is_none() {
            self.script.fill(&mut spec, config)?;
        }
        if let Some(used) = &spec.uses {
            client.read_words(used, &mut spec.params, &self.options.given.words()).await?;
        }
        let new = self.options.change(Some(self.schedule.clone()), &spec);
        let (files, by) = (config.crontab(), user());
        client.add_periodic_job(&files, &self.name, new, &by, |_| Ok::<_, Error>(())).await?;
        said(&self.name, "added", global)?;
        tell_next(&client, &config.crontab(), &self.name).await?;
        job_notes::print(&spec, config);
        Ok(())
    }
}

impl Edit {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let (client, config) = (global.client()?, global.config()?);
        let mut spec = self.options.spec()?;
        if self.file.is_some() || self.eval.is_some() {
            let script = ScriptSource::of(self.file.clone(), self.eval.clone());
            spec.script = script.read(config.job.script_size_max)?;
        }
        let words = self.options.given.words();
        if !words.is_empty() {
            let used = match spec.uses.clone() {
                None => client.script_of_periodic_job(&self.name).await?,
                used => used,
            };
            if let Some(used) = used {
                client.read_words(&used, &mut spec.params, &words).await?;
            }
        }
        let change = self.options.change(self.schedule.clone(), &spec);
        if change == CronChange::default() {
            let message = "nothing to change: give an option, such as --schedule, or a file";
            return Err(Error::new(Exit::Usage, message));
        }
        let (files, by) = (config.crontab(), user());
        client.edit_periodic_job(&files, &self.name, change, &by, |_| Ok::<_, Error>(())).await?;
        said(&self.name, "changed", global)?;
        tell_next(&client, &config.crontab(), &self.name).await?;
        job_notes::print(&spec, config);
        Ok(())
    }
}

/// Deletes periodic jobs in Redis.
impl CronOptions {
    /// Returns the settings of its jobs.
    fn spec(&self) -> Result<JobSpec, Error> {
        if !self.refused.input.is_empty() || self.refused.stdin.is_some() {
            let message = "--input and --stdin: a periodic job keeps no files; give it the path by --param, and let \
                           its script read the file";
            return Err(Error::new(Exit::Usage, message));
        }
        let mut spec = self.given.spec()?;
        self.settings.apply(&mut spec, None)?;
        Ok(spec)
    }

    fn change(&self, schedule: Option<String>, spec: &JobSpec) -> CronChange {
        let given = SETTINGS.iter().filter_map(|setting| {
            Some((setting.field.to_owned(), Value::String(setting.text(spec)?)))
        });
        CronChange {
            schedule,
            time_zone: self.timezone.clone(),
            catch_up: self.catch_up,
            overlap: self.overlap,
            spread: self.spread.clone(),
            calendar: self.calendar.clone(),
            every: self.every.every(),
            window: self.window.window(),
            job: given.collect::<Map<_, _>>(),
        }
    }
}

/// Tells when a periodic job runs next, by the clock of its time zone.
async fn tell_next(client: &Client, files: &Crontab, name: &str) -> Result<(), Error> {
    let crontab = client.whole_crontab(files).await?;
    let PeriodicJobHistoryDocument { job, .. } =
        client.periodic_job_history(&crontab, name).await?;
    if let Some(next) = &job.next {
        let zone = &job.time_zone;
        output::note(&format!("hero: runs next at {} in {zone}", wall_clock(next, &zone_of(&job))));
    }
    Ok(())
}

fn said(name: &str, done: &str, global: &Global) -> Result<(), Error> {
    global.print(|| json!({ "name": name, "done": done }), || format!("{name} {done}\n"))
}

fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|error| error.to_string())
}
