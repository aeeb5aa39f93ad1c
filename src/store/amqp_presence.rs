//! The presence of brokers of RabbitMQ: each notes its state with its heartbeat.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Store, StoreError};

/// A broker of this age is gone.
const GONE_AFTER: Duration = Duration::from_secs(15);
/// The time that the state of a broker that is gone is kept.
const KEPT: Duration = Duration::from_hours(24);

/// The state of one process with the role `broker`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokerPresence {
    pub unit: String,
    /// Its machine.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// The node of the matrix whose brokers it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The dispatchers that it should have, and those that consume.
    pub dispatchers: u64,
    /// See `dispatchers`.
    pub consuming: u64,
    /// The messages that are being served.
    pub in_work: u64,
    /// The messages since its start, by routing key and end: `job`, `done`, `retried`, `dead`.
    pub messages: BTreeMap<String, BTreeMap<String, u64>>,
    /// Answers that were published, and those that were dropped.
    pub answers: u64,
    /// See `answers`.
    pub answers_dropped: u64,
    /// Log events that wait in its spool.
    pub spooled: u64,
    /// Log events that are neither published nor kept.
    pub log_events_lost: u64,
    /// The seconds since the last of these was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_ago_s: Option<u64>,
    /// The dead letters in RabbitMQ, by the queue that has them, of the queues that it consumes.
    pub dead_letters: BTreeMap<String, u64>,
    /// The seconds since RabbitMQ, Redis or MariaDB went away, by name.
    pub outages: BTreeMap<String, u64>,
    /// When this was noted, in microseconds of Redis's clock.
    pub at_us: i64,
    /// The seconds since then.
    #[serde(skip_deserializing)]
    pub seen_ago_s: u64,
    /// False if its heartbeat is late.
    #[serde(skip_deserializing)]
    pub is_alive: bool,
}

impl BrokerPresence {
    /// Returns its name: `{unit}@{host}`.
    pub fn name(&self) -> String {
        format!("{}@{}", self.unit, self.host)
    }

    /// Returns the number of messages with this end.
    pub fn ended(&self, end: &str) -> u64 {
        self.messages.values().filter_map(|ends| ends.get(end)).sum()
    }
}

impl Store {
    /// Notes the state of a broker, at the time of Redis.
    pub async fn note_broker(
        &self,
        scope: &str,
        presence: &BrokerPresence,
    ) -> Result<(), StoreError> {
        const DOING: &str = "noting the state of a broker";
        let document = serde_json::to_string(presence).unwrap_or_default();
        let arguments = (scope, presence.name(), document, KEPT.as_secs());
        self.run_script::<u64>(DOING, &self.scripts.amqp_appear, arguments).await.map(drop)
    }

    /// Forgets the state of a broker that ends in order.
    pub async fn forget_broker(&self, scope: &str, name: &str) -> Result<(), StoreError> {
        let arguments = (self.keys.amqp_brokers(scope), name);
        self.link.command("forgetting the state of a broker", "HDEL", arguments).await
    }

    /// Returns the state of each broker of a scope, by name.
    pub async fn brokers(&self, scope: &str) -> Result<Vec<BrokerPresence>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys.amqp_brokers(scope));
        let found: BTreeMap<String, String> =
            self.link.query("reading the state of brokers", &command).await?;
        let now_us = self.now().await?.as_microsecond();
        let gone_us = i64::try_from(GONE_AFTER.as_micros()).unwrap_or(i64::MAX);
        let parsed = found.values().filter_map(|document| {
            let (at_us, document) = document.split_once(' ')?;
            let mut presence: BrokerPresence = serde_json::from_str(document).ok()?;
            presence.at_us = at_us.parse().ok()?;
            let age_us = now_us.saturating_sub(presence.at_us).max(0);
            presence.seen_ago_s = u64::try_from(age_us / 1_000_000).unwrap_or_default();
            presence.is_alive = age_us < gone_us;
            Some(presence)
        });
        Ok(parsed.collect())
    }
}
