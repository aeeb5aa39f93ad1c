//! The rules for periodic jobs in Redis.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::calendar::CalendarConfig;
use super::schema::Config;
use super::types::TypeConfig;
use crate::proto::cron::{Calendar, CalendarName, CronName, Overlap, Schedule};
use crate::proto::every::{CronFleet, Every, check_copied};
use crate::proto::job::{JobBounds, JobSpec};
use crate::proto::target::ScriptType;
use crate::proto::text::shown;
use crate::proto::units::parse_duration;
use crate::proto::window::GraphWindow;

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
    /// The names of the script types.
    pub fn type_names(&self) -> Vec<String> {
        self.types.keys().map(ToString::to_string).collect()
    }

    /// Returns a schedule with a spread and a calendar, if there are any.
    ///
    /// # Errors
    /// The key that has a mistake, and the mistake.
    pub(super) fn with_rules(
        &self,
        name: &CronName,
        mut schedule: Schedule,
        spread: Option<&str>,
        calendar: Option<&str>,
    ) -> Result<Schedule, (&'static str, String)> {
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
    ///
    /// # Errors
    /// The key that has a mistake, and the mistake.
    pub(super) fn fleet(
        (every, window): (Option<Every>, GraphWindow),
        spec: &JobSpec,
        overlap: Overlap,
        schedule: &mut Schedule,
    ) -> Result<Option<CronFleet>, (&'static str, String)> {
        let Some(every) = every else {
            let field = window.fields().next();
            let why = "is for the batch of a periodic job with every".to_owned();
            return field.map_or(Ok(None), |(name, _)| Err((name, why)));
        };
        if overlap == Overlap::Replace {
            let why = "cannot be replace beside every: no batch is replaced; skip or allow";
            return Err(("overlap", why.to_owned()));
        }
        check_copied(spec).map_err(|error| ("every", error.to_string()))?;
        let (spread, _) = schedule.spread();
        schedule.start_at_once();
        Ok(Some(CronFleet { every, window: window.without_zeros(), spread }))
    }

    /// The rules of a configuration.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            types: Arc::new(config.types.clone()),
            bounds: config.job.bounds(),
            calendars: Arc::new(config.calendars.clone()),
        }
    }
}
