//! The expressions of `where` in the model: which of them actors know, and whose labels match.

use std::collections::BTreeSet;

use hero::proto::labels::Labels;
use hero::proto::queue::Queue;
use hero::proto::selector::Selector;
use hero::proto::target::SelectorDigest;

use super::reference::Model;
use super::steps::Walk;
use crate::support::{Life, World, keys, script_type};

/// Each expression in its canonical form, and the units whose labels match it.
pub(super) const EXPRESSIONS: [(&str, &[&str]); 3] = [
    ("role = \"web\"", &["osis-default-1", "osis-io-1"]),
    ("role != \"web\"", &["osis-default-2", "sal-default-1"]),
    ("rack > 3 and role in (\"db\", \"web\")", &["osis-default-2", "osis-io-1"]),
];

/// The labels of a unit.
fn labels_of(unit: &str) -> Labels {
    let labels: &[(&str, &str)] = match unit {
        "osis-default-1" => &[("role", "web"), ("rack", "3")],
        "osis-default-2" => &[("role", "db"), ("rack", "4")],
        "osis-io-1" => &[("role", "web"), ("rack", "12")],
        _ => &[],
    };
    let legal = |(name, value): &(&str, &str)| {
        (name.parse().expect("a legal name"), value.parse().expect("a legal value"))
    };
    labels.iter().map(legal).collect()
}

/// Returns the queues of an actor with those of the expressions in Redis that its labels match, in the order of its claims.
pub(super) async fn queues_of(world: &World, life: &Life) -> Vec<Queue> {
    let used =
        world.store.queues().selectors(&life.actor.script_type, 0).await.expect("redis answers");
    let labels = labels_of(&life.actor.unit());
    let matches = |text: &String| text.parse::<Selector>().expect("legal").matches(&labels);
    let digests: Vec<SelectorDigest> =
        used.texts.into_iter().filter(|(_, text)| matches(text)).map(|(of, _)| of).collect();
    life.actor.queues_with(&digests)
}

/// The type and the digest in the name of a queue of an expression.
pub(super) fn of_queue(queue: &str) -> Option<(String, String)> {
    let (of, rest) = queue.strip_prefix("type:")?.split_once(":where:")?;
    Some((of.to_owned(), rest.split(':').next()?.to_owned()))
}

/// The target of a queue of an expression: its name without a priority.
pub(super) fn target_of(queue: &str) -> Option<String> {
    of_queue(queue).map(|(of, digest)| format!("type:{of}:where:{digest}"))
}

impl Model {
    /// A job goes to a queue: actors learn of its expression, if it has one.
    pub(super) fn note_expression(&mut self, queue: &str) {
        if let Some(expression) = of_queue(queue) {
            self.expressions.insert(expression, false);
        }
    }

    /// Returns the queues of the expressions that a unit matches.
    pub(super) fn matched_queues(&self, life: &Life) -> BTreeSet<String> {
        let (unit, own) = (life.actor.unit(), life.actor.script_type.as_str());
        let matched = EXPRESSIONS.iter().filter(|(_, units)| units.contains(&unit.as_str()));
        let digests = matched.map(|(text, _)| SelectorDigest::of_text(text).to_string());
        digests
            .filter(|digest| self.expressions.contains_key(&(own.to_owned(), digest.clone())))
            .map(|digest| format!("type:{own}:where:{digest}"))
            .collect()
    }

    /// Expressions that no job has used for a day are forgotten, unless one stands in a queue of theirs.
    pub(super) fn forget_expressions(&mut self) {
        let lists = self.lists.iter().filter(|(_, ids)| !ids.is_empty()).map(|(queue, _)| queue);
        let ready = self.ready.iter().filter(|(_, ids)| !ids.is_empty()).map(|(queue, _)| queue);
        let used: Vec<_> = lists.chain(ready).filter_map(|queue| of_queue(queue)).collect();
        self.expressions.retain(|expression, is_old| !*is_old || used.contains(expression));
        self.expressions.values_mut().for_each(|is_old| *is_old = false);
    }
}

impl Walk {
    /// A day passes for an expression.
    pub(super) fn age_expression(&mut self) -> String {
        let known = self.model.expressions.keys().cloned().collect();
        let Some((of, digest)) = self.choice(known) else {
            return "no expression to age".to_owned();
        };
        self.world.redis.put(&keys().selectors_used(&script_type(&of)), 1, &digest);
        let said = format!("no job of {of} has had {digest} for a day");
        self.model.expressions.insert((of, digest), true);
        said
    }
}
