//! Presence of actors: identities taken, kept and given up, and the list of live actors.

use std::collections::BTreeSet;
use std::time::Duration;

use super::attempts::millis;
use super::{Store, StoreError};
use crate::proto::job::BootId;
use crate::proto::message::Presence;
use crate::proto::target::{ActorId, ScriptType};

/// The TTL of presence after its last refresh.
pub(super) const PRESENCE_TTL_SECS: u64 = 15;

/// The answer to the attempt to take an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appearance {
    /// The boot holds it.
    Taken,
    /// Another boot holds it: its presence, as it is written.
    Held(String),
}

/// An actor and its presence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresenceOf {
    /// The actor.
    pub actor: ActorId,
    /// Its presence.
    pub presence: Presence,
}

impl Store {
    /// The machine of a boot; `None` once the boot is gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn hostname_of(&self, boot: &BootId) -> Result<Option<String>, StoreError> {
        let mut command = redis::cmd("HGET");
        command.arg(self.keys.boot_hosts()).arg(boot.as_str());
        self.link.query("reading the machine of an actor", &command).await
    }

    /// Takes an identity for a boot, unless a live one holds it. `replacing` is a presence that
    /// may be overwritten, exactly as it was read: that of a process known to be gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn appear(
        &self,
        actor: &ActorId,
        presence: &Presence,
        lease: Duration,
        replacing: Option<&str>,
    ) -> Result<Appearance, StoreError> {
        let mut script = self.scripts.appear.prepare_invoke();
        script
            .arg(presence.boot_id.as_ref().map_or("", BootId::as_str))
            .arg(actor.to_string())
            .arg(presence.to_json())
            .arg(PRESENCE_TTL_SECS)
            .arg(millis(lease))
            .arg(replacing.unwrap_or_default());
        let held: String = self.invoke("taking an identity", &script).await?;
        Ok(if held.is_empty() { Appearance::Taken } else { Appearance::Held(held) })
    }

    /// Extends the lease of a boot and refreshes its actors' presence. `beats` are those that it has
    /// written, or may have. `false` if the lease had run out and the boot was declared dead, or if
    /// another process holds one of its names: it has lost its jobs.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn heartbeat(
        &self,
        boot: &BootId,
        lease: Duration,
        actors: &[PresenceOf],
        beats: &[String],
    ) -> Result<bool, StoreError> {
        let mut script = self.scripts.heartbeat.prepare_invoke();
        script.arg(boot.as_str()).arg(millis(lease)).arg(PRESENCE_TTL_SECS).arg(actors.len());
        for PresenceOf { actor, presence } in actors {
            script.arg(actor.to_string()).arg(presence.to_json());
        }
        for beat in beats {
            script.arg(beat);
        }
        let code: String = self.invoke("keeping the lease", &script).await?;
        Ok(code == "ok")
    }

    /// Gives up the identities of a boot. Returns how many jobs it still owned.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn disappear(&self, boot: &BootId, actors: &[ActorId]) -> Result<u64, StoreError> {
        let mut script = self.scripts.disappear.prepare_invoke();
        script.arg(boot.as_str()).arg(actors.len());
        for actor in actors {
            script.arg(actor.to_string());
        }
        self.invoke("giving up an identity", &script).await
    }

    /// The live actors, of one type if given, in order of their names.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn actors(
        &self,
        script_type: Option<&ScriptType>,
    ) -> Result<Vec<PresenceOf>, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZRANGE").arg(self.keys.actors()).arg(0).arg(-1);
        pipeline.cmd("ZRANGE").arg(self.keys.foreign_actors()).arg(0).arg(-1);
        let (known, foreign): (Vec<String>, Vec<String>) =
            self.link.pipeline("listing actors", &pipeline).await?;
        let known: BTreeSet<ActorId> = known
            .iter()
            .chain(&foreign)
            .filter_map(|actor| actor.parse().ok())
            .filter(|actor: &ActorId| script_type.is_none_or(|only| *only == actor.script_type))
            .collect();
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("MGET");
        for actor in &known {
            command.arg(self.keys.presence(actor));
        }
        let texts: Vec<Option<Vec<u8>>> = self.link.query("listing actors", &command).await?;
        Ok(known
            .into_iter()
            .zip(texts)
            .filter_map(|(actor, text)| {
                Some(PresenceOf { actor, presence: Presence::parse(&text?).ok()? })
            })
            .collect())
    }
}
