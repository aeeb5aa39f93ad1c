//! `[trace]`: where spans of jobs are sent.

use serde::{Deserialize, Serialize};

use super::config_error::{Fault, KeyPath};

/// `[trace]`: where spans of jobs are sent, and how many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct TraceConfig {
    /// The URL of a receiver of OTLP over HTTP; empty for none.
    pub endpoint: String,
    /// The share of traces that are recorded, from 0 to 1.
    pub sample: f64,
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

// A checked sample is a number.
impl Eq for TraceConfig {}

impl Default for TraceConfig {
    fn default() -> Self {
        Self { endpoint: String::new(), sample: 1.0 }
    }
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
