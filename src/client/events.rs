//! The event log: every transition of every job, if `job.events` is set.

use std::time::Duration;

use jiff::Timestamp;

use super::{Client, ClientError};
use crate::store::{Blocking, JobEvent, LogLine, Store};

/// The wait of one read, after which a lost connection is noticed and restored.
const WAIT: Duration = Duration::from_secs(5);

/// Reads events as they happen, without end.
pub struct EventFollower {
    store: Store,
    connection: Blocking,
    after: String,
}

impl Client {
    /// Reads up to `limit` events after a given one, or from the oldest.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn events(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<JobEvent>, ClientError> {
        Ok(self.store.read_events(after, limit).await?)
    }

    /// Follows the events from a time on, on its own connection.
    pub fn follow_events(&self, since: Timestamp) -> EventFollower {
        let (connection, store) = (self.store.blocking(), self.store.clone());
        EventFollower { store, connection, after: LogLine::place_before(since) }
    }
}

impl EventFollower {
    /// Waits for the next events, at least one, without a bound. Can be cancelled at any time.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the next call continues at the same event.
    pub async fn next(&mut self) -> Result<Vec<JobEvent>, ClientError> {
        loop {
            let events = self.store.follow_events(&mut self.connection, &self.after, WAIT).await?;
            if let Some(last) = events.last() {
                self.after.clone_from(&last.place);
                return Ok(events);
            }
        }
    }
}
