//! The log of a job: read once, or followed while the job runs.

use jiff::Timestamp;

use super::{Client, ClientError, JobFollower};
use crate::proto::job::JobId;
use crate::store::LogLine;

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
    pub async fn get_last_job_logs(
        &self,
        id: &JobId,
        limit: usize,
    ) -> Result<Vec<LogLine>, ClientError> {
        Ok(self.of(id)?.read_log_before(id, None, limit).await?)
    }

    /// Reads the last `limit` lines of a job's log before a given line, or before its end, the oldest first. With a
    /// text only those that have it, in any case of its letters; progress is none of them.
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
        self.follow_job_logs_after(id, "0-0".to_owned())
    }

    /// Follows a job's log from a position on, as [`LogLine::id`] and [`LogLine::place_before`]
    /// give it.
    pub fn follow_job_logs_after(&self, id: &JobId, place: String) -> LogFollower {
        LogFollower { job: self.follow_job(id, place), ended: false }
    }

    /// Returns the time of Redis's clock, which logs and schedules use.
    pub async fn now(&self) -> Result<Timestamp, ClientError> {
        Ok(self.store.now().await?)
    }
}

/// Reads a job's log until the job ends.
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
    /// [`ClientError::NoSuchJob`], [`ClientError::Store`].
    pub async fn next(&mut self) -> Result<Option<Vec<LogLine>>, ClientError> {
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

    /// Tells the follower that the job has ended, so that it reads the rest without waiting.
    pub fn job_ended(&mut self) {
        self.ended = true;
    }
}
