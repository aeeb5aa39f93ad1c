//! `[trace]`: where spans of jobs are sent.

use super::config_error::{Fault, KeyPath};
use super::toml_table::toml_table;

toml_table! {
    /// Spans of jobs, for a receiver of OpenTelemetry.
    pub struct TraceConfig in "trace" {
        /// The URL of a receiver of OTLP over HTTP, such as `http://127.0.0.1:4318`: all daemons, and the commands that
        /// submit jobs, send their spans to its path `/v1/traces`, as JSON. Empty, the default: none are made. With `https://`
        /// the machine must trust the authority of its certificate; `SSL_CERT_FILE` in the environment names a file of others.
        endpoint: String = String::new() => Text, restart;
        /// The share of traces that are recorded, from 0 to 1. A job with a `traceparent` is recorded if that says so.
        sample: f64 = 1.0 => Decimal(1), restart;
    }
}

/// The receiver of spans.
pub struct TraceReceiver<'a> {
    /// The URL to which spans are posted.
    pub url: String,
    /// Its host.
    pub host: &'a str,
    /// Its port.
    pub port: u16,
    /// True with TLS.
    pub is_tls: bool,
}

impl TraceConfig {
    /// Returns the receiver; `None` without one.
    pub fn receiver(&self) -> Option<TraceReceiver<'_>> {
        let plain = self.endpoint.strip_prefix("http://").map(|rest| (false, rest));
        let (is_tls, rest) =
            plain.or_else(|| Some((true, self.endpoint.strip_prefix("https://")?)))?;
        let authority = rest.find('/').map_or(rest, |at| &rest[..at]);
        let (host, port) = authority.rsplit_once(':')?;
        let host = host.trim_matches(['[', ']']);
        let is_legal = |text: &str| text.bytes().all(|b| b.is_ascii_graphic() && b != b'@');
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let url = format!("{}/v1/traces", self.endpoint.trim_end_matches('/'));
        (!host.is_empty() && is_legal(rest)).then_some(TraceReceiver { url, host, port, is_tls })
    }

    /// Checks its values.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let wrong = |key: &str, why: &str| Err(Fault::new(KeyPath::of(&["trace", key]), why));
        if !self.endpoint.is_empty() && self.receiver().is_none() {
            return wrong(
                "endpoint",
                "must be a url http://HOST:PORT or https://HOST:PORT, as of a collector on this machine",
            );
        }
        if !(0.0..=1.0).contains(&self.sample) {
            return wrong("sample", "must be a number from 0 to 1");
        }
        Ok(())
    }
}
