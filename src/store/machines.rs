//! The machines that actors were seen on, also while none of them is live.

use std::time::Duration;

use jiff::Timestamp;

use super::text::StoredText;
use super::{PresenceOf, Result, Store};
use crate::proto::labels::{Labels, label};
use crate::proto::target::ActorId;

const READING: &str = "reading the machines of actors";

/// The actors that one call notes or reads.
const PER_CALL: usize = 1000;

/// An actor on a machine, as a supervisor last saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenActor {
    pub actor: ActorId,
    /// Its labels; one is the machine.
    pub labels: Labels,
    pub at: Timestamp,
}

impl SeenActor {
    fn parse(actor: &str, at_us: i64, labels: &str) -> Option<Self> {
        let (labels, at) = (serde_json::from_str(labels).ok()?, Timestamp::from_microsecond(at_us));
        Some(Self { actor: actor.parse().ok()?, labels, at: at.ok()? })
    }
}

impl Store {
    /// Notes on which machines these actors live, and forgets those that were not seen for a time. Actors without the
    /// label `machine` are on none: foreign ones, and older versions.
    pub async fn note_machines(&self, live: &[PresenceOf], kept: Duration) -> Result<u64> {
        let mut forgotten = 0;
        let mut parts: Vec<&[PresenceOf]> = live.chunks(PER_CALL).collect();
        // Without a live actor as well, older ones are forgotten.
        parts.resize(parts.len().max(1), &[]);
        for part in parts {
            let mut script = self.scripts.note_machines.prepare_invoke();
            script.arg(kept.as_secs());
            for of in part {
                if label(&of.presence.labels, "machine").is_some() {
                    let labels = serde_json::to_string(&of.presence.labels).unwrap_or_default();
                    script.arg(of.actor.to_string()).arg(labels);
                }
            }
            forgotten += self.invoke::<u64>("noting the machines of actors", &script).await?;
        }
        Ok(forgotten)
    }

    /// Returns the actors that were seen on machines, the longest absent first.
    pub async fn seen_actors(&self) -> Result<Vec<SeenActor>> {
        let mut found = Vec::new();
        for first in (0..).step_by(PER_CALL) {
            let arguments = (self.keys.actors_seen(), first, first + PER_CALL - 1, "WITHSCORES");
            let page: Vec<(StoredText, i64)> =
                self.link.command(READING, "ZRANGE", arguments).await?;
            if !page.is_empty() {
                let actors: Vec<&str> = page.iter().map(|(actor, _)| &**actor).collect();
                let arguments = (self.keys.actor_labels(), actors);
                let labels: Vec<Option<StoredText>> =
                    self.link.command(READING, "HMGET", arguments).await?;
                let seen = page.iter().zip(labels);
                found.extend(seen.filter_map(|((actor, at), labels)| {
                    SeenActor::parse(actor, *at, labels.as_deref()?)
                }));
            }
            if page.len() < PER_CALL {
                break;
            }
        }
        Ok(found)
    }

    /// Forgets actors that were seen on machines.
    pub async fn forget_seen(&self, actors: &[ActorId]) -> Result<()> {
        for part in actors.chunks(PER_CALL) {
            let members: Vec<String> = part.iter().map(ToString::to_string).collect();
            let mut pipeline = redis::pipe();
            pipeline.atomic();
            pipeline.cmd("ZREM").arg(self.keys.actors_seen()).arg(&members).ignore();
            pipeline.cmd("HDEL").arg(self.keys.actor_labels()).arg(&members).ignore();
            self.link.pipeline::<()>("forgetting a machine", &pipeline).await?;
        }
        Ok(())
    }
}
