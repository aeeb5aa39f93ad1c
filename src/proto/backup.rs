//! The lines of a backup: one JSON document per line, the head first, the end last.
//!
//! The format has no value of one version of Redis, so that a backup can be restored into any other.

mod notify_copy;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::cron::{ADDED_BYTES_MAX, CronName};
use super::job::{INPUT_FILES, JobId, JobStatus};
use super::named_script::{Provenance, ScriptDefinition, ScriptName, TEXT_BYTES_MAX, digest_of};
use super::object::{Context, Field, ObjectId, ObjectType};
use super::pauses::PauseRule;
use super::queue::Queue;
use super::target::ScriptType;
pub use notify_copy::NotifyCopy;

/// The version of the format that this program writes and reads.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupLine {
    /// The first line.
    Backup(Head),
    /// The number of the shard whose lines follow, if there are several.
    Shard(u16),
    Paused(Vec<String>),
    Cron(CronCopy),
    CronAdded(CronAddedCopy),
    /// A version of a published script, older ones first.
    Script(ScriptCopy),
    Limit(LimitCopy),
    Job(JobCopy),
    /// A part of the log of the job before.
    Log(LogCopy),
    /// The dead letters of a script type, oldest first.
    Dead(DeadCopy),
    /// A graph or batch, after all jobs.
    Graph(GraphCopy),
    /// Jobs of the graph before.
    GraphJobs(GraphJobsCopy),
    Notify(NotifyCopy),
    Indexes(IndexesCopy),
    Object(ObjectCopy),
    /// The last line.
    End(End),
}

impl BackupLine {
    /// Checks the names that become parts of keys, and values in Base64.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Paused(names) => names.iter().try_for_each(|name| {
                if name.contains('*') { legal::<PauseRule>(name) } else { legal::<Queue>(name) }
            }),
            Self::Cron(cron) => readable(cron.fields.values().chain(cron.ends.values())),
            Self::Graph(graph) => readable(graph.fields.values()),
            Self::Job(job) => {
                let ids = job.pending.iter().map(|id| id.strip_prefix('?').unwrap_or(id));
                ids.into_iter().try_for_each(legal::<JobId>)?;
                job.queue.iter().try_for_each(|queue| legal::<Queue>(queue))?;
                readable(job.fields.values())
            }
            Self::Log(log) => log.entries.iter().try_for_each(|(_, fields)| {
                let is_complete = !fields.is_empty() && fields.len() % 2 == 0;
                if !is_complete {
                    return Err("an entry of the log lacks a value".to_owned());
                }
                readable(fields.iter())
            }),
            Self::Notify(notify) => notify.check(),
            Self::Indexes(indexes) => legal::<Context>(&indexes.context),
            Self::Object(object) => {
                legal::<Context>(&object.context)?;
                legal::<ObjectId>(&object.id)
            }
            Self::CronAdded(added) if added.definition.len() > ADDED_BYTES_MAX => {
                Err(format!("the periodic job {} is too large", added.name))
            }
            Self::Script(script) => script.check(),
            Self::CronAdded(_)
            | Self::GraphJobs(_)
            | Self::Backup(_)
            | Self::Shard(_)
            | Self::Limit(_)
            | Self::Dead(_)
            | Self::End(_) => Ok(()),
        }
    }
}

fn legal<T: FromStr<Err: Display>>(name: &str) -> Result<(), String> {
    name.parse::<T>().map(drop).map_err(|error| error.to_string())
}

fn readable<'a>(mut values: impl Iterator<Item = &'a Bytes>) -> Result<(), String> {
    match values.find(|value| value.decode().is_none()) {
        None => Ok(()),
        Some(_) => Err("a value is not valid Base64".to_owned()),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub format: u32,
    /// The version of the program that wrote it.
    pub version: String,
    /// The namespace that it is a copy of.
    pub namespace: String,
    /// The time of its start, by Redis's clock.
    pub time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The lines before this one.
    pub lines: u64,
    pub jobs: u64,
    pub objects: u64,
    /// The SHA-256 of all bytes before this line, in hexadecimal.
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobCopy {
    pub id: JobId,
    pub fields: BTreeMap<String, Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its place in that queue, the time of its dispatch in us; its score in the index of an ended job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<i64>,
    /// Its prerequisites that had not ended; `?` precedes those that only have to end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// The rest of its retention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The rest of the retention of its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_ttl_ms: Option<u64>,
}

impl JobCopy {
    /// Returns its state; `created` for a text that is no state.
    pub fn status(&self) -> JobStatus {
        let text = self.text("status").unwrap_or_default().to_ascii_lowercase();
        text.parse().unwrap_or(JobStatus::Created)
    }

    pub fn text(&self, field: &str) -> Option<&str> {
        match self.fields.get(field) {
            Some(Bytes::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns true if it has not ended and has input files: a backup has none, and it cannot run without them.
    pub fn lacks_files(&self) -> bool {
        let has_files = self.text(INPUT_FILES).is_some_and(|names| names.contains('"'));
        has_files && !self.status().is_terminal()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogCopy {
    pub id: JobId,
    /// The entries of the stream: the id of each, its fields and their values.
    pub entries: Vec<(String, Vec<Bytes>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CronCopy {
    pub name: CronName,
    pub fields: BTreeMap<String, Bytes>,
    /// Its last success and failure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ends: BTreeMap<String, Bytes>,
    pub ttl_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CronAddedCopy {
    pub name: CronName,
    pub definition: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCopy {
    pub name: ScriptName,
    pub version: u32,
    pub story: Provenance,
    pub definition: ScriptDefinition,
    pub script: String,
}

impl ScriptCopy {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if self.script.len() as u64 > TEXT_BYTES_MAX {
            return Err(format!("the script {name} is too large"));
        }
        if digest_of(&self.script) != self.definition.digest {
            return Err(format!("the digest of the script {name} is not the one of its text"));
        }
        self.definition.check().map_err(|error| format!("the script {name}: {error}"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitCopy {
    pub name: String,
    /// Each start, and its time in us.
    pub starts: Vec<(String, i64)>,
    /// The rest of the time that they are kept.
    pub ttl_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadCopy {
    #[serde(rename = "type")]
    pub script_type: ScriptType,
    pub ids: Vec<JobId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphCopy {
    pub id: JobId,
    pub fields: BTreeMap<String, Bytes>,
    pub ttl_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphJobsCopy {
    pub id: JobId,
    /// Each job, and its outcome and place as one number.
    pub jobs: Vec<(JobId, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexesCopy {
    pub context: String,
    #[serde(rename = "type")]
    pub object_type: ObjectType,
    /// The fields with a complete index.
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectCopy {
    pub context: String,
    #[serde(rename = "type")]
    pub object_type: ObjectType,
    pub id: String,
    pub version: u64,
    pub created_ms: i64,
    pub modified_ms: i64,
    pub body: serde_json::Map<String, serde_json::Value>,
}

/// A value of Redis: text as it is, other bytes in Base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bytes {
    Text(String),
    Base64 { base64: String },
}

impl Bytes {
    /// Returns the bytes; `None` if the Base64 is not valid.
    pub fn decode(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Base64 { base64 } => BASE64_STANDARD.decode(base64).ok(),
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Base64 { base64: BASE64_STANDARD.encode(error.as_bytes()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_in_base64() {
        let text = serde_json::to_string(&Bytes::from(b"a\n".to_vec())).expect("JSON");
        let bytes = serde_json::to_string(&Bytes::from(vec![255, 0])).expect("JSON");
        assert_eq!((text.as_str(), bytes.as_str()), (r#""a\n""#, r#"{"base64":"/wA="}"#));
        let read: Bytes = serde_json::from_str(&bytes).expect("bytes");
        assert_eq!(read.decode(), Some(vec![255, 0]));
        assert_eq!(Bytes::Base64 { base64: "?".to_owned() }.decode(), None);
    }

    #[test]
    fn line_names_its_kind_and_unknown_members_are_rejected() {
        let line = BackupLine::Paused(vec!["type:osis".to_owned()]);
        let json = serde_json::to_string(&line).expect("JSON");
        assert_eq!(json, r#"{"paused":["type:osis"]}"#);
        assert_eq!(serde_json::from_str::<BackupLine>(&json).expect("a line"), line);
        let unknown = r#"{"job":{"id":"a","fields":{},"colour":"red"}}"#;
        assert!(serde_json::from_str::<BackupLine>(unknown).is_err());
    }
}
