//! Presence of actors: identities taken, kept and given up, the list of live actors, and the machines that actors were seen on,
//! also while none of them is live.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::attempts::millis;
use super::text::{Legal, StoredText};
use super::{ActorStore, Result, StoreError};
use crate::proto::job::{BootId, JobId};
use crate::proto::labels::{Labels, label};
use crate::proto::message::Presence;
use crate::proto::selector::Selector;
use crate::proto::target::{ActorId, ScriptType, Target};
use crate::proto::word_table::words;

pub(super) const PRESENCE_TTL_SECS: u64 = 15;

/// The running jobs of one process that are looked at.
const READ_MAX: usize = 2000;

/// The answer to the attempt to take an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appearance {
    Taken,
    /// Another boot holds it: its presence, as it is written.
    Held(String),
}

words! {
    /// The answer to a heartbeat.
    Renewal, "answer", "a word of heartbeat.lua";
    Kept = "ok",
    /// The same, and no supervisor is live.
    Unsupervised = "unsupervised",
    /// The lease had run out, or another process holds one of its names: it has lost its jobs.
    Lost = "lost",
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresenceOf {
    pub actor: ActorId,
    pub presence: Presence,
}

impl PresenceOf {
    /// Returns whether it claims the jobs of a target; `selector` is the expression of a target that has one.
    pub fn claims_from(&self, target: &Target, selector: Option<&Selector>) -> bool {
        match target.selector() {
            None => self.actor.targets_with(&[]).contains(target),
            Some(_) => {
                *target.script_type() == self.actor.script_type
                    && self.presence.boot_id.is_some()
                    && selector.is_some_and(|selector| selector.matches(&self.presence.labels))
            }
        }
    }
}

impl ActorStore<'_> {
    /// The machine of a boot; `None` once the boot is gone.
    pub async fn hostname_of(self, boot: &BootId) -> Result<Option<String>> {
        let arguments = (self.store.keys.boot_hosts(), boot.as_str());
        self.store.link.command("reading the machine of an actor", "HGET", arguments).await
    }

    /// Takes an identity for a boot, unless a live one holds it. `replacing` is a presence that
    /// may be overwritten, exactly as it was read: the presence of a process known to be gone.
    pub async fn appear(
        self,
        actor: &ActorId,
        presence: &Presence,
        lease: Duration,
        replacing: Option<&str>,
    ) -> Result<Appearance> {
        let boot = presence.boot_id.as_ref().map_or("", BootId::as_str);
        let times = (PRESENCE_TTL_SECS, millis(lease));
        let replacing = replacing.unwrap_or_default();
        let arguments = (boot, actor.to_string(), presence.to_json(), times, replacing);
        let held: String = self
            .store
            .run_script("taking an identity", &self.store.scripts.appear, arguments)
            .await?;
        Ok(if held.is_empty() { Appearance::Taken } else { Appearance::Held(held) })
    }

    /// Extends the lease of a boot and refreshes its actors' presence. `beats` are those that it may have written.
    pub async fn heartbeat(
        self,
        boot: &BootId,
        lease: Duration,
        actors: &[PresenceOf],
        beats: &[String],
    ) -> Result<Renewal> {
        const DOING: &str = "keeping the lease";
        let of_actor = |of: &PresenceOf| (of.actor.to_string(), of.presence.to_json());
        let presences: Vec<(String, String)> = actors.iter().map(of_actor).collect();
        let times = (millis(lease), PRESENCE_TTL_SECS);
        let arguments = (boot.as_str(), times, actors.len(), presences, beats);
        let word: String =
            self.store.run_script(DOING, &self.store.scripts.heartbeat, arguments).await?;
        StoreError::or_parsed(DOING, &word)
    }

    /// Gives up the identities of a boot. Returns how many jobs it still owned.
    pub async fn disappear(self, boot: &BootId, actors: &[ActorId]) -> Result<u64> {
        let names: Vec<String> = actors.iter().map(ToString::to_string).collect();
        let arguments = (boot.as_str(), names.len(), names);
        self.store
            .run_script("giving up an identity", &self.store.scripts.disappear, arguments)
            .await
    }

    /// Counts the running jobs of live actors: their heartbeats tell them only now and then. The number of
    /// an actor whose process has more than [`READ_MAX`] jobs, or that is foreign, stays as it was.
    pub async fn count_running(self, actors: &mut [PresenceOf]) -> Result<()> {
        const COUNTING: &str = "counting running jobs";
        let boots: BTreeSet<BootId> =
            actors.iter().filter_map(|of| of.presence.boot_id.clone()).collect();
        let running = |boot| ("ZRANGE", (self.store.keys.running(boot), 0, READ_MAX));
        let answers: Vec<Option<Vec<String>>> =
            self.store.link.each(COUNTING, &boots, running).await?;
        let (mut known, mut jobs) = (BTreeSet::new(), Vec::<JobId>::new());
        for (boot, answer) in boots.iter().zip(answers) {
            if let Some(ids) = answer.filter(|ids| ids.len() <= READ_MAX) {
                known.insert(boot);
                jobs.extend(ids.iter().filter_map(|id| id.parse().ok()));
            }
        }
        let mut running: BTreeMap<String, usize> = BTreeMap::new();
        let actor = |id| ("HGET", (self.store.keys.job(id), "actor"));
        let names: Vec<Option<String>> = self.store.link.each(COUNTING, &jobs, actor).await?;
        for name in names.into_iter().flatten() {
            *running.entry(name).or_default() += 1;
        }
        for PresenceOf { actor, presence } in actors {
            if presence.boot_id.as_ref().is_some_and(|boot| known.contains(boot)) {
                presence.running = running.get(&actor.to_string()).copied().unwrap_or_default();
            }
        }
        Ok(())
    }

    /// The actors of the last day, each with its last heartbeat, without those that have shut down.
    pub async fn last_heartbeats(self) -> Result<Vec<(ActorId, Timestamp)>> {
        let arguments = (self.store.keys.actors(), 0, -1, "WITHSCORES");
        let known: Vec<(StoredText, f64)> =
            self.store.link.command("listing actors", "ZRANGE", arguments).await?;
        let read = |(actor, at_us): (StoredText, f64)| {
            let since = SignedDuration::try_from_secs_f64(at_us / 1e6).ok()?;
            Some((actor.parse().ok()?, Timestamp::from_duration(since).ok()?))
        };
        Ok(known.into_iter().filter_map(read).collect())
    }

    /// The live actors, of one type if given, in order of their names.
    pub async fn list(self, script_type: Option<&ScriptType>) -> Result<Vec<PresenceOf>> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZRANGE").arg(self.store.keys.actors()).arg(0).arg(-1);
        pipeline.cmd("ZRANGE").arg(self.store.keys.foreign_actors()).arg(0).arg(-1);
        let (Legal(known), Legal(foreign)): (Legal<ActorId>, Legal<ActorId>) =
            self.store.link.pipeline("listing actors", &pipeline).await?;
        let known: BTreeSet<ActorId> = known
            .into_iter()
            .chain(foreign)
            .filter(|actor| script_type.is_none_or(|only| *only == actor.script_type))
            .collect();
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<String> = known.iter().map(|actor| self.store.keys.presence(actor)).collect();
        let texts: Vec<Option<Vec<u8>>> =
            self.store.link.command("listing actors", "MGET", keys).await?;
        let read = |(actor, text): (ActorId, Option<Vec<u8>>)| {
            Some(PresenceOf { actor, presence: Presence::parse(&text?).ok()? })
        };
        Ok(known.into_iter().zip(texts).filter_map(read).collect())
    }
}

const READING: &str = "reading the machines of actors";

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

impl ActorStore<'_> {
    /// Notes on which machines these actors live, and forgets those that were not seen for a time. Actors without the
    /// label `machine` are on none: foreign ones, and older versions.
    pub async fn note_machines(self, live: &[PresenceOf], kept: Duration) -> Result<u64> {
        let mut forgotten = 0;
        let mut parts: Vec<&[PresenceOf]> = live.chunks(PER_CALL).collect();
        // Without a live actor as well, older ones are forgotten.
        parts.resize(parts.len().max(1), &[]);
        for part in parts {
            let mut script = self.store.scripts.note_machines.prepare_invoke();
            script.arg(kept.as_secs());
            for of in part {
                if label(&of.presence.labels, "machine").is_some() {
                    let labels = serde_json::to_string(&of.presence.labels).unwrap_or_default();
                    script.arg(of.actor.to_string()).arg(labels);
                }
            }
            forgotten += self.store.invoke::<u64>("noting the machines of actors", &script).await?;
        }
        Ok(forgotten)
    }

    /// Returns the actors that were seen on machines, the longest absent first.
    pub async fn seen_actors(self) -> Result<Vec<SeenActor>> {
        let mut found = Vec::new();
        for first in (0..).step_by(PER_CALL) {
            let arguments =
                (self.store.keys.actors_seen(), first, first + PER_CALL - 1, "WITHSCORES");
            let page: Vec<(StoredText, i64)> =
                self.store.link.command(READING, "ZRANGE", arguments).await?;
            if !page.is_empty() {
                let actors: Vec<&str> = page.iter().map(|(actor, _)| &**actor).collect();
                let arguments = (self.store.keys.actor_labels(), actors);
                let labels: Vec<Option<StoredText>> =
                    self.store.link.command(READING, "HMGET", arguments).await?;
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
    pub async fn forget_seen(self, actors: &[ActorId]) -> Result<()> {
        for part in actors.chunks(PER_CALL) {
            let members: Vec<String> = part.iter().map(ToString::to_string).collect();
            let mut pipeline = redis::pipe();
            pipeline.atomic();
            pipeline.cmd("ZREM").arg(self.store.keys.actors_seen()).arg(&members).ignore();
            pipeline.cmd("HDEL").arg(self.store.keys.actor_labels()).arg(&members).ignore();
            self.store.link.pipeline::<()>("forgetting a machine", &pipeline).await?;
        }
        Ok(())
    }
}
