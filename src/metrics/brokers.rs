//! Metrics of the brokers of RabbitMQ. There are none where no broker has run in the last day.

use super::float;
use super::text::{Exposition, Kind};
use crate::store::BrokerPresence;
use crate::view::Snapshot;

/// The servers that a broker needs.
const SERVERS: [&str; 3] = ["rabbitmq", "redis", "mariadb"];

/// Writes them. Brokers and queues beyond the bound have no series.
pub(super) fn write(text: &mut Exposition, snapshot: &Snapshot, most: usize) {
    if snapshot.brokers.is_empty() {
        return;
    }
    let live = snapshot.live_brokers().count();
    let states = [("live", live), ("gone", snapshot.brokers.len() - live)];
    let states = states.map(|(state, number)| (state, float(number as u64)));
    text.family(
        ("hero_amqp_brokers", Kind::Gauge, "Brokers of RabbitMQ by state."),
        "state",
        states,
    );
    let brokers: Vec<(String, &BrokerPresence)> =
        snapshot.live_brokers().take(most).map(|of| (of.name(), of)).collect();
    messages(text, &brokers);
    each(text, &brokers);
    outages(text, &brokers);
    let help = "Dead letters in RabbitMQ, by the queue that they come from.";
    let dead = snapshot.amqp_dead_letters().into_iter().take(most);
    let dead = dead.map(|(queue, number)| (queue, float(number)));
    text.family(("hero_amqp_dead_letters", Kind::Gauge, help), "queue", dead);
}

fn messages(text: &mut Exposition, brokers: &[(String, &BrokerPresence)]) {
    let help = "Messages of RabbitMQ, by routing key and end, since the broker started.";
    text.metric("hero_amqp_messages", Kind::Counter, help);
    for (name, of) in brokers {
        for (key, ends) in &of.messages {
            for (end, number) in ends {
                let labels =
                    [("broker", name.as_str()), ("key", key.as_str()), ("end", end.as_str())];
                text.sample(&labels, float(*number));
            }
        }
    }
}

/// A metric of each broker: its name, kind, help and value.
type BrokerMetric = (&'static str, Kind, &'static str, fn(&BrokerPresence) -> u64);

const EACH: [BrokerMetric; 7] = [
    ("hero_amqp_dispatchers", Kind::Gauge, "Dispatchers of a broker.", |of| of.dispatchers),
    ("hero_amqp_dispatchers_consuming", Kind::Gauge, "Those that consume.", |of| of.consuming),
    ("hero_amqp_in_work", Kind::Gauge, "Messages that a broker serves now.", |of| of.in_work),
    ("hero_amqp_answers", Kind::Counter, "Answers that were published.", |of| of.answers),
    ("hero_amqp_answers_dropped", Kind::Counter, "Answers that were dropped.", |of| {
        of.answers_dropped
    }),
    ("hero_amqp_spooled_log_events", Kind::Gauge, "Log events in the spool.", |of| of.spooled),
    (
        "hero_amqp_log_events_lost",
        Kind::Counter,
        "Log events that are neither published nor kept.",
        |of| of.log_events_lost,
    ),
];

fn each(text: &mut Exposition, brokers: &[(String, &BrokerPresence)]) {
    for (metric, kind, help, value) in EACH {
        let values = brokers.iter().map(|(name, of)| (name.as_str(), float(value(of))));
        text.family((metric, kind, help), "broker", values);
    }
}

fn outages(text: &mut Exposition, brokers: &[(String, &BrokerPresence)]) {
    let help = "How long a server has been away for a broker; 0 if it is not.";
    text.metric("hero_amqp_outage_seconds", Kind::Gauge, help);
    for (name, of) in brokers {
        for server in SERVERS {
            let seconds = of.outages.get(server).copied().unwrap_or_default();
            text.sample(&[("broker", name), ("server", server)], float(seconds));
        }
    }
}
