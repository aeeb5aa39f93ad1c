//! The choice of the part that serves a message: a route of the configuration, else a built-in by the key.

use super::message::{AmqpMessage, MessageFailure};
use super::pattern;
use crate::config::{AmqpConfig, BrokerName, BuiltInName, RouteConfig};

/// The operation that ends the dispatchers.
pub const SHUTDOWN: &str = "shutdown";
/// The template of log events.
pub const LOGGER: &str = "Logger";
/// The routing key of log events.
pub const LOG_KEY: &str = "log";

/// The part that serves a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served<'a> {
    /// The end of all dispatchers is requested.
    Shutdown,
    /// A built-in answers at once.
    BuiltIn(BuiltInName),
    /// It becomes a job by this route, at this place of the list.
    Job(usize, &'a RouteConfig),
}

/// Returns who serves a message that a broker got; in the unified mode there is no broker.
///
/// # Errors
/// [`MessageFailure`] with the code `no_route`.
pub fn serves<'a>(
    config: &'a AmqpConfig,
    broker: Option<BrokerName>,
    message: &AmqpMessage,
) -> Result<Served<'a>, MessageFailure> {
    let mut routes = config.routes.iter().enumerate();
    if let Some((place, route)) = routes.find(|(_, route)| is_for(route, broker, message)) {
        let built_in = route.built_in.map(Served::BuiltIn);
        return Ok(built_in.unwrap_or(Served::Job(place, route)));
    }
    if message.operation == SHUTDOWN {
        return Ok(Served::Shutdown);
    }
    if message.operation == "ping" {
        return Ok(Served::BuiltIn(BuiltInName::Ping));
    }
    let group = message.key.split('.').next().unwrap_or_default();
    match (group, broker) {
        (LOG_KEY, Some(BrokerName::AdminSyslog)) => Ok(Served::BuiltIn(BuiltInName::Journal)),
        (LOG_KEY, _) => Ok(Served::BuiltIn(BuiltInName::Logger)),
        ("rec", _) if message.template == LOGGER => Ok(Served::BuiltIn(BuiltInName::Logger)),
        ("rec", _) => Ok(Served::BuiltIn(BuiltInName::Objects)),
        ("rel", _) => Ok(Served::BuiltIn(BuiltInName::Relational)),
        _ => Err(MessageFailure::lasting(
            "no_route",
            format!(
                "no [[amqp.route]] takes the key {}, the operation {} and the template {}",
                shown(&message.key),
                shown(&message.operation),
                shown(&message.template)
            ),
        )),
    }
}

fn is_for(route: &RouteConfig, broker: Option<BrokerName>, message: &AmqpMessage) -> bool {
    let is = |wanted: &str, own: &str| wanted.is_empty() || wanted == own;
    pattern::takes(&route.key, &message.key)
        && is(&route.operation, &message.operation)
        && is(&route.template, &message.template)
        && (route.broker.is_none() || route.broker == broker)
}

fn shown(text: &str) -> String {
    format!("`{}`", crate::proto::text::shown(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(text: &str) -> AmqpConfig {
        Config::from_toml("hero.toml".as_ref(), text).expect(text).amqp
    }

    fn message(key: &str, operation: &str, template: &str) -> AmqpMessage {
        let text = format!(
            r#"{{"queue":"q","key":"{key}","operation":"{operation}","template":"{template}"}}"#
        );
        serde_json::from_str(&text).expect("a message")
    }

    #[test]
    fn without_routes_the_key_decides() {
        let config = AmqpConfig::default();
        let served =
            |key, operation, template| serves(&config, None, &message(key, operation, template));
        let built_in = |name| Ok(Served::BuiltIn(name));
        assert_eq!(served("any.key", "ping", ""), built_in(BuiltInName::Ping));
        assert_eq!(served("rec.write", "write", "Logger"), built_in(BuiltInName::Logger));
        assert_eq!(served("rec.write", "write", "person"), built_in(BuiltInName::Objects));
        assert_eq!(served("rel.read", "fetch", "orders"), built_in(BuiltInName::Relational));
        assert_eq!(served("log", "write", ""), built_in(BuiltInName::Logger));
        assert_eq!(served("adm", SHUTDOWN, ""), Ok(Served::Shutdown));
        let failure = served("mig", "load", "x").expect_err("nobody");
        assert!(!failure.retryable);
        assert_eq!(
            failure.message,
            "no [[amqp.route]] takes the key `mig`, the operation `load` and the template `x`"
        );
    }

    #[test]
    fn the_first_route_that_takes_a_message_wins() {
        let config = config(
            "[[amqp.route]]\nkey = \"rec.*\"\ntemplate = \"bill\"\ntype = \"osis\"\nscript = \"1\"\n\
             [[amqp.route]]\nkey = \"#\"\noperation = \"write\"\nbuiltin = \"journal\"\n\
             [[amqp.route]]\nkey = \"log\"\nbroker = \"adminGraphBroker\"\ntype = \"osis\"\nscript = \"2\"\n",
        );
        let served = |broker, key, operation, template| {
            serves(&config, broker, &message(key, operation, template)).expect("served")
        };
        assert_eq!(served(None, "rec.write", "write", "bill"), Served::Job(0, &config.routes[0]));
        let journal = Served::BuiltIn(BuiltInName::Journal);
        assert_eq!(served(None, "rec.write", SHUTDOWN, "bill"), Served::Job(0, &config.routes[0]));
        assert_eq!(served(None, "rec.write", "write", "other"), journal);
        let graph = Some(BrokerName::AdminGraph);
        assert_eq!(served(graph, "log", "event", ""), Served::Job(2, &config.routes[2]));
        let logger = Served::BuiltIn(BuiltInName::Logger);
        assert_eq!(served(Some(BrokerName::AdminLogs), "log", "event", ""), logger);
        assert_eq!(served(Some(BrokerName::AdminSyslog), "log", "event", ""), journal);
    }
}
