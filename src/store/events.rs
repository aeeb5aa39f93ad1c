//! The event log: a capped stream of the transitions of all jobs, written by the scripts that make
//! them.

use std::fmt;
use std::time::Duration;

use redis::streams::{StreamId, StreamRangeReply};

use super::connection::Blocking;
use super::text::{stream_text, written_at};
use super::{EventStore, Result, Shards};
use crate::proto::shard::{Shard, ShardCount};

/// A transition of a job.
// Its names are unchecked text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "LoggedEvent")]
pub struct JobEvent {
    /// Its place among all events: milliseconds by Redis's clock, and a number.
    pub place: String,
    /// The id of the job.
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
        written_at(&self.place)
    }
}

/// A place in the merged log of several shards, which orders all of their events: the milliseconds, and a number that
/// has the shard in its last part. So one place reports how far a reader came in every shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MergedPlace(u64, u64);

impl MergedPlace {
    const SHARDS: u64 = ShardCount::MAX as u64;

    /// Reads a place; the start if it cannot be read.
    fn read(text: &str) -> Self {
        let numbers =
            text.split_once('-').and_then(|(ms, n)| Some((ms.parse().ok()?, n.parse().ok()?)));
        numbers.map_or(Self(0, 0), |(ms, number)| Self(ms, number))
    }

    /// Returns the place of an event of a shard.
    fn of(own: &str, shard: Shard) -> Self {
        let Self(ms, number) = Self::read(own);
        Self(ms, number.saturating_mul(Self::SHARDS).saturating_add(u64::from(shard.number())))
    }

    /// Returns the last place of a shard that is not after it.
    fn in_shard(self, shard: Shard) -> String {
        let Self(ms, number) = self;
        match number.checked_sub(u64::from(shard.number())) {
            Some(rest) => format!("{ms}-{}", rest / Self::SHARDS),
            None => format!("{}-{}", ms.saturating_sub(1), u64::MAX),
        }
    }
}

impl fmt::Display for MergedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

impl Shards {
    /// Reads up to `limit` events of all shards after the place named, or from the first that is kept. With several
    /// shards, an event comes once the clock of each of them has passed it: none comes later that stands before it.
    pub async fn read_events(&self, after: Option<&str>, limit: usize) -> Result<Vec<JobEvent>> {
        if let [only] = self.all() {
            return only.events().read(after, limit).await;
        }
        let after = MergedPlace::read(after.unwrap_or_default());
        let read = self.each(|store| store.events().events_in_order(after, limit)).await?;
        let complete = read.iter().map(|(_, until)| *until).min().unwrap_or(after);
        let mut events: Vec<(MergedPlace, JobEvent)> =
            read.into_iter().flat_map(|(events, _)| events).collect();
        events.retain(|(place, _)| *place <= complete);
        events.sort_by_key(|(place, _)| *place);
        events.truncate(limit);
        Ok(events.into_iter().map(|(_, event)| event).collect())
    }
}

impl EventStore<'_> {
    /// Reads events of this shard with their places among all, and the place before which there are no others.
    async fn events_in_order(
        self,
        after: MergedPlace,
        limit: usize,
    ) -> Result<(Vec<(MergedPlace, JobEvent)>, MergedPlace)> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("TIME");
        let read = pipeline.cmd("XRANGE").arg(self.store.keys.events());
        read.arg(format!("({}", after.in_shard(self.store.shard))).arg("+").arg("COUNT").arg(limit);
        let ((s, us), reply): ((u64, u64), StreamRangeReply) =
            self.store.link.pipeline("reading events", &pipeline).await?;
        let placed = |entry| {
            let event = event(entry);
            let place = MergedPlace::of(&event.place, self.store.shard);
            (place, JobEvent { place: place.to_string(), ..event })
        };
        let events: Vec<_> = reply.ids.into_iter().map(placed).collect();
        let now_ms = s * 1000 + us / 1000;
        let full = events.last().filter(|_| events.len() >= limit).map(|(place, _)| *place);
        Ok((events, full.unwrap_or(MergedPlace(now_ms.saturating_sub(1), u64::MAX))))
    }

    /// Reads up to `limit` events after the place named, or from the first that is kept.
    pub async fn read(self, after: Option<&str>, limit: usize) -> Result<Vec<JobEvent>> {
        let from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let arguments = (self.store.keys.events(), from, "+", "COUNT", limit);
        let reply: StreamRangeReply =
            self.store.link.command("reading events", "XRANGE", arguments).await?;
        Ok(reply.ids.into_iter().map(event).collect())
    }

    /// Waits up to `timeout` for events after the place named, on a connection of its own.
    pub async fn follow(
        self,
        connection: &mut Blocking,
        after: &str,
        timeout: Duration,
    ) -> Result<Vec<JobEvent>> {
        let entries =
            connection.follow("following events", self.store.keys.events(), after, timeout).await?;
        Ok(entries.into_iter().map(event).collect())
    }
}

fn event(entry: StreamId) -> JobEvent {
    let text = |name| stream_text(&entry, name);
    let (id, script_type) = (text("id"), text("type"));
    let (from, to, actor) = (text("from"), text("to"), text("actor"));
    JobEvent { id, script_type, from, to, actor, place: entry.id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cursor_holds_the_position_of_a_reader_in_every_shard() {
        let shards: Vec<Shard> = ShardCount::new(4).expect("legal").shards().collect();
        let owns = ["0-1", "5-0", "5-1", "5-7", "6-0"];
        let all: Vec<(MergedPlace, &str, Shard)> = owns
            .iter()
            .flat_map(|own| shards.iter().map(|shard| (MergedPlace::of(own, *shard), *own, *shard)))
            .collect();
        for (reached, _, _) in &all {
            for (place, own, shard) in &all {
                let from = MergedPlace::read(&reached.in_shard(*shard));
                let is_behind = MergedPlace::read(own) > from;
                assert_eq!(is_behind, place > reached, "{own} of {shard} after {reached}");
            }
        }
    }
}
