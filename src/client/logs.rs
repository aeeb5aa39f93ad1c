//! The log of a job: read once, or followed while the job runs.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Client, ClientError};
use crate::proto::job::JobId;
use crate::store::{Blocking, LogLine, Store, StoreError};

/// The wait for lines of one read, before the job's state is checked.
const WAIT: Duration = Duration::from_millis(500);

/// The lines of one reading of a search.
const SEARCH_PORTION: usize = 2_000;

impl Client {
    /// Reads up to `limit` lines of a job's log, after a given line or from the start.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`] if neither log nor job exists.
    pub async fn get_job_logs(
        &self,
        id: &JobId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LogLine>, ClientError> {
        let lines = self.of(id)?.read_log(id, after, limit).await?;
        if lines.is_empty() && after.is_none() {
            self.get_job_status(id).await?;
        }
        Ok(lines)
    }

    /// Reads the last `limit` lines of a job's log, the oldest first; none if there is no log.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn get_last_job_logs(
        &self,
        id: &JobId,
        limit: usize,
    ) -> Result<Vec<LogLine>, ClientError> {
        Ok(self.of(id)?.read_log_end(id, limit).await?)
    }

    /// Reads the last `limit` lines of a job's log before a given line, or before its end, the oldest first. With a
    /// text only those that have it, in any case of its letters; progress is none of them.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn get_job_logs_before(
        &self,
        id: &JobId,
        before: Option<&str>,
        text: &str,
        limit: usize,
    ) -> Result<Vec<LogLine>, ClientError> {
        let store = self.of(id)?;
        if text.is_empty() {
            return Ok(store.read_log_before(id, before, limit).await?);
        }
        let text = text.to_lowercase();
        let has_text =
            |line: &LogLine| line.progress.is_none() && line.line.to_lowercase().contains(&text);
        let (mut found, mut before) = (Vec::new(), before.map(str::to_owned));
        while found.len() < limit {
            let lines = store.read_log_before(id, before.as_deref(), SEARCH_PORTION).await?;
            let is_start = lines.len() < SEARCH_PORTION;
            before = lines.first().map(|line| line.id.clone());
            found.extend(lines.into_iter().rev().filter(has_text).take(limit - found.len()));
            if is_start {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    /// Follows a job's log from its start to the job's end, on its own connection.
    pub fn follow_job_logs(&self, id: &JobId) -> LogFollower {
        LogFollower::new(self.of_or_home(id).clone(), id.clone(), None)
    }

    /// Follows a job's log from a position on, as [`LogLine::id`] and [`LogLine::place_before`]
    /// give it.
    pub fn follow_job_logs_after(&self, id: &JobId, place: String) -> LogFollower {
        LogFollower::new(self.of_or_home(id).clone(), id.clone(), Some(place))
    }

    /// Returns the time of Redis's clock, which logs and schedules use.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn now(&self) -> Result<Timestamp, ClientError> {
        Ok(self.store.now().await?)
    }
}

/// Reads a job's log until the job ends.
pub struct LogFollower {
    store: Store,
    connection: Blocking,
    id: JobId,
    after: Option<String>,
    ended: bool,
    /// The text after the last line.
    unfinished: String,
    /// The time of the next look at the state while lines come.
    look_at: Instant,
}

impl LogFollower {
    pub(super) fn new(store: Store, id: JobId, after: Option<String>) -> Self {
        let (connection, unfinished) = (store.blocking(), String::new());
        Self { connection, store, id, after, ended: false, unfinished, look_at: Instant::now() }
    }

    /// Returns the text after the last line that has no line end yet, such as a progress bar or a question; empty
    /// if there is none. Its line comes as any other once it has ended.
    pub fn unfinished(&self) -> &str {
        &self.unfinished
    }

    /// Waits for the next lines, without a bound; none if only [`LogFollower::unfinished`] has changed; `None`
    /// once the job has ended and its log is read. Can be cancelled at any time.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], [`ClientError::Store`].
    pub async fn next(&mut self) -> Result<Option<Vec<LogLine>>, ClientError> {
        loop {
            if self.ended {
                self.unfinished.clear();
                let lines = self.store.read_log(&self.id, self.after.as_deref(), 1000).await?;
                self.after = lines.last().map(|line| line.id.clone()).or(self.after.take());
                return Ok(Some(lines).filter(|lines| !lines.is_empty()));
            }
            let lines = self.wait().await?;
            // The log is complete before a job is terminal, so nothing comes after an empty read.
            let found = if lines.is_empty() || Instant::now() >= self.look_at {
                let found = self.store.state_and_unfinished(&self.id).await;
                self.look_at = Instant::now() + WAIT;
                Some(found)
            } else {
                None
            };
            if !lines.is_empty() {
                self.after = lines.last().map(|line| line.id.clone());
                // What stood before may be one of these lines.
                let found = found.and_then(Result::ok).flatten();
                self.unfinished = found.map(|(_, unfinished)| unfinished).unwrap_or_default();
                return Ok(Some(lines));
            }
            let found = found.transpose()?.flatten();
            let (status, unfinished) =
                found.ok_or_else(|| ClientError::NoSuchJob(self.id.clone()))?;
            self.ended = status.is_terminal();
            if self.unfinished != unfinished {
                self.unfinished = unfinished;
                return Ok(Some(Vec::new()));
            }
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
