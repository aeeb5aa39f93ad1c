//! `[unit.NAME]`: the settings of units, by their names.

use serde::{Deserialize, Serialize};

use crate::config::key_row::key_table;
use crate::config::toml_table::toml_table;
use crate::proto::labels::Labels;
use crate::proto::target::{Group, Instance, ScriptType};

toml_table! {
    /// Units: settings of one process, `hero run NAME` and the unit `hero@NAME.service`. None is required: the name
    /// `supervisor` is the supervisor, `broker` and `broker-NODE` take messages from RabbitMQ, and a name of the
    /// form TYPE-GROUP-INSTANCE, such as `osis-default-1`, is that actor. Any other name needs a table, with a role
    /// or with actors. Another role and other actors need a restart.
    ///
    /// One actor that runs more jobs at once than the others:
    ///
    ///     [unit.osis-default-1]
    ///     tasks = 8
    ///
    /// One process with several actors. The group (`default`) and tasks are optional, here and at each actor:
    ///
    ///     [unit.mixed]
    ///     role = "actor"
    ///     tasks = 2
    ///     actors = [
    ///         { type = "osis", group = "default", instance = 1, tasks = 4 },
    ///         { type = "sal", group = "io", instance = 3 },
    ///     ]
    ///
    /// Another supervisor, and a broker, with names of their own:
    ///
    ///     [unit.second]
    ///     role = "supervisor"
    ///
    ///     [unit.mail]
    ///     role = "broker"
    pub struct UnitConfig in "unit.NAME" {
        /// The role of the process.
        role: Option<Role> = None => OneOf(&["actor", "supervisor", "broker"]);
        /// Jobs that run at once, for each actor of the unit that does not set it.
        tasks: Option<usize> = None => Number(1, 1024);
        /// Labels of the actors of the unit, beside `[actor.labels]` and in place of labels there with the same name.
        #[serde(skip_serializing_if = "Labels::is_empty")]
        labels: Labels = Labels::new() => Labels;
    } with {
        /// The actors of this process, for a unit whose name is not an actor's.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub actors: Vec<UnitActor> = Vec::new(),
    }
}

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

key_table! {
    /// The actors of the process, for a unit that is not named after an actor.
    UNIT_ACTORS = "unit.NAME.actors", list;

    /// The script type.
    type: Text;

    /// The group, `default` without one.
    group: Text;

    /// The number of the instance within the group.
    instance: Number(1, 65_535);

    /// Jobs that run at once; without it, the number of the unit.
    tasks: Number(1, 1024);
}

/// One actor of a unit with several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { type = \"osis\", instance = 1 }")]
pub struct UnitActor {
    #[serde(rename = "type")]
    pub script_type: ScriptType,
    #[serde(default)]
    pub group: Group,
    pub instance: Instance,
    pub tasks: Option<usize>,
}
