//! The event log: every transition of every job, where `job.events` asks for it.

use std::time::Duration;

use jiff::Timestamp;

use super::{Client, ClientError};
use crate::store::{Blocking, JobEvent, LogLine, Store};

/// How long one read waits. Only so that a lost connection is noticed; it is then made again.
const WAIT: Duration = Duration::from_secs(5);

/// Reads events as they happen, for ever.
pub struct EventFollower {
    store: Store,
    connection: Blocking,
    after: String,
}

impl Client {
    /// Reads up to `limit` events after the place of one, or from the first that is kept.
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

    /// Follows the events from a time on, on a connection of its own.
    pub fn follow_events(&self, since: Timestamp) -> EventFollower {
        let (connection, store) = (self.store.blocking(), self.store.clone());
        EventFollower { store, connection, after: LogLine::place_before(since) }
    }
}

impl EventFollower {
    /// The next events, at least one; waits as long as it takes. May be given up at any time.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the next call goes on where this one was.
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
