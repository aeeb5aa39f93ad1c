//! One message of a notification: the events that it reports, and what became of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{NotifyEvent, NotifyKind, NotifyName};
use crate::proto::text::escape;

/// The events that a message has in full; of the others it has their number.
const EVENTS_MAX: usize = 20;
const TITLE_CHARS_MAX: usize = 160;
const ERROR_CHARS_MAX: usize = 500;
/// The time from the first attempt on in which a delivery is repeated, in ms.
const PATIENCE_MS: u64 = 3_600_000;
/// The wait before the second attempt, in ms; it doubles.
const BACKOFF_MS: u64 = 2000;
/// The longest wait between two attempts, in ms.
const BACKOFF_MAX_MS: u64 = 300_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyMessage {
    /// Its id: the same in each attempt to deliver it.
    pub id: String,
    pub to: NotifyName,
    /// The time of its first event.
    pub at: String,
    pub counts: BTreeMap<String, u64>,
    pub events: Vec<NotifyEvent>,
    /// The attempts to deliver it that failed.
    #[serde(default)]
    pub attempts: u32,
    /// The time of the first attempt, in ms since 1970; 0 before.
    #[serde(default)]
    pub tried_ms: u64,
    /// The ways and addresses that need no further attempt: it was delivered there, or refused for good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<String>,
    /// The reasons of those that refused it for good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// The end of a delivery, or its latest attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryRecord {
    /// The time, RFC 3339.
    pub at: String,
    /// The notification.
    pub notification: String,
    /// The id of the message, the same in each attempt.
    pub id: String,
    /// The state: `delivered`, `retrying` or `failed`.
    pub state: String,
    /// The title of the message.
    pub title: String,
    /// The attempts.
    pub attempts: u32,
    /// The reason for which the last attempt failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

impl NotifyMessage {
    pub fn new(id: String, to: NotifyName, at: String) -> Self {
        let (counts, events, settled, refused) = Default::default();
        Self { id, to, at, counts, events, attempts: 0, tried_ms: 0, settled, refused }
    }

    pub fn add(&mut self, kind: NotifyKind, event: &NotifyEvent) {
        *self.counts.entry(kind.as_str().to_owned()).or_default() += 1;
        if self.events.len() < EVENTS_MAX {
            self.events.push(NotifyEvent { kind: Some(kind), ..event.clone() });
        }
    }

    /// Gives its events the addresses of their pages.
    pub fn link_to(&mut self, public_url: &str) {
        for event in &mut self.events {
            event.url =
                event.more().map_or_else(String::new, |(_, path)| public_url.to_owned() + &path);
        }
    }

    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns one line without control characters: `backup failed`, or `3 failed, 1 late: backup, …`.
    pub fn title(&self) -> String {
        let first = self.events.first().map(NotifyEvent::job).unwrap_or_default();
        let kind = self.events.first().and_then(|event| event.kind).map_or("", NotifyKind::as_str);
        let title = if self.total() == 1 {
            format!("{kind}: {first}")
        } else {
            let counts = self.counts.iter().map(|(kind, number)| format!("{number} {kind}"));
            format!("{}: {first}, …", counts.collect::<Vec<_>>().join(", "))
        };
        escape(&title).chars().take(TITLE_CHARS_MAX).collect()
    }

    /// Returns its text for people: a line or two for each event. Control characters are escaped.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            let kind = event.kind.map_or("", NotifyKind::as_str);
            text.push_str(&escape(&format!("{} {kind}: {}", event.at, event.job())));
            let of = [
                ("on", &event.hostname),
                ("exit code", &event.exit_code),
                ("attempts", &event.attempts),
                ("caller", &event.caller),
            ];
            for (word, value) in of.into_iter().filter(|(_, value)| !value.is_empty()) {
                text.push_str(&escape(&format!(", {word} {value}")));
            }
            text.push('\n');
            let error: String = event.error.chars().take(ERROR_CHARS_MAX).collect();
            for line in lines_once(&error) {
                let _ = writeln!(text, "    {}", escape(line));
            }
            let command = event.more().map(|(command, _)| command);
            for line in command.iter().chain(Some(&event.url).filter(|url| !url.is_empty())) {
                let _ = writeln!(text, "    {}", escape(line));
            }
        }
        let more = self.total() - self.events.len() as u64;
        if more > 0 {
            let _ = writeln!(text, "and {more} more: hero job list");
        }
        text
    }

    pub fn document(&self) -> Value {
        json!({
            "id": self.id,
            "notification": self.to,
            "at": self.at,
            "title": self.title(),
            "counts": self.counts,
            "total": self.total(),
            "events": self.events,
        })
    }

    /// Returns true for a test and nothing else: its sender waits for the outcome of the one attempt.
    pub fn is_test(&self) -> bool {
        self.counts.keys().eq([NotifyKind::Test.as_str()])
    }

    /// Notes a failed attempt. Returns the time until the next one in ms; `None` if there is none.
    pub fn failed(&mut self, now_ms: u64) -> Option<u64> {
        self.attempts = self.attempts.saturating_add(1);
        if self.tried_ms == 0 {
            self.tried_ms = now_ms;
        }
        let wait = BACKOFF_MS.saturating_mul(1 << (self.attempts - 1).min(16)).min(BACKOFF_MAX_MS);
        let is_over = now_ms.saturating_sub(self.tried_ms) + wait > PATIENCE_MS;
        (!is_over && !self.is_test()).then_some(wait)
    }

    /// Returns the record of an attempt. Without an error it was delivered.
    pub fn record(&self, at: String, error: &str, tries_again: bool) -> DeliveryRecord {
        let state = match (error, tries_again) {
            ("", _) => "delivered",
            (_, true) => "retrying",
            (_, false) => "failed",
        };
        DeliveryRecord {
            at,
            notification: self.to.to_string(),
            id: self.id.clone(),
            state: state.to_owned(),
            title: self.title(),
            attempts: self.attempts + u32::from(error.is_empty()),
            error: escape(error).chars().take(ERROR_CHARS_MAX).collect(),
        }
    }
}

/// Returns the lines of an error, each once: the reason in the first one is often a line of standard error that follows.
fn lines_once(error: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    for line in error.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()) {
        let is_reason = lines.first().is_some_and(|first| first.ends_with(&format!(": {line}")));
        if !is_reason && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, error: &str) -> NotifyEvent {
        NotifyEvent {
            at: "2026-01-01T00:00:00Z".to_owned(),
            id: "1".to_owned(),
            script_type: "bash".to_owned(),
            name: name.to_owned(),
            error: error.to_owned(),
            ..NotifyEvent::default()
        }
    }

    fn message() -> NotifyMessage {
        let to = "ops".parse().expect("legal");
        NotifyMessage::new("ops-1-0".to_owned(), to, "2026-01-01T00:00:00Z".to_owned())
    }

    #[test]
    fn hostile_text_stays_on_its_line_and_within_bounds() {
        let mut message = message();
        let hostile = "x\r\nBcc: everybody@example.org\r\n\r\n\u{202e}";
        message.add(NotifyKind::Failed, &event(hostile, &"e\r\n.\r\n".repeat(1000)));
        let (title, text) = (message.title(), message.text());
        assert!(!title.contains(['\r', '\n', '\u{202e}']), "{title}");
        assert!(title.chars().count() <= TITLE_CHARS_MAX);
        assert!(!text.contains('\r') && text.lines().count() == 4, "{text}");
        assert!(text.len() < 4000);
    }

    #[test]
    fn error_has_its_lines_and_none_of_them_twice() {
        let mut message = message();
        let error = "exit code 1: no such table\nopening a.db\nno such table\nopening a.db\n";
        message.add(NotifyKind::Failed, &event("a", error));
        let text = message.text();
        let expected = "\n    exit code 1: no such table\n    opening a.db\n    hero job show 1\n";
        assert!(text.ends_with(expected) && !text.contains("\\n"), "{text}");
    }

    #[test]
    fn event_has_a_link_to_its_page_where_the_address_of_the_site_is_known() {
        let mut message = message();
        message.add(NotifyKind::Failed, &event("a", ""));
        message.link_to("https://hero.example.org/hero");
        let expected = "    hero job show 1\n    https://hero.example.org/hero/jobs/1\n";
        assert!(message.text().ends_with(expected), "{}", message.text());
        let events = &message.document()["events"];
        assert_eq!(events[0]["url"], "https://hero.example.org/hero/jobs/1");
    }

    #[test]
    fn many_events_are_counted_and_the_first_are_told() {
        let mut message = message();
        for _ in 0..30 {
            message.add(NotifyKind::Failed, &event("a", ""));
        }
        message.add(NotifyKind::Recovered, &event("a", ""));
        assert_eq!((message.events.len(), message.total()), (EVENTS_MAX, 31));
        assert_eq!(message.title(), "30 failed, 1 recovered: a (bash job 1), …");
        assert!(message.text().ends_with("and 11 more: hero job list\n"));
    }

    #[test]
    fn delivery_is_repeated_with_growing_waits_for_an_hour() {
        let mut message = message();
        message.add(NotifyKind::Failed, &event("a", ""));
        let (mut now, mut waits) = (5_000_000, Vec::new());
        while let Some(wait) = message.failed(now) {
            waits.push(wait);
            now += wait;
        }
        assert_eq!(waits[..4], [2000, 4000, 8000, 16_000]);
        assert!(waits.is_sorted() && waits.iter().all(|wait| *wait <= BACKOFF_MAX_MS));
        let total: u64 = waits.iter().sum();
        assert!(total <= PATIENCE_MS && total > PATIENCE_MS - BACKOFF_MAX_MS, "{total}");
    }
}
