//! The differences between a queue of the topology and the queue that RabbitMQ has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::topology::AmqpQueue;
use crate::proto::text::shown;

/// A queue as RabbitMQ has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundQueue {
    pub arguments: BTreeMap<String, Value>,
    /// The exchanges and keys that bring it messages, without the default exchange.
    pub bindings: BTreeSet<(String, String)>,
}

/// Returns the differences between an existing queue and the wanted queue, a sentence each.
pub fn differences(wanted: &AmqpQueue, found: &FoundQueue) -> Vec<String> {
    let name = &wanted.name;
    let mut sentences = Vec::new();
    let of_found = found.arguments.iter().filter(|argument| !is_default(argument));
    let of_found: BTreeMap<&str, String> =
        of_found.map(|(name, value)| (name.as_str(), text_of(value))).collect();
    let of_wanted: BTreeMap<&str, String> =
        wanted.arguments.iter().map(|(name, value)| (*name, text_of(value))).collect();
    let names: BTreeSet<&str> = of_found.keys().chain(of_wanted.keys()).copied().collect();
    for argument in names {
        let (found, wanted) = (of_found.get(argument), of_wanted.get(argument));
        if found != wanted {
            let found = found.map_or("not set".to_owned(), |text| shown(text));
            let wanted = wanted.map_or("none".to_owned(), |text| shown(text));
            let argument = shown(argument);
            sentences.push(format!("{name}: {argument} is {found}, configured is {wanted}"));
        }
    }
    if let Some((exchange, key)) = unbound(wanted, found) {
        sentences.push(format!(
            "{name}: is not bound to {exchange} by {key}; its broker binds it within a minute"
        ));
    }
    let wanted = wanted.binding.as_ref().map(|(exchange, key)| (*exchange, key.as_str()));
    let is_wanted =
        |(exchange, key): &&(String, String)| wanted == Some((exchange.as_str(), key.as_str()));
    for (exchange, key) in found.bindings.iter().filter(|binding| !is_wanted(binding)) {
        let (exchange, key) = (shown(exchange), shown(key));
        sentences.push(format!("{name}: is bound to {exchange} by {key} too"));
    }
    sentences
}

/// Returns the binding that a queue lacks, its exchange and key.
pub fn unbound<'a>(wanted: &'a AmqpQueue, found: &FoundQueue) -> Option<(&'static str, &'a str)> {
    let (exchange, key) = wanted.binding.as_ref()?;
    let is_wanted = |(of, by): &(String, String)| (of.as_str(), by) == (*exchange, key);
    (!found.bindings.iter().any(is_wanted)).then_some((*exchange, key.as_str()))
}

/// A vhost may write its default type into each queue.
fn is_default((name, value): &(&String, &Value)) -> bool {
    *name == "x-queue-type" && *value == "classic"
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::topology::EVENTS;
    use serde_json::json;

    #[test]
    fn each_argument_and_each_binding_that_differs_is_named() {
        let wanted = AmqpQueue {
            name: "q".to_owned(),
            arguments: [
                ("x-message-ttl", 20.into()),
                ("x-dead-letter-exchange", "beds.dlx".into()),
                ("x-overflow", "reject-publish".into()),
            ]
            .into(),
            binding: Some((EVENTS, "log".to_owned())),
        };
        let argument = |name: &str, value: Value| (name.to_owned(), value);
        let binding = |key: &str| (EVENTS.to_owned(), key.to_owned());
        let mut found = FoundQueue {
            arguments: [
                argument("x-message-ttl", json!(20)),
                argument("x-dead-letter-exchange", json!("beds.dlx")),
                argument("x-overflow", json!("reject-publish")),
                argument("x-queue-type", json!("classic")),
            ]
            .into(),
            bindings: [binding("log")].into(),
        };
        assert_eq!(differences(&wanted, &found), Vec::<String>::new());
        found.arguments.insert("x-message-ttl".to_owned(), json!(1000));
        found.arguments.insert("x-expires".to_owned(), json!(5));
        found.arguments.remove("x-overflow");
        found.bindings = [binding("#")].into();
        assert_eq!(
            differences(&wanted, &found),
            [
                "q: x-expires is 5, configured is none",
                "q: x-message-ttl is 1000, configured is 20",
                "q: x-overflow is not set, configured is reject-publish",
                "q: is not bound to beds.events by log; its broker binds it within a minute",
                "q: is bound to beds.events by # too",
            ]
        );
    }
}
