//! Sends spans to a receiver, some at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tracing::{info, warn};

use super::span::{JobSpan, attributes};
use crate::config::TraceConfig;
use crate::proto::text::counted;

/// The most spans of one request.
const SPANS_MAX: usize = 256;
/// The longest time of one request.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// The wait after a failure, in which spans are collected.
const PAUSE: Duration = Duration::from_secs(1);

/// The task that sends spans.
pub(super) struct SpanExport {
    host: String,
    port: u16,
    path: String,
    resource: Value,
    pub(super) dropped: Arc<AtomicU64>,
    is_away: bool,
}

impl SpanExport {
    /// Returns what sends to the receiver of the configuration, if there is one.
    pub(super) fn new(config: &TraceConfig, service: &'static str) -> Option<Self> {
        let (host, port, path) = config.receiver()?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let known = [("service.name", service.to_owned()), ("service.version", version)];
        Some(Self {
            host: host.to_owned(),
            port,
            path: format!("{path}/v1/traces"),
            resource: json!({ "attributes": attributes(&known) }),
            dropped: Arc::default(),
            is_away: false,
        })
    }

    /// Sends until no tracer is left.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<JobSpan>, closing: Arc<Notify>) {
        let mut spans = Vec::new();
        loop {
            let number = tokio::select! {
                number = waiting.recv_many(&mut spans, SPANS_MAX) => number,
                () = closing.notified() => {
                    waiting.close();
                    continue;
                }
            };
            if number == 0 {
                return;
            }
            let sent = tokio::time::timeout(REQUEST_MAX, self.send(&spans)).await;
            let sent = sent.unwrap_or_else(|_| Err("it has not answered in time".to_owned()));
            let number = spans.len() as u64;
            spans.clear();
            let Err(reason) = sent else {
                if std::mem::take(&mut self.is_away) {
                    let dropped =
                        counted(self.dropped.load(Ordering::Relaxed), "span was", "spans were");
                    info!("the receiver of spans takes them again; {dropped} dropped");
                }
                continue;
            };
            let dropped = self.dropped.fetch_add(number, Ordering::Relaxed) + number;
            if !std::mem::replace(&mut self.is_away, true) {
                let (host, port) = (&self.host, self.port);
                warn!(
                    dropped,
                    "cannot send spans to {host} port {port}: {reason}; they are dropped until it takes them"
                );
            }
            if !waiting.is_closed() {
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = closing.notified() => waiting.close(),
                }
            }
        }
    }

    async fn send(&self, spans: &[JobSpan]) -> Result<(), String> {
        let spans: Vec<Value> = spans.iter().map(JobSpan::document).collect();
        let scope = json!({ "name": "hero", "version": env!("CARGO_PKG_VERSION") });
        let scopes = json!([{ "scope": scope, "spans": spans }]);
        let body =
            json!({ "resourceSpans": [{ "resource": self.resource, "scopeSpans": scopes }] });
        let request = Request::post(&self.path)
            .header("host", format!("{}:{}", self.host, self.port))
            .header("content-type", "application/json")
            .header("user-agent", concat!("hero/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|error| error.to_string())?;
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = TokioIo::new(stream.map_err(|error| error.to_string())?);
        let (mut sender, connection) =
            http1::handshake(stream).await.map_err(|error| error.to_string())?;
        let connection = tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(|error| error.to_string());
        connection.abort();
        let status = answer?.status();
        if status.is_success() { Ok(()) } else { Err(format!("the answer is {status}")) }
    }
}
