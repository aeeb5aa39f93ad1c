//! Following the log of a job while it runs.

use std::time::Duration;

use super::ClientError;
use crate::proto::job::JobId;
use crate::store::{Blocking, LogLine, Store, StoreError};

/// How long one read waits for lines before the job's state is looked at.
const WAIT: Duration = Duration::from_millis(500);

/// Reads a job's log to the job's end.
pub struct LogFollower {
    store: Store,
    connection: Blocking,
    id: JobId,
    after: Option<String>,
    ended: bool,
}

impl LogFollower {
    pub(super) fn new(store: Store, id: JobId) -> Self {
        Self { connection: store.blocking(), store, id, after: None, ended: false }
    }

    /// The next lines; `None` once the job has ended and its log is read. Waits as long as it
    /// takes; may be given up at any time.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], [`ClientError::Store`].
    pub async fn next(&mut self) -> Result<Option<Vec<LogLine>>, ClientError> {
        loop {
            if self.ended {
                let lines = self.store.read_log(&self.id, self.after.as_deref(), 1000).await?;
                self.after = lines.last().map(|line| line.id.clone()).or(self.after.take());
                return Ok(Some(lines).filter(|lines| !lines.is_empty()));
            }
            let lines = self.wait().await?;
            if !lines.is_empty() {
                self.after = lines.last().map(|line| line.id.clone());
                return Ok(Some(lines));
            }
            // The log is whole before a job is terminal: what is read after that is all of it.
            let outcome = self.store.outcome(&self.id).await?;
            let (status, _) = outcome.ok_or_else(|| ClientError::NoSuchJob(self.id.clone()))?;
            self.ended = status.is_terminal();
        }
    }

    /// Tells the follower that the job has ended, so that it reads the rest without waiting.
    pub fn job_ended(&mut self) {
        self.ended = true;
    }

    async fn wait(&mut self) -> Result<Vec<LogLine>, StoreError> {
        self.store.follow_log(&mut self.connection, &self.id, self.after.as_deref(), WAIT).await
    }
}
