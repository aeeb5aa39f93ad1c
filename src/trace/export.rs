//! Sends spans to a receiver, some at a time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::unistd::gethostname;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::span::{JobSpan, attributes};
use crate::config::TraceConfig;
use crate::http::HttpPoster;
use crate::proto::text::counted;

/// The most spans of one request.
const SPANS_MAX: usize = 256;
/// The longest time of one request.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// The longest time that the end of a process waits for its last spans.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// The wait after a failure, in which spans are collected.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of spans that no receiver got, for the log and for the metrics of the namespace.
#[derive(Debug, Default)]
pub(super) struct DroppedSpans {
    all: AtomicU64,
    /// The part of them that Redis does not know.
    untold: AtomicU64,
}

impl DroppedSpans {
    pub(super) fn add(&self, number: u64) {
        self.all.fetch_add(number, Ordering::Relaxed);
        self.give_back(number);
    }

    pub(super) fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Takes the number that was not taken yet.
    pub(super) fn take_unreported(&self) -> u64 {
        self.untold.swap(0, Ordering::Relaxed)
    }

    /// Adds a number back that could not be reported.
    pub(super) fn give_back(&self, number: u64) {
        self.untold.fetch_add(number, Ordering::Relaxed);
    }
}

pub(super) struct SpanExport {
    /// Host and port of the receiver, for the log.
    place: String,
    poster: HttpPoster,
    headers: Vec<(String, String)>,
    resource: Value,
    pub(super) dropped: Arc<DroppedSpans>,
    is_away: bool,
}

impl SpanExport {
    /// Returns what sends to the receiver of the configuration, if there is one.
    pub(super) fn new(config: &TraceConfig, service: &'static str) -> Option<Self> {
        let receiver = config.receiver()?;
        let poster = HttpPoster::new(&receiver.url, REQUEST_MAX);
        let place = format!("{} port {}", receiver.host, receiver.port);
        let refused = |why: &dyn fmt::Display| warn!("cannot send spans to {place}: {why}");
        let poster = poster.inspect_err(|why| refused(why)).ok()?;
        let headers = config.headers().inspect_err(|why| refused(why)).ok()?;
        let known = [
            ("service.name", service.to_owned()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", format!("{:032x}", fastrand::u128(..))),
            ("host.name", gethostname().unwrap_or_default().to_string_lossy().into_owned()),
        ];
        let resource = json!({ "attributes": attributes(&known) });
        Some(Self { place, poster, headers, resource, dropped: Arc::default(), is_away: false })
    }

    /// Sends until no tracer is left, or a short time after `closing` is true. Counts the spans that are left then.
    pub(super) async fn run(
        mut self,
        mut waiting: mpsc::Receiver<JobSpan>,
        mut closing: watch::Receiver<bool>,
    ) {
        let mut spans = Vec::new();
        let of_sending = closing.clone();
        let is_done = tokio::select! {
            () = self.send_all(&mut waiting, &mut spans, of_sending) => true,
            () = async {
                closed(&mut closing).await;
                tokio::time::sleep(FLUSH_MAX).await;
            } => false,
        };
        let left = (spans.len() + waiting.len()) as u64;
        self.dropped.add(left);
        if !is_done || self.is_away {
            warn!(
                left,
                "the receiver of spans at {} did not take the last ones; {} dropped since the start",
                self.place,
                counted(self.dropped.all(), "span is", "spans are")
            );
        }
    }

    async fn send_all(
        &mut self,
        waiting: &mut mpsc::Receiver<JobSpan>,
        spans: &mut Vec<JobSpan>,
        mut closing: watch::Receiver<bool>,
    ) {
        loop {
            let number = tokio::select! {
                number = waiting.recv_many(spans, SPANS_MAX) => number,
                () = closed(&mut closing), if !waiting.is_closed() => {
                    waiting.close();
                    continue;
                }
            };
            if number == 0 {
                return;
            }
            let sent = self.send(spans).await;
            spans.clear();
            self.note(sent, number as u64);
            if self.is_away && !*closing.borrow() {
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = closed(&mut closing) => {}
                }
            }
        }
    }

    /// Counts the spans that were not taken, and logs the start and the end of an outage.
    fn note(&mut self, sent: Result<u64, String>, number: u64) {
        let place = &self.place;
        match sent {
            Ok(rejected) => {
                self.dropped.add(rejected);
                if std::mem::take(&mut self.is_away) {
                    let dropped = counted(self.dropped.all(), "span was", "spans were");
                    info!("the receiver of spans at {place} takes them again; {dropped} dropped");
                }
            }
            Err(reason) => {
                self.dropped.add(number);
                if !std::mem::replace(&mut self.is_away, true) {
                    let dropped = self.dropped.all();
                    warn!(
                        dropped,
                        "cannot send spans to {place}: {reason}; they are dropped until it takes them"
                    );
                }
            }
        }
    }

    /// Returns the number of spans that the receiver has rejected.
    async fn send(&mut self, spans: &[JobSpan]) -> Result<u64, String> {
        let spans: Vec<Value> = spans.iter().map(JobSpan::document).collect();
        let scope = json!({ "name": "hero", "version": env!("CARGO_PKG_VERSION") });
        let scopes = json!([{ "scope": scope, "spans": spans }]);
        let body =
            json!({ "resourceSpans": [{ "resource": self.resource, "scopeSpans": scopes }] });
        match self.poster.post(&self.headers, body.to_string().into()).await {
            Ok(answer) => Ok(rejected(&answer)),
            Err(error) if error.is_of_unknown_authority => Err(format!(
                "{error}; let this machine trust its authority (update-ca-certificates), or name the file of its \
                 authority in the environment variable SSL_CERT_FILE of this process"
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Waits until no further spans are taken.
async fn closed(closing: &mut watch::Receiver<bool>) {
    // Without the sender nobody can close: the process does not wait for the last spans.
    if closing.wait_for(|closing| *closing).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns the number of spans that an accepted request does not keep, which JSON of protobuf writes as text.
fn rejected(answer: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let number = &answer["partialSuccess"]["rejectedSpans"];
    let read = number.as_u64().or_else(|| number.as_str()?.parse().ok());
    read.unwrap_or_default().min(SPANS_MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::rejected;

    #[test]
    fn answer_reports_how_many_spans_it_rejects() {
        for (answer, number) in [
            ("", 0),
            ("{}", 0),
            ("[1]", 0),
            (r#"{"partialSuccess": {}}"#, 0),
            (r#"{"partialSuccess": {"rejectedSpans": "3"}}"#, 3),
            (r#"{"partialSuccess": {"rejectedSpans": 4}}"#, 4),
            (r#"{"partialSuccess": {"rejectedSpans": 99999999}}"#, 256),
            (r#"{"partialSuccess": {"rejectedSpans": -1}}"#, 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), number, "{answer}");
        }
    }
}
