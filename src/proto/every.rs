//! Copies of a job for every machine or actor, also by a periodic job.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::job::{InvalidJob, JobSpec};
use super::window::GraphWindow;
use crate::proto::word_table::words;

words! {
    /// The receivers of the copies of a job.
    #[derive(Deserialize, JsonSchema)]
    Every, "receiver of a copy", "machine or actor";
    /// Every machine with an actor of the type.
    Machine = "machine",
    /// Every actor of the type.
    Actor = "actor",
}

words! {
    /// The receivers that a periodic job gets, or none.
    #[derive(Deserialize, JsonSchema)]
    EveryOrNone;
    /// Every machine with an actor of the type.
    Machine = "machine",
    /// Every actor of the type.
    Actor = "actor",
    /// None: each firing submits one job.
    None = "none",
}

impl From<EveryOrNone> for Option<Every> {
    fn from(chosen: EveryOrNone) -> Self {
        chosen.as_str().parse().ok()
    }
}

/// The batch that each firing of a periodic job submits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CronFleet {
    pub every: Every,
    pub window: GraphWindow,
    /// The longest delay of one of its jobs.
    pub spread: Duration,
}

pub fn check_copied(spec: &JobSpec) -> Result<(), InvalidJob> {
    let refused = |field: &str, why: &str| Err(InvalidJob::new(field, why));
    if spec.unique_key.is_some() || spec.unique_by.is_some() {
        return refused("unique_key", "would leave one copy of a job for every machine");
    }
    if let Some(group) = &spec.group {
        let why = format!("is a label in a job for every machine: where = 'group = \"{group}\"'");
        return refused("group", &why);
    }
    if spec.instance.is_some() {
        return refused("instance", "names one actor, not every machine");
    }
    Ok(())
}
