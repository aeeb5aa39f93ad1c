//! One thing that a notification tells: the end of a job, that it is late or slow, the end of a graph or batch, or a problem of
//! a queue or a periodic job.

use serde::{Deserialize, Serialize};

use crate::proto::graph::{GraphCounts, GraphKind};
use crate::proto::text::text_of;
use crate::proto::word_table::words;

const ERROR_BYTES_MAX: usize = 1000;
/// The longest other text, in bytes.
const WORD_BYTES_MAX: usize = 256;

words! {
    #[derive(PartialOrd, Ord, Hash, Deserialize)]
    NotifyKind,
    "kind of event",
    "failed, dead, recovered, finished, late, slow, held, no_actor or cron_late";
    /// A job ended in `error`, and nobody stopped or replaced it.
    Failed = "failed",
    /// A job used up its attempts: it is a dead letter.
    Dead = "dead",
    /// A job finished whose like had failed before: the same name, or else the same type and group.
    Recovered = "recovered",
    Finished = "finished",
    /// A job has not ended within the time that its submitter expected.
    Late = "late",
    /// An attempt runs for longer than its submitter expected.
    Slow = "slow",
    /// Limits or a pause hold the jobs of a queue for long.
    Held = "held",
    /// Jobs wait in a queue that no live actor serves.
    NoActor = "no_actor",
    /// A periodic job has not succeeded for twice its interval.
    CronLate = "cron_late",
    /// A test by `hero notify test`.
    Test = "test",
}

impl NotifyKind {
    /// Returns whether it is of a problem of a queue or of a periodic job, and not of a job.
    pub fn is_problem(self) -> bool {
        matches!(self, Self::Held | Self::NoActor | Self::CronLate)
    }
}

/// The end of a graph or batch, with the numbers of its jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphEnd {
    pub kind: GraphKind,
    #[serde(flatten)]
    pub counts: GraphCounts,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NotifyEvent {
    #[serde(rename = "event")]
    pub kind: Option<NotifyKind>,
    /// The time, RFC 3339.
    pub at: String,
    #[serde(rename = "job")]
    pub id: String,
    #[serde(rename = "type")]
    pub script_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caller: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cron: String,
    /// The queue that has the problem.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub queue: String,
    /// The problem that is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<NotifyKind>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub graph: String,
    /// The end of this graph or batch as a whole; `None` for an event of a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<GraphEnd>,
    /// Its error, what it has exceeded, or the problem; the first 1000 bytes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub exit_code: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub attempts: String,
    /// The address of its page, with `api.public_url`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(skip)]
    pub names: Vec<String>,
    /// A more special kind, beside its own: the job is a dead letter, or has recovered.
    #[serde(skip)]
    pub special: Option<NotifyKind>,
}

impl NotifyEvent {
    /// Returns the command that shows more of it, and the path of its page.
    pub fn more(&self) -> Option<(String, String)> {
        Some(match self {
            Self { graph, whole: Some(_), .. } => {
                (format!("hero graph show {graph}"), format!("/graphs/{graph}"))
            }
            Self { id, .. } if !id.is_empty() => {
                (format!("hero job show {id}"), format!("/jobs/{id}"))
            }
            Self { queue, .. } if !queue.is_empty() => {
                ("hero queue list".to_owned(), "/queues".to_owned())
            }
            Self { cron, .. } if !cron.is_empty() => {
                (format!("hero cron show {cron}"), format!("/cron/{cron}"))
            }
            _ => return None,
        })
    }

    /// Reads the fields of an entry of the stream; `None` if it is of an unknown kind.
    pub fn read<'f>(at: String, fields: impl Iterator<Item = (&'f str, Vec<u8>)>) -> Option<Self> {
        let mut event = Self { at, ..Self::default() };
        let (mut whole, mut counts) = (None, GraphCounts::default());
        for (name, value) in fields {
            let text = text_of(&value);
            let word = || bounded(&text, WORD_BYTES_MAX);
            let number = || text.parse().unwrap_or_default();
            match name {
                "event" => event.kind = text.parse().ok(),
                "id" => event.id = word(),
                "cron" => event.cron = word(),
                "queue" => event.queue = word(),
                "ended" => event.ended = text.parse().ok(),
                "type" => event.script_type = word(),
                "group" => event.group = word(),
                "name" => event.name = word(),
                "caller" => event.caller = word(),
                "graph" => event.graph = word(),
                "exit_code" => event.exit_code = word(),
                "hostname" => event.hostname = word(),
                "attempts" => event.attempts = word(),
                "error" => event.error = bounded(&text, ERROR_BYTES_MAX),
                "special" => event.special = text.parse().ok(),
                "tags" => event.tags = list(&text),
                "notify" => event.names = list(&text),
                "whole" if text == "batch" => whole = Some(GraphKind::Batch),
                "whole" => whole = Some(GraphKind::Graph),
                "jobs" => counts.jobs = number(),
                "finished" => counts.finished = number(),
                "failed" => counts.failed = number(),
                "cancelled" => counts.cancelled = number(),
                _ => {}
            }
        }
        event.whole = whole.map(|kind| GraphEnd { kind, counts });
        event.kind.is_some().then_some(event)
    }

    /// Returns the fields of its entry in the stream; the entry of a problem has no fields of a job.
    pub fn problem_fields(&self) -> Vec<(&'static str, String)> {
        let word = |kind: Option<NotifyKind>| kind.map_or("", NotifyKind::as_str).to_owned();
        let names = if self.names.is_empty() {
            String::new()
        } else {
            serde_json::to_string(&self.names).unwrap_or_default()
        };
        let fields = [
            ("event", word(self.kind)),
            ("ended", word(self.ended)),
            ("queue", self.queue.clone()),
            ("cron", self.cron.clone()),
            ("type", self.script_type.clone()),
            ("group", self.group.clone()),
            ("notify", names),
            ("error", bounded(&self.error, ERROR_BYTES_MAX)),
        ];
        fields.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    /// Returns its kinds, the most special first.
    pub fn kinds(&self) -> impl Iterator<Item = NotifyKind> {
        self.special.into_iter().chain(self.kind)
    }

    /// Returns the name of its job, graph or batch, or else what it is; or the queue or the periodic job that has a problem.
    pub fn job(&self) -> String {
        if let Some(GraphEnd { kind, counts }) = self.whole {
            let Self { name, graph, .. } = self;
            return match name.as_str() {
                "" => format!("{kind} {graph}: {counts}"),
                name => format!("{name} ({kind} {graph}): {counts}"),
            };
        }
        let Self { name, script_type, id, queue, cron, .. } = self;
        if !queue.is_empty() {
            return format!("queue {queue}");
        }
        if id.is_empty() && !cron.is_empty() {
            return format!("periodic job {cron}");
        }
        match (name.as_str(), id.as_str()) {
            ("", id) => format!("{script_type} job {id}"),
            (name, "") => name.to_owned(),
            (name, id) => format!("{name} ({script_type} job {id})"),
        }
    }
}

/// Reads a list of words in JSON; a text that is none counts as empty.
fn list(text: &str) -> Vec<String> {
    const WORDS_MAX: usize = 16;
    let words: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    words.iter().take(WORDS_MAX).map(|word| bounded(word, WORD_BYTES_MAX)).collect()
}

fn bounded(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)]) -> Option<NotifyEvent> {
        let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes().to_vec()));
        NotifyEvent::read("2026-01-01T00:00:00Z".to_owned(), fields)
    }

    #[test]
    fn an_entry_becomes_an_event_within_bounds() {
        let long = "ä".repeat(4000);
        let event = read(&[
            ("event", "failed"),
            ("id", "cron-nightly-backup-20260101T030000Z"),
            ("cron", "nightly-backup"),
            ("type", "bash"),
            ("error", &long),
            ("tags", r#"["a","b"]"#),
            ("notify", "no list"),
            ("special", "dead"),
            ("new", "a later version's"),
        ])
        .expect("an event");
        assert_eq!(event.cron, "nightly-backup");
        assert!(event.error.len() <= ERROR_BYTES_MAX + 3 && event.error.ends_with('…'));
        assert_eq!((event.tags.len(), event.names.len()), (2, 0));
        assert_eq!(event.kinds().collect::<Vec<_>>(), [NotifyKind::Dead, NotifyKind::Failed]);
        assert!(read(&[("event", "exploded")]).is_none());
    }
}
