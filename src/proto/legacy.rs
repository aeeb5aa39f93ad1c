//! Legacy queues and circles of rhailib: their configuration, and its form for the scripts on the
//! server.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::pattern;
use super::target::{ActorId, Group, IllegalName, Instance, ScriptType, is_word, name};

/// One legacy queue and the target of its jobs. In the configuration it may be its key alone; its jobs
/// are then of the type `osis`, since the jobs of the older dispatcher were Rhai.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyQueue {
    /// The full key of the list in Redis, or a pattern of such keys, with `*` for any text.
    pub legacy: String,
    #[serde(rename = "type")]
    pub script_type: ScriptType,
    #[serde(default)]
    pub group: Group,
    /// The instance of its jobs; any of the group without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}

impl LegacyQueue {
    pub fn is_for(&self, actor: &ActorId) -> bool {
        self.script_type == actor.script_type
            && self.group == actor.group
            && self.instance.is_none_or(|instance| instance == actor.instance)
    }

    /// Returns whether it stands for all queues whose keys match it.
    pub fn is_pattern(&self) -> bool {
        self.legacy.contains('*')
    }

    /// Returns the queue with this key, if it is one of those that this pattern stands for.
    pub fn with_key(&self, key: &str) -> Option<Self> {
        let is_one = self.is_pattern() && pattern::matches(&self.legacy, key);
        is_one.then(|| Self { legacy: key.to_owned(), ..self.clone() })
    }

    /// Returns the entry of this queue in the Lua table of the scripts. A pattern is one of Lua.
    pub(super) fn lua(&self) -> String {
        let Self { legacy, script_type, group, instance } = self;
        let instance = instance.map(|instance| instance.to_string()).unwrap_or_default();
        let (field, legacy) = if self.is_pattern() {
            let parts: Vec<String> = legacy.split('*').map(literally).collect();
            ("match", format!("^{}$", parts.join(".*")))
        } else {
            ("list", legacy.clone())
        };
        format!(
            "{{ {field} = '{legacy}', type = '{script_type}', group = '{group}', \
             instance = '{instance}' }}"
        )
    }
}

/// Returns a text as a pattern of Lua that matches it alone.
fn literally(text: &str) -> String {
    let escape = |c: char| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("%{c}") };
    text.chars().map(escape).collect()
}

impl<'de> Deserialize<'de> for ConfiguredQueue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct KeyOrTable;

        impl<'de> Visitor<'de> for KeyOrTable {
            type Value = ConfiguredQueue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key, or a table such as { legacy = \"…\", type = \"osis\" }")
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<ConfiguredQueue, E> {
                let script_type = DEFAULT_TYPE.parse().map_err(E::custom)?;
                let (legacy, group) = (key.to_owned(), Group::default());
                Ok(ConfiguredQueue(LegacyQueue { legacy, script_type, group, instance: None }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ConfiguredQueue, A::Error> {
                let table = de::value::MapAccessDeserializer::new(map);
                LegacyQueue::deserialize(table).map(ConfiguredQueue)
            }
        }

        from.deserialize_any(KeyOrTable)
    }
}

pub fn queues<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<LegacyQueue>, D::Error> {
    let queues = Vec::<ConfiguredQueue>::deserialize(from)?;
    Ok(queues.into_iter().map(|queue| queue.0).collect())
}

struct ConfiguredQueue(LegacyQueue);

/// The script type of a queue that is configured by its key alone.
const DEFAULT_TYPE: &str = "osis";

name!(
    /// The name of a circle of rhailib, or a pattern of names, with `*` for any text.
    Circle,
    "circle",
    "1 to 128 of A-Z, a-z, 0-9, _, ., -, @ and :, and * for any text",
    |name| is_old_name(name, true)
);

impl Circle {
    /// Returns whether it stands for all circles whose names match it.
    pub fn is_pattern(&self) -> bool {
        self.as_str().contains('*')
    }
}

/// Returns whether a name is legal as the last part of a legacy queue, or as a circle.
pub(super) fn is_old_name(name: &[u8], is_pattern: bool) -> bool {
    is_word(name, 128, if is_pattern { b"_.-@:*" } else { b"_.-@:" })
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { circle = \"…\", type = \"osis\" }")]
pub struct RhailibCircle {
    pub circle: Circle,
    #[serde(rename = "type")]
    pub script_type: ScriptType,
}

impl RhailibCircle {
    /// Returns the circle with this name, if it is one of those that this pattern stands for.
    pub fn with_name(&self, name: &Circle) -> Option<Self> {
        let is_one =
            self.circle.is_pattern() && pattern::matches(self.circle.as_str(), name.as_str());
        is_one.then(|| Self { circle: name.clone(), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(instance: Option<i64>) -> LegacyQueue {
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
    fn a_circle_has_a_name_without_quotes_and_braces() {
        assert!("main".parse::<Circle>().is_ok());
        let key = "02".repeat(33);
        for legal in ["a:b", "w@host:7", key.as_str(), "team-*"] {
            assert!(legal.parse::<Circle>().is_ok(), "{legal} was rejected");
        }
        for illegal in ["", "a b", "a'b", "{a}"] {
            assert!(illegal.parse::<Circle>().is_err(), "{illegal} was accepted");
        }
    }

    #[test]
    fn a_pattern_stands_for_the_queues_that_match_it() {
        let pattern = LegacyQueue { legacy: "hero:work_queue:a.*".to_owned(), ..queue(None) };
        assert!(pattern.lua().starts_with("{ match = '^hero%:work%_queue%:a%..*$', type = 'osis'"));
        let found = pattern.with_key("hero:work_queue:a.b@c").expect("it matches");
        assert_eq!((found.legacy.as_str(), found.is_pattern()), ("hero:work_queue:a.b@c", false));
        assert_eq!(pattern.with_key("hero:work_queue:b"), None);
        assert_eq!(queue(None).with_key("hero:work_queue:w1"), None, "it is no pattern");
    }
}
