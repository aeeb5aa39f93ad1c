//! Messages and events that notifications have to report, as a backup has them.

use serde::{Deserialize, Serialize};

use super::{Bytes, readable};
use crate::proto::notification::NotifyMessage;

const ENTRIES_MAX: usize = 1000;

/// Messages and events that notifications have to report, and the jobs that may recover.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyCopy {
    /// Undelivered messages, each with when it is due in ms since 1970.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<(u64, NotifyMessage)>,
    /// Events that are in no message yet: the id of each, its fields and their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<(String, Vec<Bytes>)>,
    /// Names of jobs of which the last one failed, each with its time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<(Bytes, Bytes)>,
}

impl NotifyCopy {
    pub(super) fn check(&self) -> Result<(), String> {
        let most = self.messages.len().max(self.events.len()).max(self.failing.len());
        if most > ENTRIES_MAX {
            return Err(format!(
                "it has {most} entries of notifications; the limit is {ENTRIES_MAX}"
            ));
        }
        let is_whole = |fields: &Vec<Bytes>| !fields.is_empty() && fields.len().is_multiple_of(2);
        if !self.events.iter().all(|(_, fields)| is_whole(fields)) {
            return Err("an event of notifications lacks a value".to_owned());
        }
        readable(self.events.iter().flat_map(|(_, fields)| fields))?;
        readable(self.failing.iter().flat_map(|(name, at)| [name, at]))
    }
}
