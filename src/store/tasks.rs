//! What a client of rhailib does, word for word: its round trip is what the bridge is measured by.

use std::time::Duration;

use serde_json::Value;

use super::link::Blocking;
use super::{Store, StoreError};
use crate::proto::job::JobId;
use crate::proto::keys::Keys;
use crate::proto::legacy::RhailibCircle;

/// How long the reply to one task may take.
const PATIENCE: Duration = Duration::from_secs(30);

impl Store {
    /// Pushes a task to a circle and waits for its reply on `waiting`. Its details are written in a
    /// round trip of their own: before its id is pushed, or after it, as rhailib's sequence diagram
    /// has it.
    ///
    /// # Errors
    /// [`StoreError`], also if no reply comes within 30 s, or the task did not complete.
    pub async fn run_task(
        &self,
        waiting: &mut Blocking,
        circle: &RhailibCircle,
        script: &str,
        details_first: bool,
    ) -> Result<(), StoreError> {
        let doing = "running a task of rhailib";
        let id = JobId::random();
        let (task, reply_to) = (id.as_str(), Keys::task_reply(id.as_str()));
        let mut details = redis::cmd("HSET");
        details.arg(Keys::task_details(task)).arg("script").arg(script);
        details.arg("status").arg("pending").arg("reply_to_queue").arg(&reply_to);
        let mut push = redis::cmd("LPUSH");
        push.arg(Keys::tasks(&circle.circle)).arg(task);
        let steps = if details_first { [&details, &push] } else { [&push, &details] };
        for step in steps {
            self.link.query::<i64>(doing, step).await?;
        }
        let reply = waiting.pop(&[reply_to], PATIENCE).await?;
        let reply: Option<Value> =
            reply.and_then(|reply| serde_json::from_slice(&reply.entry).ok());
        let status = reply.as_ref().and_then(|reply| reply.get("status")?.as_str());
        if status == Some("completed") { Ok(()) } else { Err(StoreError::unexpected(doing)) }
    }
}
