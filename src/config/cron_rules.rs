//! The rules for periodic jobs in Redis.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::schema::{CalendarConfig, Config};
use super::types::TypeConfig;
use crate::proto::cron::{Calendar, CalendarName, CronName, Schedule};
use crate::proto::every::{CronFleet, Every, check_copied};
use crate::proto::graph::GraphCallback;
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Entrance, InvalidJob, JobBounds, JobSpec, SETTINGS, notify_names};
use crate::proto::target::ScriptType;
use crate::proto::text::shown;
use crate::proto::units::parse_duration;
use crate::proto::window::GraphWindow;

pub(super) const BESIDE_GRAPH: &str =
    "cannot be set beside a script or settings of a job: its jobs have theirs in the graph";

/// The key that has a mistake, or an empty text, and the mistake.
type KeyMistake = (&'static str, String);

/// The parts of a configuration that check a periodic job in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronRules {
    pub(super) types: Arc<BTreeMap<ScriptType, TypeConfig>>,
    pub(super) bounds: JobBounds,
    pub(super) calendars: Arc<BTreeMap<CalendarName, CalendarConfig>>,
}

impl Default for CronRules {
    fn default() -> Self {
        Self::of(&Config::default())
    }
}

impl CronRules {
    pub fn type_names(&self) -> Vec<String> {
        self.types.keys().map(ToString::to_string).collect()
    }

    /// Returns a schedule with a spread and a calendar, if there are any.
    pub(super) fn with_rules(
        &self,
        name: &CronName,
        mut schedule: Schedule,
        spread: Option<&str>,
        calendar: Option<&str>,
    ) -> Result<Schedule, KeyMistake> {
        if let Some(spread) = spread {
            let wrong = |why: String| ("spread", why);
            let spread = parse_duration(spread).map_err(|error| wrong(error.to_string()))?;
            schedule = schedule.with_spread(name, spread).map_err(wrong)?;
        }
        let Some(calendar) = calendar else { return Ok(schedule) };
        let wrong = |why: String| ("calendar", why);
        let known = calendar.parse().ok().and_then(|name: CalendarName| {
            let of = self.calendars.get(&name)?;
            Some(Calendar::new(name, of.days.clone()))
        });
        let unknown = || {
            let known: Vec<&str> = self.calendars.keys().map(CalendarName::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            wrong(format!(
                "unknown calendar `{}`; hero.toml has: {known}; add [calendar.NAME] with its days",
                shown(calendar)
            ))
        };
        schedule.with_calendar(known.ok_or_else(unknown)?).map_err(wrong)
    }

    /// Returns the batch of the firings of a periodic job with `every`; its spread is one of the jobs, not of the firings.
    pub(super) fn fleet(
        (every, window): (Option<Every>, GraphWindow),
        spec: &JobSpec,
        schedule: &mut Schedule,
    ) -> Result<Option<CronFleet>, KeyMistake> {
        let Some(every) = every else {
            let field = window.fields().next();
            let why = "is for the batch of a periodic job with every".to_owned();
            return field.map_or(Ok(None), |(name, _)| Err((name, why)));
        };
        if spec.script.is_empty() && spec.uses.is_none() {
            let why = "cannot be set beside graph: a firing submits its graph once, not for every machine";
            return Err(("every", why.to_owned()));
        }
        check_copied(spec).map_err(|error| ("every", error.to_string()))?;
        let (spread, _) = schedule.spread();
        schedule.start_at_once();
        Ok(Some(CronFleet { every, window: window.without_zeros(), spread }))
    }

    /// Checks the script type of a job, and the bounds that it asks for.
    pub(super) fn check_type(&self, spec: &JobSpec) -> Result<(), KeyMistake> {
        let Some(script_type) = &spec.script_type else {
            // The script that it names has a type.
            let missing = || Err(("", "needs a type, such as \"python\"".to_owned()));
            return if spec.uses.is_some() { Ok(()) } else { missing() };
        };
        let Some(of_type) = self.types.get(script_type) else {
            return Err(("type", format!("`{script_type}` is not a configured script type")));
        };
        let checked = of_type.check_asked(script_type, &spec.asked_bounds());
        checked.map_err(|error| ("", error.to_string()))
    }

    /// Checks the graph of a periodic job, and completes its jobs as jobs of a firing.
    ///
    /// # Errors
    /// The job that has a mistake, or a key of the graph, and the mistake.
    pub(super) fn graph(
        &self,
        name: &CronName,
        plan: GraphPlan<JobSpec>,
    ) -> Result<GraphPlan<JobSpec>, (String, String)> {
        if plan.id.is_some() {
            return Err(("id".to_owned(), "each firing has its own".to_owned()));
        }
        if plan.jobs.is_empty() {
            return Err(("jobs".to_owned(), "the graph has no job".to_owned()));
        }
        notify_names(plan.notify.iter().map(String::as_str))
            .map_err(|why| ("notify".to_owned(), why))?;
        plan.check_names()?;
        plan.map(|of, mut spec| {
            let wrong = |why: String| (of.to_owned(), why);
            let refused = SETTINGS.iter().filter(|set| set.text(&spec).is_some()).find_map(|set| {
                let reason = set.absent_at(Entrance::PeriodicJob)?;
                (set.field != "may_fail").then(|| format!("{}: {reason}", set.word))
            });
            refused.map_or(Ok(()), |why| Err(wrong(why)))?;
            self.check_type(&spec).map_err(|(key, why)| wrong(with_key(key, why)))?;
            let is_callback = GraphCallback::ALL.iter().any(|callback| callback.as_str() == of);
            let own = if is_callback { format!("{of} of {name}") } else { of.to_owned() };
            spec.name = spec.name.or_else(|| own.parse().ok());
            complete(name, &mut spec, &self.bounds).map_err(|error| wrong(error.to_string()))?;
            spec.reply = false;
            Ok(spec)
        })
    }

    /// Returns what the jobs of a periodic job's graph have in common, and the name and the notifications of the graph.
    pub(super) fn spec_of_graph(name: &CronName, plan: &GraphPlan<JobSpec>) -> JobSpec {
        let notify = notify_names(plan.notify.iter().map(String::as_str)).unwrap_or_default();
        let of_graph = plan.name.clone().or_else(|| name.as_str().parse().ok());
        let mut spec = JobSpec { reply: false, name: of_graph, notify, ..JobSpec::default() };
        mark(name, &mut spec);
        spec
    }

    pub(super) fn of(config: &Config) -> Self {
        Self {
            types: Arc::new(config.types.clone()),
            bounds: config.job.bounds(),
            calendars: Arc::new(config.calendars.clone()),
        }
    }
}

/// Adds what every periodic job says of its jobs, and checks them.
pub(super) fn complete(
    name: &CronName,
    spec: &mut JobSpec,
    bounds: &JobBounds,
) -> Result<(), InvalidJob> {
    spec.check_uniqueness()?;
    mark(name, spec);
    spec.check(bounds)?;
    if spec.name.is_none() {
        spec.name = name.as_str().parse().ok();
    }
    spec.unique_key = spec.key_of_content().or(spec.unique_key.take());
    Ok(())
}

/// Adds the name of a periodic job to the settings of its jobs.
fn mark(name: &CronName, spec: &mut JobSpec) {
    spec.env_vars.insert("HERO_CRON".to_owned(), name.to_string());
    if spec.caller_id.is_empty() {
        spec.caller_id = format!("cron {name}");
    }
}

/// Returns a mistake after the key that has it.
pub(super) fn with_key(key: &str, why: String) -> String {
    if key.is_empty() { why } else { format!("{key}: {why}") }
}
