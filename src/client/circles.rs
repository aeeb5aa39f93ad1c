//! Scripts for a circle of rhailib that rhailib's own workers still serve.

use super::wait::{POP, WaitBound};
use super::{Client, ClientError, Result};
use crate::proto::job::JobId;
use crate::proto::legacy::Circle;
use crate::store::TaskEnd;

impl Client {
    /// Writes a task into a circle of rhailib, waits for its reply and returns its output. A worker of rhailib runs it, or
    /// Hero itself where a supervisor serves the circle. It is no job: it has no settings, and nothing stops it.
    ///
    /// # Errors
    /// `ClientError::JobFailed`, `ClientError::GaveUp` with the id of the task.
    pub async fn run_in_circle(
        &self,
        circle: &Circle,
        script: &str,
        patience: Option<std::time::Duration>,
    ) -> Result<String> {
        let task = JobId::random();
        let submitted = self.store.legacy().submit_task(circle, &task, script).await;
        submitted.map_err(|error| ClientError::of_submission(&task, error))?;
        let bound = WaitBound::new("task", &task, patience);
        bound.answered();
        match bound.endure(|| self.end_of_task(&task, &bound)).await? {
            Ok(output) => Ok(output),
            Err(error) => Err(ClientError::JobFailed { id: task, error }),
        }
    }

    async fn end_of_task(&self, task: &JobId, bound: &WaitBound<'_>) -> Result<TaskEnd> {
        let mut connection = self.store.blocking();
        loop {
            if let Some(end) = connection.pop_task_reply(task, POP).await? {
                return Ok(end);
            }
            bound.answered();
            // A reply may have been lost with a connection, and comes after the details.
            if let Some(end) = self.store.legacy().task_end(task).await? {
                connection.pop_task_reply(task, POP).await?;
                return Ok(end);
            }
        }
    }
}
