//! `[amqp]`: the RabbitMQ that brokers take messages from, and who serves them.

mod logs;
mod nodes;
mod relational;
mod route;
mod url;

pub use logs::LogsConfig;
pub use nodes::{AmqpMode, BrokerName, Node};
pub(super) use relational::RELATIONAL_TABLE;
pub use relational::{
    ColumnType, RelationalAddress, RelationalConfig, RelationalServer, RelationalUrl, SqlName,
    TableConfig,
};
pub use route::{AckMode, BuiltInName, RouteConfig};
pub use url::AmqpUrl;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config_error::{ConfigError, Fault, KeyPath, check_each};
use super::connection::{Password, TlsFiles, empty_is_none, password_of, read_pem};
use super::key_row::{DAY, KIB, MIB, SECOND, TEN_YEARS};
use super::redis_url::host_and_port;
use super::types::TypeConfig;
use super::units::{FileDuration, duration, size};
use crate::config::toml_table::toml_table;
use crate::proto::object::Context;
use crate::proto::target::{ScriptType, is_word};

/// Tags that begin so let a broker delete messages when it starts.
const DEV_TAG: &str = "dev_";
/// The maximum number of retry lanes of a queue.
const LANES_MAX: usize = 8;

toml_table! {
    /// RabbitMQ, for units with the role `broker`. docs/amqp.md has the topology and examples.
    pub struct AmqpConfig in "amqp", restart {
        /// Where: `amqp://USER@HOST:PORT/VHOST`, or `amqps` for TLS. Without a vhost it is `/`. Empty: no RabbitMQ.
        ///
        ///     amqp.url = "amqp://hero@127.0.0.1:5672/prod"
        url: AmqpUrl = AmqpUrl::default() => Text;
        /// The file with the password. Without one, the systemd credential `amqp-password` if the unit has one, else
        /// the password of the url.
        password_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// The certificate authority of RabbitMQ, or RabbitMQ's own certificate, in PEM; by default the authorities of the
        /// system.
        tls_ca_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// The management API, `http://HOST:PORT` or `https://HOST:PORT`, for `hero amqp check`: it lists bindings, and all arguments of a
        /// queue. The login is in the url; its user needs the tag `management`. Empty: none.
        ///
        ///     amqp.management_url = "http://127.0.0.1:15672"
        management_url: String = String::new() => Text;
        /// The beginning of the name of every queue. A vhost has one tag: environments that share a RabbitMQ need a
        /// vhost each.
        queue_tag: String = "prod_".to_owned() => Text;
        /// `unified`: one queue for all keys. `matrix`: one queue per key, consumed by the brokers of the nodes.
        mode: AmqpMode = AmqpMode::Unified => OneOf(&["unified", "matrix"]);
        /// The node of this machine, in the matrix. The unit `broker-NODE` is of NODE without this key.
        ///
        ///     amqp.node = "admin"
        node: Option<Node> = None => OneOf(&["appServer", "admin", "segundo", "tercero"]);
        /// The consumers of the unified queue.
        dispatchers: usize = 4 => Number(1, 64);
        /// In the matrix, the consumers of each queue of a broker, 1 unless given; with 0 the broker does not start.
        /// `adminGraphBroker` needs a route that names it.
        ///
        ///     amqp.brokers = { rBroker = 4, wBroker = 2, cBroker = 0 }
        brokers: BTreeMap<BrokerName, usize> = BTreeMap::new() => Form;
        /// The most messages that one consumer holds. It begins with 16, and takes more while it has free slots for
        /// them.
        prefetch: u16 = 64 => Number(1, 10_000);
        /// The queues: `classic`, durable on one node of RabbitMQ, or `quorum`, replicated.
        queue_type: QueueKind = QueueKind::Classic => OneOf(&["classic", "quorum"]);
        /// The number of redeliveries of a message with a temporary failure.
        max_retries: u32 = 3 => Number(0, 1000);
        /// The delay before each redelivery; the last one is also the delay of all further ones.
        retry_delays: Vec<FileDuration> = [1, 10, 60]
            .map(|seconds| FileDuration(Duration::from_secs(seconds)))
            .to_vec() => Durations(10, DAY);
        /// The largest body of a message.
        message_size_max: u64 as "size" = 1 << 20 => Size(KIB, 64 * MIB);
        /// The most messages in the queue of log events; RabbitMQ rejects more. 0: no bound.
        log_length_max: u32 = 0 => Number(0, (1 << 32) - 1);
        /// The longest time that RabbitMQ waits for an acknowledgement, as it is configured there.
        consumer_timeout: Duration as "duration" = Duration::from_mins(30) => Duration(SECOND, DAY);
        /// The time between two looks at the queues and bindings; removed ones are declared again.
        topology_interval: Duration as "duration" = Duration::from_mins(1)
            => Duration(SECOND, TEN_YEARS);
        /// The routing keys that accept the operation `shutdown`.
        shutdown_keys: Vec<String> = vec!["adm".to_owned()] => Texts;
        /// The queues that may get answers, as patterns in which `*` is any text: `reply_to` of a message that names another
        /// one gets none. The broker publishes with its own login, so a user of RabbitMQ reaches by it every queue that
        /// these patterns have. Direct replies (`amq.rabbitmq.reply-to`) are always sent.
        reply_queues: Vec<String> = vec!["*".to_owned()] => Texts;
        /// The context of the objects that messages read and write.
        context: String = String::new() => Text;
        /// Publishes a log event for each message that is served.
        trace_on: bool = false => Flag;
        /// Deletes the messages of its queues when a broker starts, and the log records when one starts that stores
        /// them, for tags that begin with `dev_`.
        purge_on_start: bool = false => Flag;
    } with {
        /// `[amqp.logs]`.
        pub logs: LogsConfig = LogsConfig::default(),
        /// `[amqp.relational]`.
        pub relational: RelationalConfig = RelationalConfig::default(),
        /// `[[amqp.route]]`: who serves which messages.
        #[serde(rename = "route", skip_serializing_if = "Vec::is_empty")]
        pub routes: Vec<RouteConfig> = Vec::new(),
    }
}

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
    pub fn password(&self) -> Result<Option<Password>, ConfigError> {
        password_of("the RabbitMQ password from", self.password_file.as_deref(), "amqp-password")
    }

    /// Reads the files for TLS; `None` if the url does not ask for TLS.
    pub fn tls(&self) -> Result<Option<TlsFiles>, ConfigError> {
        if !self.url.is_tls() {
            return Ok(None);
        }
        let read = |file: &PathBuf| read_pem("the certificate authority of RabbitMQ from", file);
        let authorities = self.tls_ca_file.as_ref().map(read).transpose()?;
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

    pub(super) fn check(&self, types: &BTreeMap<ScriptType, TypeConfig>) -> Result<(), Fault> {
        let own = KeyPath::of(&["amqp"]);
        self.url.check().map_err(|reason| Fault::new(own.then("url"), reason))?;
        let is_tls = self.url.is_tls() || self.management_url.starts_with("https:");
        if self.tls_ca_file.is_some() && !is_tls {
            return own.wrong("tls_ca_file", "is for TLS, but amqp.url does not begin with amqps");
        }
        if !self.management_url.is_empty() && !is_management(&self.management_url) {
            return own.wrong(
                "management_url",
                "must be of the form http://HOST:PORT or https://HOST:PORT",
            );
        }
        if !is_word(self.queue_tag.as_bytes(), 32, b"_-.") {
            let form = "must be 1 to 32 of A-Z, a-z, 0-9, _, . and -, such as \"prod_\"";
            return own.wrong("queue_tag", form);
        }
        if self.purge_on_start && !self.queue_tag.starts_with(DEV_TAG) {
            let message = format!("deletes messages: amqp.queue_tag must begin with {DEV_TAG}");
            return Err(Fault::new(own.then("purge_on_start"), message).or(own.then("queue_tag")));
        }
        self.check_brokers()?;
        self.relational.check()?;
        self.logs.check()?;
        if !(1..=LANES_MAX).contains(&self.retry_delays.len()) {
            return own.wrong("retry_delays", format!("must have from 1 to {LANES_MAX} durations"));
        }
        let message = "must be words joined by dots, each of them a word, * or #";
        check_each(&self.shutdown_keys, &own.then("shutdown_keys"), route::is_pattern, message)?;
        if !self.retry_delays.is_sorted() {
            return own.wrong("retry_delays", "must not become shorter");
        }
        let is_context = self.context.parse::<Context>().is_ok();
        if !is_context || self.context.chars().any(char::is_control) {
            return own.wrong("context", "must be at most 256 bytes of text");
        }
        for (index, route) in self.routes.iter().enumerate() {
            let table = own.then("route").then(index);
            route.check(&table, types)?;
            if let (AckMode::End, Some(timeout)) = (route.ack, route.timeout)
                && timeout.0 >= self.consumer_timeout
            {
                let message = "must be less than amqp.consumer_timeout where ack = \"end\"";
                return table.wrong("timeout", message);
            }
            if (route.ack, route.timeout) == (AckMode::End, None) {
                let message = "needs a timeout below amqp.consumer_timeout where ack = \"end\"";
                return table.wrong("ack", message);
            }
        }
        Ok(())
    }

    fn check_brokers(&self) -> Result<(), Fault> {
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
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let rest = rest.unwrap_or_default();
    let is_plain = rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@".contains(&byte));
    is_plain && host_and_port(rest, 0).is_some_and(|(_, port)| port > 0)
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
            ("management_url = \"ftp://h:1\"", "management_url must be of the form http://"),
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
