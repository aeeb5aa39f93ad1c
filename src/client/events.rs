//! The event log: every transition of every job, if `job.events` is set.

use std::time::Duration;

use jiff::Timestamp;

use super::{Client, ClientError};
use crate::store::{Blocking, JobEvent, LogLine, Shards};

/// The wait of one read, before a lost connection is noticed and restored.
const WAIT: Duration = Duration::from_secs(5);

/// The time between two looks at several shards.
const PAUSE: Duration = Duration::from_millis(200);
/// The maximum number of events of one look at several shards.
const EVENTS_PER_READ: usize = 1000;

/// Reads events as they happen, without end.
pub struct EventFollower {
    shards: Shards,
    connection: Blocking,
    after: String,
}

impl Client {
    /// Reads up to `limit` events after a given one, or from the oldest.
    pub async fn events(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<JobEvent>, ClientError> {
        Ok(self.shards.read_events(after, limit).await?)
    }

    /// Follows the events from a time on, on its own connection.
    pub fn follow_events(&self, since: Timestamp) -> EventFollower {
        let (connection, shards) = (self.store.blocking(), self.shards.clone());
        EventFollower { shards, connection, after: LogLine::place_before(since) }
    }
}

impl EventFollower {
    /// Waits for the next events, at least one, without a bound. Can be cancelled at any time.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the next call continues at the same event.
    pub async fn next(&mut self) -> Result<Vec<JobEvent>, ClientError> {
        loop {
            let events = if let [only] = self.shards.all() {
                only.follow_events(&mut self.connection, &self.after, WAIT).await?
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
