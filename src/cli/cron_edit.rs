//! `hero cron add` and `edit`: the periodic jobs that are kept in Redis.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::api::{ApiMethods, settings};
use super::cron_past::zone_of;
use super::every::EveryOptions;
use super::help::MANY;
use super::job_options::{SettingOptions, hidden_at};
use super::script::ScriptSource;
use super::script_inputs::ScriptArguments;
use super::submit::{params, read_plan};
use super::time::wall_clock;
use super::window_options::WindowOptions;
use super::{Global, job_notes, output};
use crate::client::PeriodicJobHistoryDocument;
use crate::error::{Error, Exit};
use crate::proto::every::EveryOrNone;
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Entrance, Job, JobSpec};

/// Add a periodic job to those in Redis: every supervisor fires it, no file and no reload is needed
#[derive(Debug, Args)]
#[command(
    override_usage = "hero cron add [OPTIONS] --schedule <LINE> <NAME> <FILE|--eval <CODE>|--uses <NAME>|--graph <FILE>>"
)]
#[command(mut_args(|option| hidden_at(Entrance::PeriodicJob, option)))]
#[command(after_help = "Examples:\n  hero cron add report --schedule '0 9 * * 1-5' \\\n      \
                        --timezone Europe/Brussels --retries 2 report.py -- north\n  \
                        hero cron add tidy --schedule @daily --every-machine --spread 1h clean.sh\n  \
                        hero cron add pipe --schedule '0 2 * * *' --graph pipe.toml\n\n\
                        With --every-machine each firing is a batch with a job for each machine, and --spread delays each \
                        of these jobs by the name of its machine.\n\n\
                        With --graph each firing submits a graph, whose file has the settings of its jobs.\n\n\
                        FILE and the files of --graph, --params and --env-file are read now; --input and --stdin, of hero submit, \
                        are not taken: a periodic job keeps no files.")]
pub(super) struct Add {
    /// The name of the periodic job, which no file has
    #[arg(id = "periodic_job", value_name = "NAME")]
    name: String,
    /// Five fields, six with seconds first, a word such as @daily, or @every 90m
    #[arg(long, value_name = "LINE")]
    schedule: String,
    #[command(flatten)]
    script: ScriptSource,
    /// A file of jobs that wait for each other by name, as hero submit takes it: each firing submits the graph
    #[arg(long, value_name = "FILE", group = "ScriptSource", help_heading = MANY)]
    graph: Option<PathBuf>,
    #[command(flatten)]
    options: CronOptions,
}

/// Change a periodic job in Redis: given options replace its own
#[derive(Debug, Args)]
#[command(mut_args(|option| hidden_at(Entrance::PeriodicJob, option)))]
#[command(after_help = "Example:\n  hero cron edit report --schedule '30 8 * * 1-5'\n  \
                        hero cron edit report new_report.py\n  \
                        hero cron edit tidy --every-none")]
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
    /// The file of a new graph, in place of the script or the graph
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "eval"], help_heading = MANY)]
    graph: Option<PathBuf>,
    /// Submit one job at each firing again, and not a batch; its bounds go too
    #[arg(long, conflicts_with_all = ["every_machine", "every_actor"], help_heading = MANY)]
    every_none: bool,
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
    // A periodic job cannot have these of `hero submit`: its definition keeps no files.
    #[arg(long, hide = true, value_name = "NAME=FILE")]
    input: Vec<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    stdin: Option<String>,
}

impl Add {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let (methods, mut spec) = (global.methods()?, self.options.spec()?);
        match spec.uses.clone() {
            _ if self.graph.is_some() => {}
            Some(used) => {
                let words = self.options.given.words();
                methods.read_words(&used, &mut spec.params, &words).await;
            }
            None => self.script.fill(&mut spec, global.config()?)?,
        }
        let mut params = self.options.params(&self.name, Some(&self.schedule), &spec);
        let jobs = add_graph(&mut params, self.graph.as_deref(), spec, global)?;
        let document = methods.call("cron.add", params).await?;
        report(&methods, (&self.name, "added"), document, &jobs, global).await
    }
}

impl Edit {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let (methods, mut spec) = (global.methods()?, self.options.spec()?);
        if self.file.is_some() || self.eval.is_some() {
            let script = ScriptSource::of(self.file.clone(), self.eval.clone());
            spec.script = script.read(global.config()?.job.script_size_max)?;
        }
        let (mut used, words) = (spec.uses.clone(), self.options.given.words());
        if used.is_none() && !words.is_empty() {
            let found = methods.call("cron.get", json!({ "name": self.name })).await;
            used = found.ok().and_then(|found| found["settings"]["uses"].as_str()?.parse().ok());
        }
        if let Some(used) = used {
            methods.read_words(&used, &mut spec.params, &words).await;
        }
        let mut params = self.options.params(&self.name, self.schedule.as_deref(), &spec);
        if self.every_none {
            params["every"] = EveryOrNone::None.as_str().into();
        }
        let jobs = add_graph(&mut params, self.graph.as_deref(), spec, global)?;
        if params.as_object().is_some_and(|given| given.len() == 1) {
            let message = "nothing to change: give an option, such as --schedule, or a file";
            return Err(Error::new(Exit::Usage, message));
        }
        let document = methods.call("cron.edit", params).await?;
        report(&methods, (&self.name, "changed"), document, &jobs, global).await
    }
}

impl CronOptions {
    fn spec(&self) -> Result<JobSpec, Error> {
        if !self.input.is_empty() || self.stdin.is_some() {
            let message = "--input and --stdin: a periodic job keeps no files; give it the path by --param, and let \
                           its script read the file";
            return Err(Error::new(Exit::Usage, message));
        }
        let mut spec = self.given.spec()?;
        self.settings.apply(&mut spec, None)?;
        Ok(spec)
    }

    /// Returns the parameters of the method: its name, and what is given.
    fn params(&self, name: &str, schedule: Option<&str>, spec: &JobSpec) -> Value {
        let mut params = json!({
            "name": name,
            "schedule": schedule,
            "time_zone": self.timezone,
            "catch_up": self.catch_up,
            "overlap": self.overlap,
            "spread": self.spread,
            "calendar": self.calendar,
            "every": self.every.word(),
            "job": settings(&Job::from(spec.clone())),
        });
        WindowOptions::add_to(&mut params, self.window.window());
        let given = params.as_object_mut().into_iter();
        given.for_each(|given| given.retain(|_, value| !value.is_null() && *value != json!({})));
        params
    }
}

/// Adds the graph of a file to the parameters of a method. Returns it, or a graph of the one job of the options.
fn add_graph(
    given: &mut Value,
    file: Option<&Path>,
    spec: JobSpec,
    global: &Global,
) -> Result<GraphPlan<Job>, Error> {
    let Some(file) = file else { return Ok(GraphPlan::of_one(Job::from(spec))) };
    let plan = read_plan(file, global.config()?)?;
    given["graph"] = params(plan.clone());
    Ok(plan)
}

/// Prints that a periodic job was added or changed, when it runs next by the clock of its time zone, and the notes about its
/// jobs.
async fn report(
    methods: &ApiMethods,
    (name, done): (&str, &str),
    document: Value,
    jobs: &GraphPlan<Job>,
    global: &Global,
) -> Result<(), Error> {
    global.print(|| document, || format!("{name} {done}\n"))?;
    let found =
        methods.typed::<PeriodicJobHistoryDocument>("cron.get", json!({ "name": name })).await;
    if let Ok((_, PeriodicJobHistoryDocument { job, .. })) = found
        && let Some(next) = &job.next
    {
        let (next, zone) = (wall_clock(next, &zone_of(&job)), &job.time_zone);
        output::note(&format!("hero: runs next at {next} in {zone}"));
    }
    // Elsewhere another configuration holds.
    if matches!(methods, ApiMethods::Local { .. }) {
        job_notes::print_of_graph(jobs, global.config()?);
    }
    Ok(())
}

fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|error| error.to_string())
}
