//! An actor that claims and ends jobs without running them.

use std::time::Duration;

use hero::proto::job::{BootId, JobOutput};
use hero::proto::message::Presence;
use hero::proto::target::{ActorId, Priority};
use hero::store::{Attempt, AttemptEnd, Claim, ClaimLimits, PresenceOf, Verdict};
use jiff::Timestamp;
use serde_json::json;

use super::Stage;
use crate::bench::Done;

/// The lease, which a load has no time to renew.
pub(super) const LEASE: Duration = Duration::from_hours(1);

/// An actor that claims and ends jobs without running them.
pub(super) struct Performer {
    pub(super) boot: BootId,
    pub(super) present: PresenceOf,
}

impl Performer {
    pub(super) async fn appear(on: &Stage<'_>, script_type: &str, instance: usize) -> Done<Self> {
        let boot = BootId::random();
        let now = Timestamp::now().to_string();
        let presence = json!({
            "pid": std::process::id(), "hostname": "here", "boot_id": boot.as_str(),
            "started_at": now, "version": "0", "capabilities": [], "last_heartbeat": now,
            "tasks": 64, "running": 0, "state": "ready",
        });
        let presence = Presence::parse(presence.to_string().as_bytes())?;
        let actor: ActorId = format!("{script_type}:default:{instance}").parse()?;
        let performer = Self { boot, present: PresenceOf { actor, presence } };
        performer.renew(on, LEASE).await?;
        Ok(performer)
    }

    /// Renews the lease and the presence. If another process has the name, takes it over.
    pub(super) async fn renew(&self, on: &Stage<'_>, lease: Duration) -> Done {
        let PresenceOf { actor, presence } = &self.present;
        let key = on.store.keys().presence(actor);
        let before: Option<String> = redis::cmd("GET").arg(key).query(&mut on.watch.connect()?)?;
        on.store.appear(actor, presence, lease, before.as_deref()).await?;
        Ok(())
    }

    pub(super) fn wakes(&self, on: &Stage<'_>) -> Vec<String> {
        let queues = self.present.actor.queues().into_iter();
        let normal = queues.filter(|queue| queue.priority == Priority::Normal);
        normal.map(|queue| on.store.keys().wake(&queue.target)).collect()
    }

    pub(super) fn lists(&self, on: &Stage<'_>) -> Vec<String> {
        self.present.actor.queues().iter().map(|queue| on.store.keys().work(queue)).collect()
    }

    pub(super) async fn claim(&self, on: &Stage<'_>, wanted: usize) -> Done<Vec<Attempt>> {
        let claim = Claim {
            boot: &self.boot,
            actor: &self.present.actor,
            lists: &self.lists(on),
            wanted,
            ahead: 0,
            size_max_bytes: on.config.job.script_size_max + (1 << 20),
            limits: &ClaimLimits::default(),
        };
        Ok(on.store.claim(&claim).await?.attempts)
    }

    pub(super) fn end_of(&self, attempt: &Attempt, output: impl Into<JobOutput>) -> AttemptEnd {
        AttemptEnd {
            id: attempt.id.clone(),
            claimed_at: attempt.claimed_at,
            script_type: self.present.actor.script_type.clone(),
            verdict: Verdict::Finished { output: output.into(), exit_code: None },
            used: Vec::new(),
            counts: Vec::new(),
        }
    }
}
