//! Changes of jobs that have not started.

use jiff::Timestamp;

use super::jobs::correction_words;
use super::{Store, StoreError};
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

/// The answer to a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditOutcome {
    /// It is changed, and in this state.
    Edited(JobStatus),
    /// Its state forbids it.
    Refused(JobStatus),
    /// An actor is about to start it.
    Taken,
    /// Its queue is too long to take it out of the middle.
    LongQueue(String),
    /// Its fields name no queue.
    Illegal,
    /// It does not exist.
    Missing,
}

impl Store {
    /// Changes a job that has not started, and moves it to the queue or index where it then belongs.
    pub async fn edit(&self, id: &JobId, edit: &JobEdit) -> Result<EditOutcome, StoreError> {
        const DOING: &str = "changing a job";
        let group = edit.group.as_ref().map_or("", |group| {
            // No group has this name.
            group.as_ref().map_or("-", |group| group.as_str())
        });
        // Times before the epoch have no text in the script.
        let due = edit.run_at.map(|time| time.as_microsecond().max(0).to_string());
        let mut script = self.scripts.edit.prepare_invoke();
        script
            .arg(id.as_str())
            .arg(edit.priority.map_or("", |priority| priority.as_str()))
            .arg(group)
            .arg(due.unwrap_or_default())
            .arg(correction_words(&edit.corrections));
        let (code, detail): (String, String) =
            self.invoke_for_caller(DOING, Some(id), script).await?;
        let state = || detail.parse().map_err(|_| StoreError::unexpected(DOING));
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
