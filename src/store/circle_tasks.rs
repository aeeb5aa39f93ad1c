//! Tasks for the workers that rhailib itself has: written into a circle, and their ends.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::text::StoredText;
use super::{Blocking, LegacyStore, Result};
use crate::proto::job::JobId;
use crate::proto::keys::Keys;
use crate::proto::legacy::Circle;

/// The time after which Redis forgets a task; rhailib's own clients never remove one.
const DETAILS_TTL_S: u64 = 7 * 86_400;
/// The fields of the details that tell how a task ended.
const OUTCOME: [&str; 4] = ["status", "output", "error", "error_msg"];

/// The output of a task, or its error.
pub type TaskEnd = std::result::Result<String, String>;

/// Returns the end of a task as its fields have it, in the details or in the reply.
fn end_of(mut fields: HashMap<&str, String>) -> Option<TaskEnd> {
    match fields.get("status")?.as_str() {
        "completed" => Some(Ok(fields.remove("output").unwrap_or_default())),
        "error" => {
            let error = fields.remove("error").or_else(|| fields.remove("error_msg"));
            Some(Err(error.unwrap_or_else(|| "its worker gave no reason".to_owned())))
        }
        _ => None,
    }
}

fn end_in_reply(reply: &[u8]) -> Option<TaskEnd> {
    let reply: Value = serde_json::from_slice(reply).ok()?;
    let text = |name: &'static str| match reply.get(name)? {
        Value::Null => None,
        Value::String(text) => Some((name, text.clone())),
        other => Some((name, other.to_string())),
    };
    end_of(OUTCOME.into_iter().filter_map(text).collect())
}

impl LegacyStore<'_> {
    /// Writes a task into a circle, as a client of rhailib does: its details before its id.
    pub async fn submit_task(self, circle: &Circle, task: &JobId, script: &str) -> Result<()> {
        let (details, now) =
            (Keys::task_details(task.as_str()), format!("{:.3}", Timestamp::now()));
        let reply_to = Keys::task_reply(task.as_str());
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        let details_of_task = [
            ("script", script),
            ("status", "pending"),
            ("reply_to_queue", &reply_to),
            ("created_at", &now),
            ("updated_at", &now),
        ];
        pipeline.cmd("HSET").arg(&details).arg(&details_of_task).ignore();
        pipeline.cmd("EXPIRE").arg(&details).arg(DETAILS_TTL_S).ignore();
        pipeline.cmd("LPUSH").arg(Keys::tasks(circle)).arg(task.as_str()).ignore();
        self.store.link.pipeline("submitting a task of rhailib", &pipeline).await
    }

    /// Returns the end of a task that its details have.
    pub async fn task_end(self, task: &JobId) -> Result<Option<TaskEnd>> {
        let arguments = (Keys::task_details(task.as_str()), &OUTCOME);
        let texts: Vec<Option<StoredText>> =
            self.store.link.command("reading a task of rhailib", "HMGET", arguments).await?;
        let fields = OUTCOME.into_iter().zip(texts);
        Ok(end_of(fields.filter_map(|(name, text)| Some((name, text?.to_string()))).collect()))
    }
}

impl Blocking {
    /// Waits for the reply to a task. A reply that has no end of it counts as none.
    pub async fn pop_task_reply(
        &mut self,
        task: &JobId,
        timeout: Duration,
    ) -> Result<Option<TaskEnd>> {
        let popped = self.pop(&[Keys::task_reply(task.as_str())], timeout).await?;
        Ok(popped.and_then(|woken| end_in_reply(&woken.entry)))
    }
}
