//! Brokers against a real RabbitMQ, as real processes.

mod broker_message_flow_test;
mod broker_pool_test;
mod builtins;
mod exact;
mod failures;
mod hostile;
mod isolation;
mod logs;
mod outage;
mod patterns;
mod published;
mod relational;
mod repeats;
mod seen;
mod settings;
mod spool;
pub(crate) mod steps;
mod storm;
mod tls;
mod topology;

use std::collections::BTreeSet;

use hero::amqp::link::Link;
use hero::config::AmqpConfig;
use serde_json::Value;

use crate::support::{Hero, Redis, rabbitmq};

/// A route of messages that fail twice and may pass, and one of messages that never pass.
const LATER_AND_POISON: &str = "\
[[amqp.route]]\nkey = \"adm\"\noperation = \"later\"\ntype = \"osis\"\nscript = '''\n\
let message = json_parse(INPUTS.message);\n\
let attempt = if \"attempt\" in message { message.attempt } else { 0 };\n\
if attempt < 2 { throw \"retry: not yet\"; }\nattempt\n'''\n\
[[amqp.route]]\nkey = \"adm\"\noperation = \"poison\"\ntype = \"osis\"\nscript = 'throw \"no such bill\"'\n";

/// The program on a private Redis and a vhost of its own.
struct Broker {
    hero: Hero,
    redis: Redis,
    url: String,
}

impl Broker {
    /// Returns one in the unified mode, with these tables.
    fn with(tables: &str) -> Self {
        Self::at(&rabbitmq::vhost(), tables)
    }

    fn at(url: &str, tables: &str) -> Self {
        let redis = Redis::start();
        let hero = on(&redis, url, tables);
        Self { hero, redis, url: url.to_owned() }
    }

    /// Adds a setting: its dotted key, and its value in TOML.
    fn set(self, key: &str, value: &str) -> Self {
        Self { hero: self.hero.set(key, value), ..self }
    }

    /// Returns the connections of a publisher.
    fn link(&self) -> Link {
        let config = AmqpConfig { url: self.url.as_str().into(), ..AmqpConfig::default() };
        Link::open(&config, "test").expect("legal settings")
    }

    /// Publishes a message, waits for its answer and returns it.
    #[track_caller]
    fn ask(&self, key: &str, operation: &str, template: &str, data: &str) -> Value {
        let args = ["--json", "amqp", "publish", key, "--type", operation, "--template", template];
        let done = self.hero.run(&[&args[..], &["--data", data, "--wait"]].concat());
        let parsed = serde_json::from_str(&done.stdout);
        parsed.unwrap_or_else(|_| panic!("{key} {operation}: {} {}", done.stdout, done.stderr))
    }

    /// Returns the result of an answer that is no error.
    #[track_caller]
    fn result(&self, key: &str, operation: &str, template: &str, data: &str) -> Value {
        let mut answer = self.ask(key, operation, template, data);
        assert_eq!(answer["ok"], true, "{answer}");
        answer["result"].take()
    }

    /// Returns the document of a command.
    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        let done = self.hero.run(&[&["--json"], args].concat());
        let parsed = serde_json::from_str(&done.stdout);
        parsed.unwrap_or_else(|_| panic!("{args:?}: {} {}", done.stdout, done.stderr))
    }

    /// Returns the queues of the topology that exist, with their consumers.
    #[track_caller]
    fn consumers(&self) -> Vec<(String, u64)> {
        let topology = self.json(&["amqp", "topology"]);
        let queues = topology["queues"].as_array().expect("queues").iter();
        let exist = queues.filter(|queue| queue["exists"] == true);
        exist
            .map(|queue| {
                let name = queue["queue"].as_str().expect("a name").to_owned();
                (name, queue["consumers"].as_u64().expect("a number"))
            })
            .collect()
    }

    /// Returns how many log events wait in all spools.
    fn spooled(&self) -> u64 {
        let status = self.json(&["amqp", "status"]);
        let spooled = status["spooled"].as_object().expect("a table").values();
        spooled.filter_map(Value::as_u64).sum()
    }

    /// Returns the ids of the dead letters.
    #[track_caller]
    fn dead(&self) -> Vec<String> {
        let list = self.json(&["amqp", "dlq", "list"]);
        let letters = list["dead_letters"].as_array().expect("a list").iter();
        letters.map(|one| one["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

fn on(redis: &Redis, url: &str, tables: &str) -> Hero {
    Hero::on(redis)
        .set("amqp.url", &format!("{url:?}"))
        .set("amqp.retry_delays", "[\"20ms\"]")
        .add(tables)
}

/// Reads the correlation ids of all answers in a queue, and leaves them there.
async fn answered(link: &Link, queue: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let Ok(taking) = link.open_queue(queue).await else { return ids };
    let mut held = Vec::new();
    while let Ok(Some(answer)) = taking.next().await {
        ids.extend(answer.properties.correlation_id.clone());
        held.push(answer);
    }
    ids
}
