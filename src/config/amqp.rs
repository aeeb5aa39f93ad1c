//! `[amqp]`: the RabbitMQ that brokers take messages from, and who serves them.

mod logs;
mod nodes;
mod relational;
mod route;
mod url;

pub use logs::LogsConfig;
pub use nodes::{AmqpMode, BrokerName, Node};
pub use relational::{
    ColumnType, RelationalAddress, RelationalConfig, RelationalServer, RelationalUrl, SqlName,
    TableConfig,
};
pub use route::{AckMode, AmqpDelay, BuiltInName, RouteConfig};
pub use url::AmqpUrl;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config_error::{ConfigError, Fault, KeyPath};
use super::connection::{Password, TlsFiles, password_of, read_pem};
use super::types::TypeConfig;
use super::units;
use crate::config::toml_table::toml_table;
use crate::proto::object::Context;
use crate::proto::target::ScriptType;

/// Tags that begin so let a broker delete messages when it starts.
const DEV_TAG: &str = "dev_";
/// The maximum number of retry lanes of a queue.
const LANES_MAX: usize = 8;

toml_table! {
    /// `[amqp]`: RabbitMQ, for units with the role `broker`.
    pub struct AmqpConfig {
        /// The address: `amqp://USER@HOST:PORT/VHOST`, or `amqps` for TLS. Empty for none.
        pub url: AmqpUrl = AmqpUrl::default(),
        /// The file with the password; the systemd credential without one.
        #[serde(with = "super::connection::empty_is_none")]
        pub password_file: Option<PathBuf> = None,
        /// The certificate authority of RabbitMQ, in PEM; by default the authorities of the system.
        #[serde(with = "super::connection::empty_is_none")]
        pub tls_ca_file: Option<PathBuf> = None,
        /// The management API, `http://HOST:PORT`, with the login of `url`; empty for none.
        pub management_url: String = String::new(),
        /// The beginning of the name of every queue.
        pub queue_tag: String = "prod_".to_owned(),
        /// One queue for all keys, or one per key.
        pub mode: AmqpMode = AmqpMode::Unified,
        /// The node of the matrix whose brokers run here, unless the name of the unit says it.
        pub node: Option<Node> = None,
        /// The dispatchers of the unified mode.
        pub dispatchers: usize = 4,
        /// The dispatchers of each broker of the matrix; 0 to not start it.
        pub brokers: BTreeMap<BrokerName, usize> = BTreeMap::new(),
        /// The maximum number of messages that a dispatcher holds.
        pub prefetch: u16 = 64,
        /// The kind of the queues.
        pub queue_type: QueueKind = QueueKind::Classic,
        /// The maximum number of deliveries of a message after the first that failed.
        pub max_retries: u32 = 3,
        /// The wait before each further delivery; the last one counts for all that follow.
        pub retry_delays: Vec<AmqpDelay> = [1, 10, 60]
            .map(|seconds| AmqpDelay(Duration::from_secs(seconds)))
            .to_vec(),
        /// The largest body of a message, in bytes.
        #[serde(with = "units::size")]
        pub message_size_max: u64 = 1 << 20,
        /// The maximum number of messages in a queue of log events: RabbitMQ rejects more; 0 for no bound.
        pub log_length_max: u32 = 0,
        /// The longest time that RabbitMQ waits for an acknowledgement, as it is configured there.
        #[serde(with = "units::duration")]
        pub consumer_timeout: Duration = Duration::from_mins(30),
        /// The time between two looks at the queues and bindings.
        #[serde(with = "units::duration")]
        pub topology_interval: Duration = Duration::from_mins(1),
        /// The routing keys that accept the operation `shutdown`.
        pub shutdown_keys: Vec<String> = vec!["adm".to_owned()],
        /// The context of the objects that messages read and write.
        pub context: String = String::new(),
        /// Publishes a log event for each message that is served.
        pub trace_on: bool = false,
        /// Deletes the messages of the queues and the log records when a broker starts; for tags of
        /// development only.
        pub purge_on_start: bool = false,
        /// `[amqp.logs]`.
        pub logs: LogsConfig = LogsConfig::default(),
        /// `[amqp.relational]`.
        pub relational: RelationalConfig = RelationalConfig::default(),
        /// `[[amqp.route]]`: who serves which messages.
        #[serde(rename = "route", skip_serializing_if = "Vec::is_empty")]
        pub routes: Vec<RouteConfig> = Vec::new(),
    }
}

/// The kind of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueKind {
    /// On one node of RabbitMQ.
    #[default]
    Classic,
    /// Replicated among nodes of RabbitMQ.
    Quorum,
}

impl AmqpConfig {
    /// Reads the password from `password_file`, else from the systemd credential `amqp-password`; `None`
    /// without either.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`].
    pub fn password(&self) -> Result<Option<Password>, ConfigError> {
        password_of("the RabbitMQ password from", self.password_file.as_deref(), "amqp-password")
    }

    /// Reads the files for TLS; `None` if the url does not ask for TLS.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`].
    pub fn tls(&self) -> Result<Option<TlsFiles>, ConfigError> {
        if !self.url.is_tls() {
            return Ok(None);
        }
        let authorities = match &self.tls_ca_file {
            Some(file) => Some(read_pem("the certificate authority of RabbitMQ from", file)?),
            None => None,
        };
        Ok(Some(TlsFiles { authorities, ..TlsFiles::default() }))
    }

    /// Returns the name of this tag in this vhost in Redis's keys.
    pub fn scope(&self) -> String {
        format!("{}@{}", self.queue_tag, self.url.vhost())
    }

    /// Returns the number of dispatchers of a broker of the matrix.
    pub fn pool_of(&self, broker: BrokerName) -> usize {
        let default = usize::from(broker != BrokerName::AdminGraph || self.names(broker));
        self.brokers.get(&broker).copied().unwrap_or(default)
    }

    /// Returns true if a route is for this broker alone.
    fn names(&self, broker: BrokerName) -> bool {
        self.routes.iter().any(|route| route.broker == Some(broker))
    }

    /// Rejects settings that cannot work together.
    pub(super) fn check(&self, types: &BTreeMap<ScriptType, TypeConfig>) -> Result<(), Fault> {
        let key = |name| KeyPath::of(&["amqp", name]);
        self.url.check().map_err(|reason| Fault::new(key("url"), reason))?;
        if self.tls_ca_file.is_some() && !self.url.is_tls() {
            let message = "is for TLS, but amqp.url does not begin with amqps";
            return Err(Fault::new(key("tls_ca_file"), message));
        }
        if !self.management_url.is_empty() && !is_management(&self.management_url) {
            let message = "must be of the form http://HOST:PORT";
            return Err(Fault::new(key("management_url"), message));
        }
        let is_tag_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if !(1..=32).contains(&self.queue_tag.len()) || !self.queue_tag.bytes().all(is_tag_byte) {
            let message = "must be 1 to 32 of A-Z, a-z, 0-9, _, . and -, such as \"prod_\"";
            return Err(Fault::new(key("queue_tag"), message));
        }
        if self.purge_on_start && !self.queue_tag.starts_with(DEV_TAG) {
            let message = format!("deletes messages: amqp.queue_tag must begin with {DEV_TAG}");
            return Err(Fault::new(key("purge_on_start"), message).or(key("queue_tag")));
        }
        self.check_brokers()?;
        self.relational.check()?;
        self.logs.check()?;
        if !(1..=LANES_MAX).contains(&self.retry_delays.len()) {
            let message = format!("must have from 1 to {LANES_MAX} durations");
            return Err(Fault::new(key("retry_delays"), message));
        }
        if let Some(place) = self.shutdown_keys.iter().position(|key| !route::is_pattern(key)) {
            let message = "must be words joined by dots, each of them a word, * or #";
            return Err(Fault::new(key("shutdown_keys").then(place), message));
        }
        if !self.retry_delays.is_sorted() {
            return Err(Fault::new(key("retry_delays"), "must not become shorter"));
        }
        let is_context = self.context.parse::<Context>().is_ok();
        if !is_context || self.context.chars().any(char::is_control) {
            return Err(Fault::new(key("context"), "must be at most 256 bytes of text"));
        }
        for (index, route) in self.routes.iter().enumerate() {
            let table = key("route").then(index);
            route.check(&table, types)?;
            if let (AckMode::End, Some(timeout)) = (route.ack, route.timeout)
                && timeout.0 >= self.consumer_timeout
            {
                let message = "must be less than amqp.consumer_timeout where ack = \"end\"";
                return Err(Fault::new(table.then("timeout"), message).or(table));
            }
            if (route.ack, route.timeout) == (AckMode::End, None) {
                let message = "needs a timeout below amqp.consumer_timeout where ack = \"end\"";
                return Err(Fault::new(table.then("ack"), message).or(table));
            }
        }
        Ok(())
    }

    fn check_brokers(&self) -> Result<(), Fault> {
        /// The maximum number of dispatchers of one pool.
        const POOL_MAX: usize = 64;
        if let Some((broker, size)) = self.brokers.iter().find(|(_, size)| **size > POOL_MAX) {
            let key = KeyPath::of(&["amqp", "brokers", broker.as_str()]);
            return Err(Fault::new(key, format!("must be from 0 to {POOL_MAX}, not {size}")));
        }
        let graph = BrokerName::AdminGraph;
        if self.brokers.get(&graph).is_some_and(|size| *size > 0) && !self.names(graph) {
            let key = KeyPath::of(&["amqp", "brokers", graph.as_str()]);
            let message = format!("needs a route with broker = \"{}\"", graph.as_str());
            return Err(Fault::new(key, message));
        }
        Ok(())
    }
}

/// Returns true for `http://HOST:PORT`.
fn is_management(url: &str) -> bool {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let is_plain = rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@".contains(&byte));
    let port = rest.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    is_plain && port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn refusal(text: &str) -> String {
        Config::from_toml("hero.toml".as_ref(), text).expect_err(text).to_string()
    }

    #[test]
    fn wrong_settings_are_rejected_with_their_place() {
        for (text, expected) in [
            ("url = \"redis://host\"", "2:7: amqp.url has an unknown scheme"),
            ("queue_tag = \"a b\"", "2:13: amqp.queue_tag must be 1 to 32 of"),
            ("purge_on_start = true", "2:18: amqp.purge_on_start deletes messages: amqp.queue_tag"),
            ("tls_ca_file = \"/a\"", "amqp.tls_ca_file is for TLS"),
            ("retry_delays = []", "2:16: amqp.retry_delays must have from 1 to 8"),
            ("retry_delays = [\"2s\", \"1s\"]", "amqp.retry_delays must not become shorter"),
            ("topology_interval = \"0s\"", "amqp.topology_interval must be from 1s to"),
            ("shutdown_keys = [\"a..b\"]", "amqp.shutdown_keys[0] must be words joined by dots"),
            ("prefetch = 0", "2:12: amqp.prefetch must be from 1 to 10000, not 0"),
            ("brokers.rBroker = 65", "2:19: amqp.brokers.rBroker must be from 0 to 64, not 65"),
            ("brokers.adminGraphBroker = 1", "needs a route with broker = \"adminGraphBroker\""),
            ("management_url = \"https://h:1\"", "management_url must be of the form http://"),
            ("management_url = \"http://h\"", "management_url must be of the form http://"),
            ("management_url = \"http://h:1/api\"", "management_url must be of the form http://"),
            ("mode = \"both\"", "2:8: amqp.mode: expected"),
            ("node = \"quarto\"", "2:8: amqp.node: expected"),
        ] {
            let error = refusal(&format!("[amqp]\n{text}"));
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn routes_that_cannot_be_followed_are_rejected_with_their_place() {
        for (text, expected) in [
            ("key = \"rec..read\"", "2:7: amqp.route[0].key must be words joined by dots"),
            ("key = \"rec.r*\"", "amqp.route[0].key must be words"),
            ("key = \"log\"", "1:1: amqp.route[0].type needs a type with a script, uses, or"),
            (
                "uses = \"bill\"\ntype = \"osis\"",
                "3:8: amqp.route[0].type cannot be set beside uses",
            ),
            ("uses = \"bill\"\nscript = \"1\"", "amqp.route[0].script cannot be set beside uses"),
            ("uses = \"Bill\"", "NAME or NAME@VERSION"),
            ("type = \"ruby\"\nscript = \"1\"", "2:8: amqp.route[0].type must be a configured"),
            ("type = \"osis\"", "amqp.route[0].script needs either a script or a script_file"),
            ("builtin = \"ping\"\nscript = \"1\"", "amqp.route[0].script cannot be set beside"),
            ("type = \"osis\"\nscript_file = \"a\"", "script_file must be an absolute path"),
            ("type = \"osis\"\nscript = \"1\"\nack = \"end\"", "ack needs a timeout below"),
            (
                "type = \"osis\"\nscript = \"1\"\nack = \"end\"\ntimeout = \"1h\"",
                "timeout must be less than amqp.consumer_timeout",
            ),
        ] {
            let error = refusal(&format!("[[amqp.route]]\n{text}"));
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_scope_has_tag_and_vhost() {
        let config = AmqpConfig { url: "amqp://u@host/prod".into(), ..AmqpConfig::default() };
        assert_eq!(config.scope(), "prod_@prod");
    }

    #[test]
    fn every_broker_of_a_node_runs_once_but_one_without_a_route() {
        let config = AmqpConfig::default();
        let started = |node| -> Vec<&str> {
            let all = BrokerName::ALL.iter().filter(|broker| broker.node() == node);
            all.filter(|one| config.pool_of(**one) > 0).map(|one| one.as_str()).collect()
        };
        assert_eq!(started(Node::AppServer), ["rBroker", "wBroker", "mBroker"]);
        let admin = ["adminBrokerIn", "adminBrokerOut", "adminLogsBroker", "adminSyslogBroker"];
        assert_eq!(started(Node::Admin), admin);
        assert_eq!(started(Node::Segundo), ["whBroker", "cBroker"]);
        assert_eq!(started(Node::Tercero), ["uBroker", "sBroker"]);
    }
}
