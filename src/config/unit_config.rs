//! `[unit.NAME]`: the settings of units, by their names.

use serde::{Deserialize, Serialize};

use crate::proto::target::{Group, Instance, ScriptType};

/// `[unit.NAME]`: the settings of one unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct UnitConfig {
    /// The role of the unit; its name or `actors` decide without one.
    pub role: Option<Role>,
    /// The number of jobs that run at once, for each of its actors without its own.
    pub tasks: Option<usize>,
    /// The actors of this process, for a unit whose name is not an actor's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actors: Vec<UnitActor>,
}

/// The role of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs jobs.
    Actor,
    /// Runs schedules, recovery and migration.
    Supervisor,
    /// Takes messages from RabbitMQ.
    Broker,
}

/// One actor of a unit with several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { type = \"osis\", instance = 1 }")]
pub struct UnitActor {
    /// Its script type.
    #[serde(rename = "type")]
    pub script_type: ScriptType,
    /// Its group.
    #[serde(default)]
    pub group: Group,
    /// Its number within the group.
    pub instance: Instance,
    /// The number of jobs that run at once; the unit's without one.
    pub tasks: Option<usize>,
}
