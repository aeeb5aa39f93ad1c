//! Changes of jobs that have not started.

use jiff::Timestamp;

use super::jobs::correction_words;
use super::{Result, Store, StoreError};
use crate::proto::job::{Corrections, JobId, JobStatus};
use crate::proto::target::{Group, Priority};

/// The changes of a job that waits. Absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobEdit {
    pub priority: Option<Priority>,
    /// The group that may run it; `Some(None)` for any group. Takes its instance away.
    pub group: Option<Option<Group>>,
    /// The earliest time to start; one in the past means now.
    pub run_at: Option<Timestamp>,
    /// Further settings with new values, such as a corrected script.
    pub corrections: Corrections,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditOutcome {
    /// It is changed, and in this state.
    Edited(JobStatus),
    Refused(JobStatus),
    /// An actor is about to start it.
    Taken,
    /// Its queue is too long to take it out of the middle.
    LongQueue(String),
    /// Its fields name no queue.
    Illegal,
    Missing,
}

impl Store {
    /// Changes a job that has not started, and moves it to the queue or index where it then belongs.
    pub async fn edit(&self, id: &JobId, edit: &JobEdit) -> Result<EditOutcome> {
        const DOING: &str = "changing a job";
        let group = edit.group.as_ref().map_or("", |group| {
            // No group has this name.
            group.as_ref().map_or("-", |group| group.as_str())
        });
        // Times before the epoch have no text in the script.
        let due = edit.run_at.map(|time| time.as_microsecond().max(0).to_string());
        let priority = edit.priority.map_or("", Priority::as_str);
        let corrections = correction_words(&edit.corrections);
        let arguments = (id.as_str(), priority, group, due.unwrap_or_default(), corrections);
        let (code, detail): (String, String) =
            self.run_for_caller(DOING, Some(id), &self.scripts.edit, arguments).await?;
        let state = || StoreError::or_parsed(DOING, &detail);
        Ok(match code.as_str() {
            "edited" => EditOutcome::Edited(state()?),
            "refused" => EditOutcome::Refused(state()?),
            "taken" => EditOutcome::Taken,
            "long" => EditOutcome::LongQueue(detail),
            "illegal" => EditOutcome::Illegal,
            "missing" => EditOutcome::Missing,
            _ => return Err(StoreError::unexpected(DOING)),
        })
    }
}
