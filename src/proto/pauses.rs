//! The pauses: queues by their names, and rules for queues that may come later.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::queue::Queue;
use super::target::{Group, IllegalName, ScriptType};

/// A rule that pauses all queues, or the queues of a script type, of a group, or of both, also queues that come later.
///
/// Written as `*`, `type:T:*`, `type:*:group:G:*` or `type:T:group:G:*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PauseRule {
    /// The script type; any without one.
    pub script_type: Option<ScriptType>,
    /// The group; any, and queues without a group, without one.
    pub group: Option<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pauses {
    pub queues: BTreeSet<Queue>,
    pub rules: BTreeSet<PauseRule>,
}

impl PauseRule {
    const FORM: &'static str = "*, type:T:*, type:*:group:G:* or type:T:group:G:*";

    pub fn covers(&self, queue: &Queue) -> bool {
        let is_of = |only: &ScriptType| queue.target.script_type() == only;
        let has_group = |only: &Group| queue.target.group_name() == Some(only);
        self.script_type.as_ref().is_none_or(is_of) && self.group.as_ref().is_none_or(has_group)
    }

    pub fn includes(&self, other: &Self) -> bool {
        self.script_type.as_ref().is_none_or(|only| other.script_type.as_ref() == Some(only))
            && self.group.as_ref().is_none_or(|only| other.group.as_ref() == Some(only))
    }

    pub fn words(&self) -> String {
        match (&self.script_type, &self.group) {
            (None, None) => "all queues".to_owned(),
            (Some(of), None) => format!("all queues of type {of}"),
            (None, Some(group)) => format!("all queues of group {group}"),
            (Some(of), Some(group)) => format!("all queues of type {of} and group {group}"),
        }
    }

    /// Returns the command that ends it.
    pub fn resume(&self) -> String {
        let mut command = "hero queue resume".to_owned();
        match (&self.script_type, &self.group) {
            (None, None) => command.push_str(" --all"),
            (of, group) => {
                command.extend(of.iter().map(|of| format!(" --type {of}")));
                command.extend(group.iter().map(|group| format!(" --group {group}")));
            }
        }
        command
    }
}

impl Pauses {
    /// Reads the names of queues and rules. Others are left out.
    pub fn of_names(names: &[String]) -> Self {
        Self {
            queues: names.iter().filter_map(|name| name.parse().ok()).collect(),
            rules: names.iter().filter_map(|name| name.parse().ok()).collect(),
        }
    }

    pub fn names(&self) -> Vec<String> {
        let rules = self.rules.iter().map(ToString::to_string);
        rules.chain(self.queues.iter().map(ToString::to_string)).collect()
    }

    pub fn covers(&self, queue: &Queue) -> bool {
        self.queues.contains(queue) || self.rules.iter().any(|rule| rule.covers(queue))
    }
}

impl fmt::Display for PauseRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.script_type, &self.group) {
            (None, None) => f.write_str("*"),
            (Some(of), None) => write!(f, "type:{of}:*"),
            (None, Some(group)) => write!(f, "type:*:group:{group}:*"),
            (Some(of), Some(group)) => write!(f, "type:{of}:group:{group}:*"),
        }
    }
}

impl FromStr for PauseRule {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let parts: Vec<&str> = value.split(':').collect();
        let (script_type, group) = match parts.as_slice() {
            ["*"] => (None, None),
            ["type", of, "*"] => (Some(of.parse()?), None),
            ["type", "*", "group", group, "*"] => (None, Some(group.parse()?)),
            ["type", of, "group", group, "*"] => (Some(of.parse()?), Some(group.parse()?)),
            _ => return Err(IllegalName::new("pause", value, Self::FORM)),
        };
        Ok(Self { script_type, group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written_and_pause_queues_of_type_and_group() {
        let queue = |name: &str| -> Queue { name.parse().expect("legal") };
        for (rule, covered, others) in [
            ("*", &["type:osis", "type:sal:group:io:inst:1:prio:2"][..], &[][..]),
            ("type:osis:*", &["type:osis", "type:osis:group:io:prio:0"], &["type:sal"]),
            ("type:*:group:io:*", &["type:sal:group:io:inst:2"], &["type:sal", "type:sal:group:a"]),
            ("type:sal:group:io:*", &["type:sal:group:io"], &["type:osis:group:io", "type:sal"]),
        ] {
            let pauses = Pauses::of_names(&[rule.to_owned()]);
            assert_eq!(pauses.names(), [rule]);
            assert!(covered.iter().all(|name| pauses.covers(&queue(name))), "{rule}");
            assert!(!others.iter().any(|name| pauses.covers(&queue(name))), "{rule}");
        }
        assert!("type:osis".parse::<PauseRule>().is_err());
        let all = PauseRule::default();
        let of = |name: &str| -> PauseRule { name.parse().expect("legal") };
        assert!(all.includes(&of("type:sal:*")) && !of("type:sal:*").includes(&all));
        let both: PauseRule = "type:sal:group:io:*".parse().expect("legal");
        assert_eq!(both.resume(), "hero queue resume --type sal --group io");
    }
}
