//! Legacy queues and circles of rhailib: their configuration, and its form for the scripts on the
//! server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::target::{ActorId, Group, IllegalName, Instance, ScriptType, name};

/// One legacy queue and the target of its jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { legacy = \"…\", type = \"osis\" }")]
pub struct LegacyQueue {
    /// The full key of the list in Redis.
    pub legacy: String,
    /// The script type of its jobs.
    #[serde(rename = "type")]
    pub script_type: ScriptType,
    /// The group of its jobs.
    #[serde(default)]
    pub group: Group,
    /// The instance of its jobs; any of the group without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}

impl LegacyQueue {
    /// Returns whether an actor takes jobs from this queue.
    pub fn is_for(&self, actor: &ActorId) -> bool {
        self.script_type == actor.script_type
            && self.group == actor.group
            && self.instance.is_none_or(|instance| instance == actor.instance)
    }

    /// Returns the entry of this queue in the Lua table of the scripts.
    pub(super) fn lua(&self) -> String {
        let Self { legacy, script_type, group, instance } = self;
        let instance = instance.map(|instance| instance.to_string()).unwrap_or_default();
        format!(
            "{{ list = '{legacy}', type = '{script_type}', group = '{group}', \
             instance = '{instance}' }}"
        )
    }
}

name!(
    /// The name of a circle of rhailib.
    Circle,
    "circle",
    "1 to 64 of A-Z, a-z, 0-9, _, . and -",
    is_old_name
);

/// Returns whether a name is legal as the last part of a legacy queue, or as a circle.
pub(super) fn is_old_name(name: &[u8]) -> bool {
    (1..=64).contains(&name.len())
        && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// One circle of rhailib and the script type of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { circle = \"…\", type = \"osis\" }")]
pub struct RhailibCircle {
    /// The name of the circle.
    pub circle: Circle,
    /// The script type of its tasks.
    #[serde(rename = "type")]
    pub script_type: ScriptType,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(instance: Option<u16>) -> LegacyQueue {
        LegacyQueue {
            legacy: "hero:work_queue:w1".to_owned(),
            script_type: "osis".parse().expect("legal"),
            group: Group::default(),
            instance: instance.map(|number| Instance::try_from(number).expect("legal")),
        }
    }

    #[test]
    fn a_legacy_queue_is_for_its_group_or_for_its_instance_alone() {
        let actor = |unit| ActorId::from_unit(unit).expect("legal");
        assert!(queue(None).is_for(&actor("osis-default-7")));
        assert!(queue(Some(7)).is_for(&actor("osis-default-7")));
        assert!(!queue(Some(7)).is_for(&actor("osis-default-8")));
        assert!(!queue(None).is_for(&actor("osis-io-7")));
        assert!(!queue(None).is_for(&actor("sal-default-7")));
    }

    #[test]
    fn a_circle_is_a_plain_name() {
        assert!("main".parse::<Circle>().is_ok());
        for illegal in ["", "a:b", "a b", "a'b", "{a}"] {
            assert!(illegal.parse::<Circle>().is_err(), "{illegal} was accepted");
        }
    }
}
