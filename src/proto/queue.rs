//! Work queues: their names, and their order for an actor.

use std::fmt;
use std::str::FromStr;

use super::target::{ActorId, IllegalName, Priority, SelectorDigest, Target};
use super::text::did_you_mean;

/// One work queue: a target at a priority. Written as its target, with `:prio:N` unless the
/// priority is normal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue {
    pub target: Target,
    pub priority: Priority,
}

impl Queue {
    const FORM: &'static str =
        "type:T, type:T:group:G, type:T:group:G:inst:I or type:T:where:DIGEST, with :prio:N";

    /// Returns the queues of a name: one if it has a priority, else one of each priority.
    pub fn all_named(name: &str) -> Result<Vec<Self>, IllegalName> {
        let queue: Self = name.parse()?;
        if name.contains(":prio:") {
            return Ok(vec![queue]);
        }
        Ok(queue.all_of_its_name())
    }

    /// Returns the same of a name that a person gave.
    ///
    /// # Errors
    /// Why it is none, with the name that is near.
    pub fn all_with_suggestion(name: &str) -> Result<Vec<Self>, String> {
        Self::all_named(name).map_err(|error| {
            let with_type = format!("type:{name}");
            let near = Self::all_named(&with_type).is_ok().then_some(with_type.as_str());
            format!("{error}{}", did_you_mean(near))
        })
    }

    /// Returns the queues that its own name means: all priorities of its target, unless the name ends with one.
    pub fn all_of_its_name(&self) -> Vec<Self> {
        if self.priority != Priority::Normal {
            return vec![self.clone()];
        }
        let of = |priority| Self { target: self.target.clone(), priority };
        Priority::ALL.into_iter().map(of).collect()
    }
}

impl ActorId {
    /// Returns the nine queues of this actor in the order of its claims: for each priority its
    /// own, its group's, its type's.
    pub fn queues(&self) -> Vec<Queue> {
        self.queues_with(&[])
    }

    /// Returns the targets of this actor, the narrowest first: its own, of expressions that it matches, its
    /// group's, its type's.
    pub fn targets_with(&self, matched: &[SelectorDigest]) -> Vec<Target> {
        let of = &self.script_type;
        let own = Target::instance(of.clone(), self.group.clone(), self.instance);
        let matched = matched.iter().map(|digest| Target::matching(of.clone(), digest.clone()));
        let wide = [Target::group(of.clone(), self.group.clone()), Target::any(of.clone())];
        [own].into_iter().chain(matched).chain(wide).collect()
    }

    /// Returns the queues of these targets in the order of its claims.
    pub fn queues_with(&self, matched: &[SelectorDigest]) -> Vec<Queue> {
        let targets = self.targets_with(matched);
        Priority::ALL
            .into_iter()
            .flat_map(|priority| {
                targets.iter().map(move |target| Queue { target: target.clone(), priority })
            })
            .collect()
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)?;
        match self.priority {
            Priority::Normal => Ok(()),
            other => write!(f, ":prio:{other}"),
        }
    }
}

impl FromStr for Queue {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let (target, priority) = match value.rsplit_once(":prio:") {
            Some((target, priority)) => (target, priority.parse()?),
            None => (value, Priority::Normal),
        };
        let parts: Vec<&str> = target.split(':').collect();
        let target = match parts.as_slice() {
            ["type", script_type] => Target::any(script_type.parse()?),
            ["type", script_type, "group", group] => {
                Target::group(script_type.parse()?, group.parse()?)
            }
            ["type", script_type, "group", group, "inst", instance] => {
                Target::instance(script_type.parse()?, group.parse()?, instance.parse()?)
            }
            ["type", script_type, "where", digest] => {
                Target::matching(script_type.parse()?, digest.parse()?)
            }
            _ => return Err(IllegalName::new("queue", value, Self::FORM)),
        };
        Ok(Self { target, priority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::target::Instance;
    use proptest::prelude::*;

    #[test]
    fn a_name_without_a_priority_means_the_queues_of_all_priorities() {
        let named = |name: &str| -> Vec<String> {
            Queue::all_named(name).expect("legal").iter().map(Queue::to_string).collect()
        };
        assert_eq!(named("type:osis"), ["type:osis:prio:0", "type:osis", "type:osis:prio:2"]);
        assert_eq!(named("type:osis:group:io:prio:1"), ["type:osis:group:io"]);
        assert!(Queue::all_named("osis").is_err());
    }

    fn actor(unit: &str) -> ActorId {
        ActorId::from_unit(unit).expect("a legal unit name")
    }

    #[test]
    fn an_actor_reads_instance_then_group_then_type_for_each_priority() {
        let queues: Vec<String> = actor("sal-io-3").queues().iter().map(Queue::to_string).collect();
        assert_eq!(
            queues,
            [
                "type:sal:group:io:inst:3:prio:0",
                "type:sal:group:io:prio:0",
                "type:sal:prio:0",
                "type:sal:group:io:inst:3",
                "type:sal:group:io",
                "type:sal",
                "type:sal:group:io:inst:3:prio:2",
                "type:sal:group:io:prio:2",
                "type:sal:prio:2",
            ]
        );
    }

    #[test]
    fn expressions_that_an_actor_matches_come_after_its_own_queue_and_before_its_group() {
        let digest = SelectorDigest::of_text("role = \"web\"");
        let queues = actor("sal-io-3").queues_with(std::slice::from_ref(&digest));
        let queues: Vec<String> = queues.iter().map(Queue::to_string).collect();
        let matched = format!("type:sal:where:{digest}");
        assert_eq!(queues.len(), 12);
        assert_eq!(
            queues[4..8],
            ["type:sal:group:io:inst:3", &matched, "type:sal:group:io", "type:sal"]
        );
        assert_eq!(queues[1], format!("{matched}:prio:0"));
    }

    proptest! {
        #[test]
        fn every_queue_reads_back_as_it_is_written(
            script_type in "[a-z][a-z0-9_]{0,31}",
            group in proptest::option::of("[a-z0-9][a-z0-9_.-]{0,63}"),
            instance in proptest::option::of(1i64..=65_535),
            selector in proptest::option::of("[a-z =]{1,9}"),
            priority in 0usize..3,
        ) {
            let queue = Queue {
                target: Target::of(
                    script_type.parse().expect("legal"),
                    group.map(|group| group.parse().expect("legal")),
                    instance.map(|number| Instance::try_from(number).expect("legal")),
                    selector.map(|text| SelectorDigest::of_text(&text)),
                ),
                priority: Priority::ALL[priority],
            };
            prop_assert_eq!(queue.to_string().parse(), Ok(queue));
        }
    }
}
