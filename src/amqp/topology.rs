//! Exchanges, queues and bindings, as a configuration wants them, and the pools that consume them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::route::LOG_KEY;
use crate::config::{AmqpConfig, AmqpMode, BrokerName, Node, QueueKind};

/// The exchange of all events.
pub const EVENTS: &str = "beds.events";
pub const DEAD_LETTERS: &str = "beds.dlx";
/// The exchange that reports something to every broker of a vhost.
pub const CONTROL: &str = "beds.control";
/// The queue whose one message says which tag and mode this vhost has.
pub const OWNER: &str = "beds.owner";
/// The exchanges, with their types in the words of the protocol.
pub const EXCHANGES: [(&str, &str); 3] =
    [(EVENTS, "topic"), (DEAD_LETTERS, "direct"), (CONTROL, "fanout")];

/// A durable queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmqpQueue {
    pub name: String,
    /// Texts and whole numbers.
    pub arguments: BTreeMap<&'static str, Value>,
    /// The exchange and the key that bring it messages; `None` for the default exchange alone.
    pub binding: Option<(&'static str, String)>,
}

/// A queue with consumers, and its lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub queue: AmqpQueue,
    /// The retry lanes, from the shortest delay on.
    pub lanes: Vec<AmqpQueue>,
    pub dead: AmqpQueue,
    /// The routing key of its dead letters, in the exchange of dead letters.
    pub dead_key: String,
}

impl Work {
    /// Returns its queues in the order of declaration: the dead letters before all that may
    /// send them something.
    pub fn queues(&self) -> impl Iterator<Item = &AmqpQueue> {
        [&self.dead].into_iter().chain(&self.lanes).chain([&self.queue])
    }

    /// Returns the lane of a failed delivery, counted from 0.
    pub fn lane(&self, attempt: u32) -> Option<&AmqpQueue> {
        let last = self.lanes.len().saturating_sub(1);
        self.lanes.get(usize::try_from(attempt).unwrap_or(last).min(last))
    }
}

/// The dispatchers of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The broker; `None` in the unified mode.
    pub broker: Option<BrokerName>,
    pub work: Work,
    /// The number of dispatchers.
    pub size: usize,
}

impl Pool {
    pub fn name(&self) -> &'static str {
        self.broker.map_or("dispatcher", BrokerName::as_str)
    }
}

/// Returns the pools of a node; in the unified mode the one pool that every node has.
pub fn pools(config: &AmqpConfig, node: Option<Node>) -> Vec<Pool> {
    match config.mode {
        AmqpMode::Unified => {
            let work = work(config, "events", "#", true, false);
            vec![Pool { broker: None, work, size: config.dispatchers }]
        }
        AmqpMode::Matrix => {
            let brokers = BrokerName::ALL.iter().filter(|broker| Some(broker.node()) == node);
            brokers.flat_map(|broker| pools_of(config, *broker)).collect()
        }
    }
}

fn pools_of(config: &AmqpConfig, broker: BrokerName) -> impl Iterator<Item = Pool> {
    let size = config.pool_of(broker);
    let keys = broker.keys().iter().filter(move |_| size > 0);
    keys.map(move |key| {
        let work = work_of(config, broker, key);
        Pool { broker: Some(broker), work, size }
    })
}

fn work_of(config: &AmqpConfig, broker: BrokerName, key: &str) -> Work {
    let is_log = key == LOG_KEY;
    // Each of the three must see every event: the first has the queue of the document, each other one
    // of its own with the same key.
    match broker {
        BrokerName::AdminSyslog | BrokerName::AdminGraph => {
            work(config, &format!("{key}.{}", broker.as_str()), key, true, false)
        }
        _ => work(config, key, key, is_log, is_log),
    }
}

/// Returns every queue that a configuration may have on any node.
pub fn all_work(config: &AmqpConfig) -> Vec<Work> {
    let nodes: Vec<Option<Node>> = match config.mode {
        AmqpMode::Unified => vec![None],
        AmqpMode::Matrix => Node::ALL.into_iter().map(Some).collect(),
    };
    let mut seen = BTreeSet::new();
    let pools = nodes.into_iter().flat_map(|node| pools(config, node));
    pools.map(|pool| pool.work).filter(|work| seen.insert(work.queue.name.clone())).collect()
}

/// Returns one queue with its lanes. `name` follows the tag, `key` is the key of its binding. With `is_direct` the lanes
/// return to the queue itself, since another queue has its key too.
fn work(config: &AmqpConfig, name: &str, key: &str, is_direct: bool, is_bounded: bool) -> Work {
    let tag = &config.queue_tag;
    let kind = |arguments: &mut BTreeMap<&'static str, Value>| {
        if config.queue_type == QueueKind::Quorum {
            arguments.insert("x-queue-type", "quorum".into());
        }
    };
    let queue_name = format!("{tag}{name}");
    let dead_key = format!("{name}.dlq");
    let mut arguments = BTreeMap::from([
        ("x-dead-letter-exchange", DEAD_LETTERS.into()),
        ("x-dead-letter-routing-key", dead_key.as_str().into()),
    ]);
    kind(&mut arguments);
    if is_bounded && config.log_length_max > 0 {
        arguments.insert("x-max-length", config.log_length_max.into());
        arguments.insert("x-overflow", "reject-publish".into());
    }
    let queue =
        AmqpQueue { name: queue_name.clone(), arguments, binding: Some((EVENTS, key.to_owned())) };
    let back = if is_direct { ("", queue_name.as_str()) } else { (EVENTS, key) };
    let lane = |(number, delay): (usize, Duration)| {
        let suffix = if number == 0 { String::new() } else { format!(".{}", number + 1) };
        let millis = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        let mut arguments = BTreeMap::from([
            ("x-dead-letter-exchange", back.0.into()),
            ("x-dead-letter-routing-key", back.1.into()),
            ("x-message-ttl", millis.into()),
        ]);
        kind(&mut arguments);
        AmqpQueue { name: format!("{queue_name}.retry{suffix}"), arguments, binding: None }
    };
    let lanes = config.retry_delays.iter().map(|delay| delay.0).enumerate().map(lane).collect();
    let mut arguments = BTreeMap::new();
    kind(&mut arguments);
    let binding = Some((DEAD_LETTERS, dead_key.clone()));
    let dead = AmqpQueue { name: format!("{queue_name}.dlq"), arguments, binding };
    Work { queue, lanes, dead, dead_key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(text: &str) -> AmqpConfig {
        Config::from_toml("hero.toml".as_ref(), text).expect(text).amqp
    }

    #[test]
    fn the_unified_mode_has_one_queue_for_every_key() {
        let config = config("[amqp]\nqueue_tag = \"qa_\"\ndispatchers = 3\n");
        let pools = pools(&config, None);
        let [pool] = pools.as_slice() else { panic!("{pools:?}") };
        assert_eq!((pool.size, pool.work.queue.name.as_str()), (3, "qa_events"));
        assert_eq!(pool.work.queue.binding, Some((EVENTS, "#".to_owned())));
        let lane = &pool.work.lanes[0];
        assert_eq!(lane.arguments["x-dead-letter-exchange"], "");
        let back = Value::from("qa_events");
        assert_eq!(lane.arguments["x-dead-letter-routing-key"], back);
    }

    #[test]
    fn the_matrix_has_the_queues_of_the_document_to_the_letter() {
        let config = config("[amqp]\nmode = \"matrix\"\n");
        let names: Vec<String> =
            all_work(&config).into_iter().map(|work| work.queue.name).collect();
        assert_eq!(
            names,
            [
                "prod_rec.read",
                "prod_rel.read",
                "prod_rec.write",
                "prod_rel.write",
                "prod_rec.obj",
                "prod_rel.obj",
                "prod_adm",
                "prod_log",
                "prod_log.adminSyslogBroker",
                "prod_mig"
            ]
        );
        let of_node = |node| -> Vec<(String, String)> {
            let pools = pools(&config, Some(node));
            pools
                .iter()
                .map(|pool| (pool.name().to_owned(), pool.work.queue.name.clone()))
                .collect()
        };
        let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(a, b)| ((*a).to_owned(), format!("prod_{b}"))).collect()
        };
        assert_eq!(
            of_node(Node::AppServer),
            pairs(&[
                ("rBroker", "rec.read"),
                ("rBroker", "rel.read"),
                ("wBroker", "rec.write"),
                ("wBroker", "rel.write"),
                ("mBroker", "rec.obj"),
                ("mBroker", "rel.obj"),
            ])
        );
        assert_eq!(
            of_node(Node::Admin),
            pairs(&[
                ("adminBrokerIn", "adm"),
                ("adminBrokerOut", "adm"),
                ("adminLogsBroker", "log"),
                ("adminSyslogBroker", "log.adminSyslogBroker"),
            ])
        );
        assert_eq!(of_node(Node::Segundo), pairs(&[("whBroker", "mig"), ("cBroker", "mig")]));
        assert_eq!(
            of_node(Node::Tercero),
            pairs(&[
                ("uBroker", "rec.read"),
                ("uBroker", "rec.write"),
                ("sBroker", "rec.read"),
                ("sBroker", "rec.write"),
            ])
        );
    }

    #[test]
    fn failures_have_lanes_and_dead_letters_as_the_document_names_them() {
        let config = config("[amqp]\nmode = \"matrix\"\nretry_delays = [\"1s\", \"10s\"]\n");
        let pools = pools(&config, Some(Node::AppServer));
        let work = &pools[0].work;
        let names: Vec<&str> = work.queues().map(|queue| queue.name.as_str()).collect();
        let queue = "prod_rec.read";
        let all = ["dlq", "retry", "retry.2"].map(|end| format!("{queue}.{end}"));
        assert_eq!(names[..3], all);
        assert_eq!(names[3], queue);
        let text = |text: &str| Value::from(text);
        assert_eq!(work.queue.arguments["x-dead-letter-exchange"], text("beds.dlx"));
        assert_eq!(work.queue.arguments["x-dead-letter-routing-key"], text("rec.read.dlq"));
        assert_eq!(work.dead.binding, Some((DEAD_LETTERS, "rec.read.dlq".to_owned())));
        let lane = &work.lanes[1].arguments;
        assert_eq!(lane["x-message-ttl"], 10_000);
        assert_eq!(lane["x-dead-letter-exchange"], text("beds.events"));
        assert_eq!(lane["x-dead-letter-routing-key"], text("rec.read"));
        let names = [0, 1, 2, 99].map(|attempt| work.lane(attempt).expect("a lane").name.clone());
        assert_eq!(names, [&all[1], &all[2], &all[2], &all[2]].map(Clone::clone));
    }

    #[test]
    fn where_several_queues_have_a_key_a_retry_returns_to_its_own() {
        let config = config("[amqp]\nmode = \"matrix\"\nlog_length_max = 9\n");
        let pools = pools(&config, Some(Node::Admin));
        let text = |text: &str| Value::from(text);
        for (at, name) in [(2, "prod_log"), (3, "prod_log.adminSyslogBroker")] {
            let work = &pools[at].work;
            assert_eq!(work.queue.name, name);
            assert_eq!(work.queue.binding, Some((EVENTS, "log".to_owned())));
            assert_eq!(work.lanes[0].arguments["x-dead-letter-exchange"], text(""));
            assert_eq!(work.lanes[0].arguments["x-dead-letter-routing-key"], text(name));
        }
        assert_eq!(pools[2].work.queue.arguments["x-overflow"], "reject-publish");
        assert_eq!(pools[3].work.queue.arguments.get("x-overflow"), None);
    }

    #[test]
    fn quorum_queues_are_asked_for_by_their_type_alone() {
        let config = config("[amqp]\nqueue_type = \"quorum\"\n");
        let pools = pools(&config, None);
        let is_quorum =
            |queue: &AmqpQueue| queue.arguments.get("x-queue-type") == Some(&Value::from("quorum"));
        assert!(pools[0].work.queues().all(is_quorum));
        let classic = super::pools(&AmqpConfig::default(), None);
        assert!(
            !classic[0].work.queues().any(|queue| queue.arguments.contains_key("x-queue-type"))
        );
    }
}
