//! `cron.*`: the periodic jobs of the configuration.

use std::collections::HashSet;
use std::convert::Infallible;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::job::Id;
use super::job_types::{JobSettings, mask};
use super::params::{Nothing, PastTime, page_size};
use super::{CallContext, Result, Scope, blocking};
use crate::client::{
    BackfillPeriod, BackfilledFiring, FiringDocument, PeriodicJobDocument,
    PeriodicJobHistoryDocument,
};
use crate::config::Crontab;
use crate::proto::cron::{CatchUp, CronChange, Overlap};
use crate::proto::every::EveryOrNone;
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::Job;
use crate::proto::window::{GraphWindow, PauseAfter, StopAfter};
use crate::store::FIRINGS_MAX;

methods! {
    /// Lists the periodic jobs: when each is due next, and how its last firing ended.
    "cron.list", Scope::Read => list;
    /// Shows a periodic job with its next and latest firings.
    "cron.get", Scope::Read => get;
    /// Lists the latest firings of a periodic job, the newest first: at most 100 are kept.
    "cron.history", Scope::Read => history;
    /// Submits the jobs of a periodic job for its firings in a period of the past.
    "cron.backfill", Scope::Operate => backfill;
    /// Runs a periodic job now, besides its schedule: returns the id of its job, or of its batch.
    "cron.run", Scope::Operate => run;
    /// Adds a periodic job to those in Redis, which every supervisor fires beside those in files.
    "cron.add", Scope::Admin => add;
    /// Changes a periodic job in Redis: given settings replace its own.
    "cron.edit", Scope::Admin => edit;
    /// Deletes a periodic job in Redis, with its history; its jobs stay.
    "cron.delete", Scope::Admin => delete;
    /// Lets a disabled periodic job fire again.
    "cron.enable", Scope::Operate => |context, params| switch(context, params, true);
    /// Disables a periodic job: it does not fire until it is enabled.
    "cron.disable", Scope::Operate => |context, params| switch(context, params, false);
}

/// The periodic jobs.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PeriodicJobList {
    /// The periodic jobs, by name.
    pub(crate) cron: Vec<PeriodicJobDocument>,
    /// The mistakes of the files whose jobs are left out.
    pub(crate) problems: Vec<String>,
}

async fn crontab(context: &CallContext) -> Result<Crontab> {
    let config = std::sync::Arc::clone(&context.config);
    blocking(move || Ok(config.crontab())).await
}

/// Returns the periodic jobs that the caller may see, those in Redis too. Beyond its bounds there is nothing.
async fn seen(context: &CallContext) -> Result<Crontab> {
    let files = crontab(context).await?;
    let mut crontab = context.client.cron().crontab(&files).await?;
    if context.caller.is_bound() {
        let sees = |job: &Job| context.caller.sees_whole(job);
        crontab.entries.retain(|entry| entry.jobs(Timestamp::UNIX_EPOCH).iter().all(sees));
        crontab.problems.clear();
    }
    Ok(crontab)
}

async fn list(context: CallContext, _: Nothing) -> Result<PeriodicJobList> {
    let crontab = seen(&context).await?;
    let mut cron = context.client.cron().documents(&crontab).await?;
    hide_jobs_beyond(&context, &mut cron, &mut []).await?;
    let problems = crontab.problems.iter().map(ToString::to_string).collect();
    Ok(PeriodicJobList { cron, problems })
}

/// A periodic job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnePeriodicJob {
    /// Its name.
    name: String,
}

async fn get(context: CallContext, params: OnePeriodicJob) -> Result<PeriodicJobHistoryDocument> {
    let crontab = seen(&context).await?;
    let mut found = context.client.cron().history(&crontab, &params.name).await?;
    let job = std::slice::from_mut(&mut found.job);
    hide_jobs_beyond(&context, job, &mut found.history).await?;
    if !context.caller.operates() {
        found.settings.as_object_mut().into_iter().for_each(mask);
        let masked = |_: &str, mut job| {
            mask(&mut job);
            Ok::<_, Infallible>(job)
        };
        found.graph = found.graph.and_then(|plan| plan.map(masked).ok());
    }
    Ok(found)
}

/// The latest firings of a periodic job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LatestFirings {
    /// Its name.
    name: String,
    /// The most firings, 1 to 100; 50 without it.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
}

/// Firings of a periodic job.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct FiringList {
    /// The firings, the newest first.
    pub(crate) firings: Vec<FiringDocument>,
}

async fn history(context: CallContext, params: LatestFirings) -> Result<FiringList> {
    let most = page_size(params.limit, FIRINGS_MAX)?;
    let crontab = seen(&context).await?;
    let mut firings = context.client.cron().firings(&crontab, &params.name, most).await?;
    hide_jobs_beyond(&context, &mut [], &mut firings).await?;
    Ok(FiringList { firings })
}

/// Removes from documents the jobs that a bound caller does not find: a firing of before may be of another group, and one
/// that was left out names the holder of a unique key.
async fn hide_jobs_beyond(
    context: &CallContext,
    jobs: &mut [PeriodicJobDocument],
    firings: &mut [FiringDocument],
) -> Result<()> {
    if !context.caller.is_bound() {
        return Ok(());
    }
    let last = |job: &PeriodicJobDocument| job.last.as_ref().and_then(|last| last.job_id.clone());
    let of_jobs = jobs.iter().flat_map(|job| [last(job), job.failed_id.clone()]);
    let named = of_jobs.chain(firings.iter().map(|firing| firing.job_id.clone())).flatten();
    let found = context.client.jobs().summaries(named.filter_map(|id| id.parse().ok()).collect());
    let found = found.await?.into_iter().filter(|job| context.finds(job));
    let found: HashSet<String> = found.map(|job| job.id.to_string()).collect();
    let is_found = |id: &String| found.contains(id);
    for job in jobs {
        job.last = job.last.take().filter(|last| last.job_id.as_ref().is_some_and(is_found));
        if !job.failed_id.as_ref().is_some_and(is_found) {
            (job.failed_id, job.failed_why) = (None, None);
        }
    }
    for firing in firings.iter_mut().filter(|of| !of.job_id.as_ref().is_some_and(is_found)) {
        (firing.job_id, firing.batch_id, firing.status) = (None, None, None);
    }
    Ok(())
}

/// A period of a periodic job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackfilledPeriod {
    /// Its name.
    name: String,
    /// The start of the period: a time, or a duration ago such as 2d.
    since: PastTime,
    /// The end of the period; now without it.
    until: Option<PastTime>,
    /// Leaves out the times for which it fired.
    #[serde(default)]
    only_missing: bool,
}

/// The firings of a period.
#[derive(Serialize, JsonSchema)]
struct Backfilled {
    /// The firings, in their order.
    firings: Vec<BackfilledFiring>,
}

async fn backfill(context: CallContext, params: BackfilledPeriod) -> Result<Backfilled> {
    context.needs_no_bounds("run periodic jobs")?;
    let crontab = crontab(&context).await?;
    let until = match params.until {
        Some(PastTime(until)) => until,
        None => context.client.system().now().await?,
    };
    let PastTime(since) = params.since;
    let period = BackfillPeriod { since, until, only_missing: params.only_missing };
    let firings = context.client.cron().backfill(&crontab, &params.name, &period).await?;
    Ok(Backfilled { firings })
}

async fn run(context: CallContext, params: OnePeriodicJob) -> Result<Id> {
    context.needs_no_bounds("run periodic jobs")?;
    let crontab = crontab(&context).await?;
    let id = context.client.cron().run(&crontab, &params.name).await?;
    Ok(Id { id: id.to_string() })
}

/// A periodic job to add or to change: a new one must have a schedule, `S`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PeriodicJobSettings<S, J> {
    /// Its name, which no file has.
    name: String,
    /// The line of its schedule: five fields, six with seconds first, a word such as @daily, or @every 90m.
    schedule: S,
    /// The time zone of the schedule; a new one without it is in UTC.
    time_zone: Option<String>,
    /// The treatment of missed firings: skip, once or all.
    #[schemars(with = "Option<String>", extend("enum" = ["skip", "once", "all", null]))]
    catch_up: Option<CatchUp>,
    /// The treatment of a firing while the last job has not ended: skip, allow or replace.
    #[schemars(with = "Option<String>", extend("enum" = ["skip", "allow", "replace", null]))]
    overlap: Option<Overlap>,
    /// The longest delay of its firings, such as 10m; its name alone decides the delay that they have. 0s for none.
    spread: Option<String>,
    /// The calendar of the configuration with the days on which it does not fire; empty for none.
    calendar: Option<String>,
    /// The settings of its jobs. In a change they replace those it has; null removes one.
    job: J,
    /// Submits at each firing a batch with a copy of the job for every machine, or every actor, of its type that matches its
    /// `where`; `spread` then delays each copy by the name of its machine. `none` for one job.
    every: Option<EveryOrNone>,
    /// The number of jobs of such a batch that run at once; 0 for no bound.
    at_a_time: Option<u32>,
    /// The failures that stop the jobs of such a batch that have not started: a number, or a share such as `5%`; 0 for no
    /// bound.
    stop_after: Option<StopAfter>,
    /// The number of jobs of such a batch that start before the others, and the pause of the others, such as `1 10m`; 0 for
    /// none.
    pause_after: Option<PauseAfter>,
    /// The graph that each firing submits in place of a job, all of its jobs or none. They get new ids each time.
    graph: Option<GraphPlan<JobSettings>>,
}

impl<S: Into<Option<String>>, J> PeriodicJobSettings<S, J> {
    /// Returns its name, and what is set.
    fn change(self, job: impl FnOnce(J) -> Map<String, Value>) -> (String, CronChange) {
        let members = |_: &str, job: JobSettings| Ok::<_, Infallible>(job.members());
        let Self { at_a_time, stop_after, pause_after, .. } = self;
        let change = CronChange {
            schedule: self.schedule.into(),
            time_zone: self.time_zone,
            catch_up: self.catch_up,
            overlap: self.overlap,
            spread: self.spread,
            calendar: self.calendar,
            every: self.every,
            window: GraphWindow { at_a_time, stop_after, pause_after },
            job: job(self.job),
            graph: self.graph.and_then(|plan| plan.map(members).ok()),
        };
        (self.name, change)
    }
}

/// A periodic job that was added, changed or deleted.
#[derive(Serialize, JsonSchema)]
struct ChangedPeriodicJob {
    /// Its name.
    name: String,
}

async fn add(
    context: CallContext,
    params: PeriodicJobSettings<String, Option<JobSettings>>,
) -> Result<ChangedPeriodicJob> {
    context.needs_no_bounds("add periodic jobs")?;
    let (name, new) = params.change(|job| job.map(JobSettings::members).unwrap_or_default());
    let (crontab, by) = (crontab(&context).await?, context.caller.name.as_str());
    context.client.cron().add(&crontab, &name, new, by, |job| context.has_type(job)).await?;
    Ok(ChangedPeriodicJob { name })
}

async fn edit(
    context: CallContext,
    params: PeriodicJobSettings<Option<String>, Option<ChangedSettings>>,
) -> Result<ChangedPeriodicJob> {
    context.needs_no_bounds("change periodic jobs")?;
    let (name, change) =
        params.change(|job| job.map(|ChangedSettings(members)| members).unwrap_or_default());
    let (crontab, by) = (crontab(&context).await?, context.caller.name.as_str());
    // A new script or setting of a type is a use of the type.
    let may_submit = |job: &Job| context.has_type(job);
    context.client.cron().edit(&crontab, &name, change, by, may_submit).await?;
    Ok(ChangedPeriodicJob { name })
}

async fn delete(context: CallContext, params: OnePeriodicJob) -> Result<ChangedPeriodicJob> {
    context.needs_no_bounds("delete periodic jobs")?;
    let may_submit = |job: &Job| context.has_type(job);
    context.client.cron().delete(&crontab(&context).await?, &params.name, may_submit).await?;
    Ok(ChangedPeriodicJob { name: params.name })
}

/// Members of a job, named as the fields of its hash.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct ChangedSettings(Map<String, Value>);

/// A periodic job that was enabled or disabled.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Switched {
    /// Its name.
    pub(crate) name: String,
    /// Set if it is enabled now.
    pub(crate) enabled: bool,
    /// Set if that changed it.
    pub(crate) changed: bool,
}

async fn switch(
    context: CallContext,
    OnePeriodicJob { name }: OnePeriodicJob,
    enabled: bool,
) -> Result<Switched> {
    context.needs_no_bounds("change periodic jobs")?;
    let (crontab, by) = (crontab(&context).await?, context.caller.name.as_str());
    let changed = context.client.cron().enable(&crontab, &name, enabled, by).await?;
    Ok(Switched { name, enabled, changed })
}
