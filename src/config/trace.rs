//! `[trace]`: where spans of jobs are sent.

use std::io;
use std::path::{Path, PathBuf};

use super::config_error::{ConfigError, Fault, KeyPath};
use super::connection::empty_is_none;
use super::files::{read_bounded, unreadable};
use super::notify::is_header;
use super::toml_table::toml_table;

const HEADERS_BYTES_MAX: u64 = 16 << 10;

toml_table! {
    /// Spans of jobs, for a receiver of OpenTelemetry.
    pub struct TraceConfig in "trace" {
        /// The URL of a receiver of OTLP over HTTP, such as `http://127.0.0.1:4318`: all daemons, and the commands that
        /// submit jobs, send their spans to its path `/v1/traces`, as JSON. Empty, the default: none are made. With `https://`
        /// the machine must trust the authority of its certificate; `SSL_CERT_FILE` in the environment names a file of others.
        endpoint: String = String::new() => Text, restart;
        /// The share of traces that are recorded, from 0 to 1. A job with a `traceparent` is recorded if that says so.
        sample: f64 = 1.0 => Decimal(1), restart;
        /// A file of headers for the requests to the receiver, such as its login: one on each line, `NAME: VALUE`. Empty lines
        /// and lines that start with `#` are comments. The user of the units must be able to read it. Empty: no headers.
        headers_file: Option<PathBuf> as "empty_is_none" = None => File, restart;
    }
}

pub struct TraceReceiver<'a> {
    /// The URL to which spans are posted.
    pub url: String,
    pub host: &'a str,
    pub port: u16,
    pub is_tls: bool,
}

impl TraceConfig {
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

    /// Reads the headers of requests to the receiver, such as its login, from `headers_file`.
    pub fn headers(&self) -> Result<Vec<(String, String)>, ConfigError> {
        let Some(file) = &self.headers_file else { return Ok(Vec::new()) };
        read_headers(file).map_err(|error| unreadable("the headers of spans from", file, &error))
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        if !self.endpoint.is_empty() && self.receiver().is_none() {
            return KeyPath::of(&["trace"]).wrong(
                "endpoint",
                "must be a url http://HOST:PORT or https://HOST:PORT, as of a collector on this machine",
            );
        }
        Ok(())
    }
}

/// Reads a header from each line, `NAME: VALUE`. Empty lines and lines with `#` at their start are comments.
fn read_headers(file: &Path) -> io::Result<Vec<(String, String)>> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let text = String::from_utf8(read_bounded(file, HEADERS_BYTES_MAX)?);
    let text = text.map_err(|_| invalid("not UTF-8 text".to_owned()))?;
    let lines = text.lines().enumerate().map(|(place, line)| (place + 1, line.trim()));
    let headers = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    headers
        .map(|(number, line)| {
            let (name, value) = line.split_once(':').unwrap_or_default();
            let (name, value) = (name.trim(), value.trim());
            // The line may be a secret, and is not printed.
            is_header(name, value)
                .then(|| (name.to_owned(), value.to_owned()))
                .ok_or_else(|| invalid(format!("line {number} is no header, as `NAME: VALUE`")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_lines_of_a_file_and_a_wrong_line_is_reported_by_its_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("headers");
        let config = TraceConfig { headers_file: Some(file.clone()), ..TraceConfig::default() };
        let read = |text: &str| {
            std::fs::write(&file, text).expect("written");
            config.headers().map_err(|error| error.to_string())
        };
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read("# of the vendor\n\nAuthorization: Bearer a:b\r\nx-team:ops\n"),
            Ok(vec![own("Authorization", "Bearer a:b"), own("x-team", "ops")])
        );
        for wrong in
            ["ok: 1\nsecret", "ok: 1\nhost: other", "ok: 1\n: secret", "ok: 1\na b: secret"]
        {
            let why = read(wrong).expect_err(wrong);
            assert!(why.contains("line 2") && !why.contains("secret"), "{wrong}: {why}");
        }
        std::fs::remove_file(&file).expect("removed");
        assert!(config.headers().expect_err("no file").to_string().contains("no such file"));
        assert_eq!(TraceConfig::default().headers().expect("none"), []);
    }
}
