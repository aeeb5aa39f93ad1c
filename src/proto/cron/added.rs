//! Periodic jobs that are kept in Redis.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CatchUp, Overlap};
use crate::proto::every::{Every, EveryOrNone};
use crate::proto::graph_plan::GraphPlan;
use crate::proto::window::GraphWindow;

pub const ADDED_MAX: usize = 200;
pub const ADDED_BYTES_MAX: usize = 128 << 10;

/// The graph of a periodic job in Redis: the settings of its jobs are named as the fields of the hash.
pub type CronGraph = GraphPlan<Map<String, Value>>;

/// A periodic job that is kept in Redis, with the keys of a table in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedCron {
    pub schedule: String,
    pub time_zone: String,
    #[serde(default)]
    pub catch_up: CatchUp,
    #[serde(default)]
    pub overlap: Overlap,
    /// The longest delay of its firings, such as `10m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    /// The calendar of the days on which it does not fire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
    /// The receivers of the copies of its job: each firing is a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    #[serde(flatten)]
    pub window: GraphWindow,
    /// The settings of its jobs, named as the fields of the hash; empty for a graph.
    pub job: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<CronGraph>,
    pub by: String,
    /// The time of that, in RFC 3339.
    pub at: String,
}

/// A change of a periodic job in Redis: given settings replace its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CronChange {
    pub schedule: Option<String>,
    pub time_zone: Option<String>,
    pub catch_up: Option<CatchUp>,
    pub overlap: Option<Overlap>,
    /// The longest delay of its firings; `0s` for none.
    pub spread: Option<String>,
    /// The calendar of the days on which it does not fire; empty for none.
    pub calendar: Option<String>,
    /// The receivers of the copies of its job; without them the window goes too.
    pub every: Option<EveryOrNone>,
    pub window: GraphWindow,
    pub job: Map<String, Value>,
    /// The graph of each firing, in place of its script or its graph.
    pub graph: Option<CronGraph>,
}

impl AddedCron {
    #[must_use]
    pub fn with(mut self, change: CronChange) -> Self {
        self.schedule = change.schedule.unwrap_or(self.schedule);
        self.time_zone = change.time_zone.unwrap_or(self.time_zone);
        self.catch_up = change.catch_up.unwrap_or(self.catch_up);
        self.overlap = change.overlap.unwrap_or(self.overlap);
        self.spread = change.spread.or(self.spread);
        self.calendar = change.calendar.or(self.calendar).filter(|name| !name.is_empty());
        if let Some(every) = change.every {
            self.every = every.into();
            self.window = if self.every.is_some() { self.window } else { GraphWindow::default() };
        }
        self.window = self.window.changed_by(change.window).without_zeros();
        let is_script = |field: &&str| change.job.get(*field).is_some_and(|of| !of.is_null());
        if change.graph.is_some() {
            (self.graph, self.job) = (change.graph, Map::new());
        } else if ["script", "uses"].iter().any(is_script) {
            self.graph = None;
        }
        self.job.extend(change.job);
        // A setting that is taken away.
        self.job.retain(|_, value| !value.is_null());
        self
    }
}
