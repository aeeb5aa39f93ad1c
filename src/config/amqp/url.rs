//! `amqp.url`: the address of RabbitMQ. Its password is never printed.

use crate::config::redis_url::host_and_port;
use crate::config::secret_url::secret_url;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

const SCHEME: &str = "amqp://";
const TLS_SCHEME: &str = "amqps://";
const PORT: u16 = 5672;

/// The address of RabbitMQ, empty for none. Its password is never printed.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct AmqpUrl(String);
secret_url!(AmqpUrl);

impl AmqpUrl {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the url with its password, for the connection, never for a message.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_tls(&self) -> bool {
        self.0.starts_with(TLS_SCHEME)
    }

    /// Returns the url with `***` for the password: all between the first `:` and the last `@`, and all
    /// parameters.
    pub fn redacted(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let Some((scheme, rest)) = self.split() else { return "***".to_owned() };
        let (login, rest) = rest.rsplit_once('@').map_or(("", rest), |(login, rest)| (login, rest));
        let user = login.split([':', '?', '/']).next().unwrap_or_default();
        let login = match login {
            "" => String::new(),
            login if login == user => format!("{user}@"),
            _ => format!("{user}:***@"),
        };
        let (rest, parameters) =
            rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?***"));
        format!("{scheme}{login}{rest}{parameters}")
    }

    /// Returns the virtual host: `/` without one.
    pub fn vhost(&self) -> String {
        let rest = self.split().map_or("", |(_, rest)| rest);
        let address = rest.rsplit_once('@').map_or(rest, |(_, address)| address);
        let address = address.split('?').next().unwrap_or_default();
        let Some((_, vhost)) = address.split_once('/') else { return "/".to_owned() };
        percent_decode_str(vhost).decode_utf8_lossy().into_owned()
    }

    fn split(&self) -> Option<(&'static str, &str)> {
        [SCHEME, TLS_SCHEME]
            .into_iter()
            .find_map(|scheme| Some((scheme, self.0.strip_prefix(scheme)?)))
    }

    /// Rejects a url that cannot be connected to. The error follows the key in a message.
    pub(super) fn check(&self) -> Result<(), String> {
        const FORM: &str = "the form is amqp://USER@HOST:PORT/VHOST";
        if self.0.is_empty() {
            return Ok(());
        }
        let Some((_, rest)) = self.split() else {
            return Err(format!("has an unknown scheme; known are {SCHEME}, {TLS_SCHEME}"));
        };
        if self.0.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("must have no spaces; write them as %20".to_owned());
        }
        let address = rest.rsplit_once('@').map_or(rest, |(_, address)| address);
        if address.contains(['?', '#']) {
            return Err(format!("must have no parameters: {FORM}"));
        }
        let (host, vhost) =
            address.split_once('/').map_or((address, None), |(host, vhost)| (host, Some(vhost)));
        if vhost == Some("") {
            return Err("has an empty vhost; write %2f for the vhost /".to_owned());
        }
        if vhost.is_some_and(|vhost| vhost.contains('/')) {
            return Err("has a / in its vhost; write it as %2f".to_owned());
        }
        if host_and_port(host, PORT).is_none() {
            return Err(format!("has an illegal host or port: {FORM}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_the_url_is_never_printed() {
        for url in [
            "amqp://me:hunter2@host/prod",
            "amqp://me:a/hunter2@b:c@host",
            "amqps://:hunter2@host:5671",
            "me:hunter2@host",
            "amqp://host/v?password=hunter2",
            "amqp://me?hunter2@host",
        ] {
            let url = AmqpUrl::from(url);
            assert!(!format!("{url} {url:?}").contains("hunter2"), "{url}");
        }
        assert_eq!(AmqpUrl::from("amqp://me:x@host/prod").redacted(), "amqp://me:***@host/prod");
        assert_eq!(AmqpUrl::from("amqp://me@host").redacted(), "amqp://me@host");
        assert_eq!(AmqpUrl::from("").redacted(), "");
    }

    #[test]
    fn the_vhost_is_the_path_decoded() {
        for (url, vhost) in [
            ("amqp://host", "/"),
            ("amqp://u:p@host:5672/prod", "prod"),
            ("amqp://host/%2f", "/"),
            ("amqps://host/a%20b", "a b"),
        ] {
            assert_eq!(AmqpUrl::from(url).vhost(), vhost, "{url}");
        }
    }

    #[test]
    fn a_url_without_a_meaning_is_rejected_with_the_form() {
        for (url, reason) in [
            ("http://host", "has an unknown scheme; known are amqp://, amqps://"),
            ("amqp://", "has an illegal host or port: the form is"),
            ("amqp://host:0", "has an illegal host or port"),
            ("amqp://host:x/v", "has an illegal host or port"),
            ("amqp://host/", "has an empty vhost; write %2f"),
            ("amqp://host/a/b", "has a / in its vhost"),
            ("amqp://host/a?heartbeat=1", "must have no parameters"),
            ("amqp://ho st", "must have no spaces"),
        ] {
            let error = AmqpUrl::from(url).check().expect_err(url);
            assert!(error.starts_with(reason), "{url}: {error}");
        }
        for url in ["", "amqp://host", "amqps://u:p@[::1]:5671/v", "amqp://u@h/%2f"] {
            assert_eq!(AmqpUrl::from(url).check(), Ok(()), "{url}");
        }
    }
}
