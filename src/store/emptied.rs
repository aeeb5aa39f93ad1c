//! A Redis that lost all keys of the namespace while Hero ran: by FLUSHALL, or by a restart without its data. A
//! supervisor notices it, as its presence is gone and the mark of the data is another one.

use std::time::Duration;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Result, Store};

const FIELD: &str = "emptied";
/// It is a problem for so long.
const TOLD: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptiedRedis {
    #[serde(serialize_with = "as_text", deserialize_with = "of_text")]
    pub at: Timestamp,
    /// The number of jobs when they were last counted before.
    pub jobs: u64,
    /// True if another process of Redis has the namespace now.
    pub restarted: bool,
}

fn as_text<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(at)
}

fn of_text<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

impl Store {
    pub async fn note_emptied(&self, emptied: &EmptiedRedis) -> Result<()> {
        let text = serde_json::to_string(emptied).unwrap_or_default();
        let arguments = (self.keys.marks(), FIELD, text);
        self.link.command("noting that redis was emptied", "HSET", arguments).await
    }

    /// Returns the last loss of all keys, if it was in the last day before `now`.
    pub async fn emptied(&self, now: Timestamp) -> Result<Option<EmptiedRedis>> {
        let arguments = (self.keys.marks(), FIELD);
        let text: Option<String> =
            self.link.command("asking whether redis was emptied", "HGET", arguments).await?;
        let emptied: Option<EmptiedRedis> = text.and_then(|text| serde_json::from_str(&text).ok());
        let is_told = |of: &EmptiedRedis| {
            Duration::try_from(now.duration_since(of.at)).is_ok_and(|age| age < TOLD)
        };
        Ok(emptied.filter(is_told))
    }
}
