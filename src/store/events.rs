//! The event log: a capped stream of the transitions of all jobs, written by the scripts that make
//! them.

use std::time::Duration;

use redis::streams::{StreamId, StreamRangeReply, StreamReadReply};

use super::attempts::millis;
use super::connection::Blocking;
use super::{Store, StoreError};

/// One transition of one job. Its names are unchecked text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct JobEvent {
    /// Its position in the stream, to continue after it: `MILLISECONDS-NUMBER` by Redis's clock.
    pub place: String,
    /// The job.
    pub id: String,
    /// Its script type; empty if none was known yet.
    #[serde(rename = "type")]
    pub script_type: String,
    /// The state it left; empty if it was new or the state is unknown.
    pub from: String,
    /// The state it is in, or `deleted`.
    pub to: String,
    /// The actor that runs it, or ran it last; empty if none did.
    pub actor: String,
}

impl JobEvent {
    /// When it happened, by Redis's clock.
    pub fn time(&self) -> Option<jiff::Timestamp> {
        let (ms, _) = self.place.split_once('-')?;
        jiff::Timestamp::from_millisecond(ms.parse().ok()?).ok()
    }
}

impl Store {
    /// Reads up to `limit` events after the place named, or from the first that is kept.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read_events(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<JobEvent>, StoreError> {
        let from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let mut command = redis::cmd("XRANGE");
        command.arg(self.keys.events()).arg(from).arg("+").arg("COUNT").arg(limit);
        let reply: StreamRangeReply = self.link.query("reading events", &command).await?;
        Ok(reply.ids.into_iter().map(event).collect())
    }

    /// Waits up to `timeout` for events after the place named, on a connection of its own.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn follow_events(
        &self,
        connection: &mut Blocking,
        after: &str,
        timeout: Duration,
    ) -> Result<Vec<JobEvent>, StoreError> {
        const EVENTS_PER_READ: usize = 1000;
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(EVENTS_PER_READ).arg("BLOCK").arg(millis(timeout));
        command.arg("STREAMS").arg(self.keys.events()).arg(after);
        let reply: Option<StreamReadReply> =
            connection.query("following events", &command, timeout).await?;
        let entries = reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids);
        Ok(entries.map(event).collect())
    }
}

fn event(entry: StreamId) -> JobEvent {
    let text = |name: &str| {
        let bytes = entry.get::<Vec<u8>>(name).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (id, script_type) = (text("id"), text("type"));
    let (from, to, actor) = (text("from"), text("to"), text("actor"));
    JobEvent { id, script_type, from, to, actor, place: entry.id }
}
