//! The log of a job, read once; or followed while the job runs, with its states. The event log: every transition of every job, if
//! `job.events` is set.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::wait::OUTAGE_MAX;
use super::{Client, ClientError, EventClient, JobClient, LogClient, Result, SystemClient};
use crate::proto::job::{JobId, JobStatus};
use crate::store::{Backoff, Blocking, JobEvent, LogLine, Shards, Store};

/// The first wait for lines, before the state is read. It doubles while nothing happens.
const WAIT: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_millis(500);
/// The maximum number of lines of one read.
const LINES: usize = 1000;
/// The lines of one reading of a search.
const SEARCH_PORTION: usize = 2_000;
/// The wait of one read, before a lost connection is noticed and restored.
const EVENTS_WAIT: Duration = Duration::from_secs(5);
/// The time between two looks at several shards.
const PAUSE: Duration = Duration::from_millis(200);
const EVENTS_PER_READ: usize = 1000;

pub struct JobFollower {
    store: Store,
    connection: Blocking,
    id: JobId,
    after: String,
    status: Option<JobStatus>,
    unfinished: String,
    wait: Duration,
    created_at: Option<Timestamp>,
    /// When Redis last answered.
    answered_at: Instant,
}

/// The next part of a job's course.
#[derive(Debug, Clone, PartialEq)]
pub struct JobNews {
    pub status: JobStatus,
    pub lines: Vec<LogLine>,
    /// The text after the last line of its log that has no line end yet; empty if there is none.
    pub unfinished: String,
    /// True if it has ended and these are its last lines.
    pub is_last: bool,
}

impl JobClient<'_> {
    /// Follows the states of a job, and its log after a place, on its own connection.
    pub fn follow(self, id: &JobId, after: String) -> JobFollower {
        let store = self.client.of_or_home(id).clone();
        let connection = store.blocking();
        JobFollower {
            store,
            connection,
            id: id.clone(),
            after,
            status: None,
            unfinished: String::new(),
            wait: WAIT,
            created_at: None,
            answered_at: Instant::now(),
        }
    }

    /// Reads the state of a job, and the text after the last line of its log that has no line end yet; `None` if it is
    /// gone.
    pub async fn state_and_unfinished(self, id: &JobId) -> Result<Option<(JobStatus, String)>> {
        let found = self.client.of(id)?.jobs().state_and_unfinished(id).await?;
        Ok(found.map(|(status, unfinished, _)| (status, unfinished)))
    }

    /// Refuses a later job that has the id of the one that was created at this time.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], [`ClientError::Store`].
    pub async fn check_same(self, id: &JobId, created_at: Option<Timestamp>) -> Result<()> {
        check_same(self.client.of_or_home(id), id, created_at).await
    }
}

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
    ) -> Result<Vec<LogLine>> {
        let lines = self.of(id)?.logs().read(id, after, limit).await?;
        if lines.is_empty() && after.is_none() {
            self.get_job_status(id).await?;
        }
        Ok(lines)
    }
}

impl LogClient<'_> {
    /// Reads the last `limit` lines of a job's log, the oldest first; none if there is no log.
    pub async fn last(self, id: &JobId, limit: usize) -> Result<Vec<LogLine>> {
        Ok(self.client.of(id)?.logs().read_before(id, None, limit).await?)
    }

    /// Reads the last `limit` lines of a job's log before a given line, or before its end, the oldest first. With a
    /// text only those that have it, in any case of its letters; progress is none of them.
    pub async fn before(
        self,
        id: &JobId,
        before: Option<&str>,
        text: &str,
        limit: usize,
    ) -> Result<Vec<LogLine>> {
        let store = self.client.of(id)?;
        if text.is_empty() {
            return Ok(store.logs().read_before(id, before, limit).await?);
        }
        let text = text.to_lowercase();
        let has_text =
            |line: &LogLine| line.progress.is_none() && line.line.to_lowercase().contains(&text);
        let (mut found, mut before) = (Vec::new(), before.map(str::to_owned));
        while found.len() < limit {
            let lines = store.logs().read_before(id, before.as_deref(), SEARCH_PORTION).await?;
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
    pub fn follow(self, id: &JobId) -> LogFollower {
        self.follow_after(id, "0-0".to_owned())
    }

    /// Follows a job's log from a position on, as [`LogLine::id`] and [`LogLine::place_before`]
    /// give it.
    pub fn follow_after(self, id: &JobId, place: String) -> LogFollower {
        LogFollower { job: self.client.jobs().follow(id, place), ended: false }
    }
}

impl SystemClient<'_> {
    /// Returns the time of Redis's clock, which logs and schedules use.
    pub async fn now(self) -> Result<Timestamp> {
        Ok(self.client.store.now().await?)
    }
}

impl EventClient<'_> {
    /// Reads up to `limit` events after a given one, or from the oldest.
    pub async fn list(self, after: Option<&str>, limit: usize) -> Result<Vec<JobEvent>> {
        Ok(self.client.shards.read_events(after, limit).await?)
    }

    /// Follows the events from a time on, on its own connection.
    pub fn follow(self, since: Timestamp) -> EventFollower {
        let (connection, shards) = (self.client.store.blocking(), self.client.shards.clone());
        EventFollower { shards, connection, after: LogLine::place_before(since) }
    }
}

async fn check_same(store: &Store, id: &JobId, created_at: Option<Timestamp>) -> Result<()> {
    if created_at.is_some() { state_of(store, id, created_at).await.map(drop) } else { Ok(()) }
}

/// Reads the state and the unfinished line of the job that was created at this time: a later one with its id is none.
async fn state_of(
    store: &Store,
    id: &JobId,
    created_at: Option<Timestamp>,
) -> Result<(JobStatus, String)> {
    let found = store.jobs().state_and_unfinished(id).await?;
    let is_later =
        |at: Option<Timestamp>| created_at.is_some_and(|own| at.is_some_and(|at| at != own));
    let found = found.filter(|(_, _, at)| !is_later(*at));
    let (status, unfinished, _) = found.ok_or_else(|| ClientError::NoSuchJob(id.clone()))?;
    Ok((status, unfinished))
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
    pub async fn next(&mut self) -> Result<JobNews> {
        loop {
            // The log is complete before a job has ended: read after the state it has all lines.
            let (status, unfinished) = state_of(&self.store, &self.id, self.created_at).await?;
            self.answered_at = Instant::now();
            let is_news = self.status != Some(status) || self.unfinished != unfinished;
            self.unfinished = unfinished;
            if status.is_terminal() {
                let lines = self.read_on().await?;
                check_same(&self.store, &self.id, self.created_at).await?;
                let is_last = lines.len() < LINES;
                return Ok(self.noted(status, lines, is_last));
            }
            if is_news {
                return Ok(self.noted(status, Vec::new(), false));
            }
            let after = Some(self.after.as_str());
            let read = self.store.logs().follow(&mut self.connection, &self.id, after, self.wait);
            let lines = read.await?;
            if !lines.is_empty() {
                check_same(&self.store, &self.id, self.created_at).await?;
                // What stood after the last line may be one of these.
                self.unfinished.clear();
                return Ok(self.noted(status, lines, false));
            }
            self.wait = (self.wait * 2).min(WAIT_MAX);
        }
    }

    /// Reads the next lines without a wait.
    async fn read_on(&mut self) -> Result<Vec<LogLine>> {
        let lines = self.store.logs().read(&self.id, Some(&self.after), LINES).await?;
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

pub struct LogFollower {
    job: JobFollower,
    ended: bool,
}

impl LogFollower {
    /// Returns the text after the last line that has no line end yet, such as a progress bar or a question; empty
    /// if there is none. Its line comes as any other once it has ended.
    pub fn unfinished(&self) -> &str {
        &self.job.unfinished
    }

    /// Waits for the next lines, without a bound; none if only [`LogFollower::unfinished`] has changed; `None`
    /// once the job has ended and its log is read. Can be cancelled at any time.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Store`], for an outage of Redis once it has lasted for as long as waits last
    /// through.
    pub async fn next(&mut self) -> Result<Option<Vec<LogLine>>> {
        let mut backoff = Backoff::default();
        loop {
            match self.next_lines().await {
                Err(ClientError::Store(error))
                    if error.is_transient() && self.job.answered_at.elapsed() < OUTAGE_MAX =>
                {
                    tokio::time::sleep(backoff.failed()).await;
                }
                lines => return lines,
            }
        }
    }

    async fn next_lines(&mut self) -> Result<Option<Vec<LogLine>>> {
        while !self.ended {
            let before = self.job.unfinished.clone();
            let news = self.job.next().await?;
            self.ended = news.is_last;
            if !news.lines.is_empty() || (news.unfinished != before && !news.is_last) {
                return Ok(Some(news.lines));
            }
        }
        self.job.unfinished.clear();
        Ok(Some(self.job.read_on().await?).filter(|lines| !lines.is_empty()))
    }

    /// Marks the job as ended, so that the follower reads the rest without waiting.
    pub fn job_ended(&mut self) {
        self.ended = true;
    }
}

pub struct EventFollower {
    shards: Shards,
    connection: Blocking,
    after: String,
}

impl EventFollower {
    /// Waits for the next events, at least one, without a bound. Can be cancelled at any time.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the next call continues at the same event.
    pub async fn next(&mut self) -> Result<Vec<JobEvent>> {
        loop {
            let events = if let [only] = self.shards.all() {
                only.events().follow(&mut self.connection, &self.after, EVENTS_WAIT).await?
            } else {
                self.shards.read_events(Some(&self.after), EVENTS_PER_READ).await?
            };
            if let Some(last) = events.last() {
                self.after.clone_from(&last.place);
                return Ok(events);
            }
            if self.shards.all().len() > 1 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
