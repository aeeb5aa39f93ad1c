//! Follows a job: its states and the lines of its log, to its end.

use std::time::Duration;

use jiff::Timestamp;

use super::{Client, ClientError};
use crate::proto::job::{JobId, JobStatus};
use crate::store::{Blocking, LogLine, Store};

/// The first wait for lines, before the state is read. It doubles while nothing happens.
const WAIT: Duration = Duration::from_millis(50);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_millis(500);
/// The maximum number of lines of one read.
const LINES: usize = 1000;

/// Reads the states and the log of a job until it ends.
pub struct JobFollower {
    store: Store,
    connection: Blocking,
    id: JobId,
    after: String,
    status: Option<JobStatus>,
    pub(super) unfinished: String,
    wait: Duration,
    created_at: Option<Timestamp>,
}

/// The next part of a job's course.
#[derive(Debug, Clone, PartialEq)]
pub struct JobNews {
    /// Its state.
    pub status: JobStatus,
    /// The next lines of its log.
    pub lines: Vec<LogLine>,
    /// The text after the last line of its log that has no line end yet; empty if there is none.
    pub unfinished: String,
    /// True if it has ended and these are its last lines.
    pub is_last: bool,
}

impl Client {
    /// Follows the states of a job, and its log after a place, on its own connection.
    pub fn follow_job(&self, id: &JobId, after: String) -> JobFollower {
        let store = self.of_or_home(id).clone();
        let connection = store.blocking();
        let (id, unfinished) = (id.clone(), String::new());
        let (status, wait, created_at) = (None, WAIT, None);
        JobFollower { store, connection, id, after, status, unfinished, wait, created_at }
    }

    /// Reads the state of a job, and the text after the last line of its log that has no line end yet; `None` if it is
    /// gone.
    pub async fn state_and_unfinished(
        &self,
        id: &JobId,
    ) -> Result<Option<(JobStatus, String)>, ClientError> {
        let found = self.of(id)?.state_and_unfinished(id).await?;
        Ok(found.map(|(status, unfinished, _)| (status, unfinished)))
    }

    /// Refuses a later job that has the id of the one that was created at this time.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], [`ClientError::Store`].
    pub async fn check_same_job(
        &self,
        id: &JobId,
        created_at: Option<Timestamp>,
    ) -> Result<(), ClientError> {
        is_same(self.of_or_home(id), id, created_at).await
    }
}

/// Refuses a later job with the id of the one that was created at this time.
async fn is_same(
    store: &Store,
    id: &JobId,
    created_at: Option<Timestamp>,
) -> Result<(), ClientError> {
    let Some(own) = created_at else { return Ok(()) };
    let found = store.state_and_unfinished(id).await?;
    let is_gone = found.is_none_or(|(_, _, at)| at.is_some_and(|at| at != own));
    if is_gone { Err(ClientError::NoSuchJob(id.clone())) } else { Ok(()) }
}

impl JobFollower {
    /// Follows the job that was created at this time: a later one with its id is none.
    #[must_use]
    pub fn created_at(self, created_at: Option<Timestamp>) -> Self {
        Self { created_at, ..self }
    }

    /// Waits for the next state or the next lines. Can be cancelled at any time.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Store`]: the next call continues.
    pub async fn next(&mut self) -> Result<JobNews, ClientError> {
        loop {
            // The log is complete before a job has ended: read after the state it has all lines.
            let found = self.store.state_and_unfinished(&self.id).await?;
            let is_later = |at: Option<Timestamp>| {
                self.created_at.is_some_and(|own| at.is_some_and(|at| at != own))
            };
            let found = found.filter(|(_, _, created_at)| !is_later(*created_at));
            let (status, unfinished, _) =
                found.ok_or_else(|| ClientError::NoSuchJob(self.id.clone()))?;
            let is_news = self.status != Some(status) || self.unfinished != unfinished;
            self.unfinished = unfinished;
            if status.is_terminal() {
                let lines = self.read_on().await?;
                is_same(&self.store, &self.id, self.created_at).await?;
                let is_last = lines.len() < LINES;
                return Ok(self.noted(status, lines, is_last));
            }
            if is_news {
                return Ok(self.noted(status, Vec::new(), false));
            }
            let after = Some(self.after.as_str());
            let read = self.store.follow_log(&mut self.connection, &self.id, after, self.wait);
            let lines = read.await?;
            if !lines.is_empty() {
                is_same(&self.store, &self.id, self.created_at).await?;
                // What stood after the last line may be one of these.
                self.unfinished.clear();
                return Ok(self.noted(status, lines, false));
            }
            self.wait = (self.wait * 2).min(WAIT_MAX);
        }
    }

    /// Reads the next lines without a wait.
    pub(super) async fn read_on(&mut self) -> Result<Vec<LogLine>, ClientError> {
        let lines = self.store.read_log(&self.id, Some(&self.after), LINES).await?;
        self.note(&lines);
        Ok(lines)
    }

    fn note(&mut self, lines: &[LogLine]) {
        if let Some(last) = lines.last() {
            self.after.clone_from(&last.id);
        }
    }

    fn noted(&mut self, status: JobStatus, lines: Vec<LogLine>, is_last: bool) -> JobNews {
        self.note(&lines);
        self.status = Some(status);
        self.wait = WAIT;
        JobNews { status, lines, unfinished: self.unfinished.clone(), is_last }
    }
}
