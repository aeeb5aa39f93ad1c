//! An actor that claims and ends jobs without running them.

use std::time::Duration;

use hero::config::{Config, JobConfig};
use hero::proto::job::{BootId, JobOutput};
use hero::proto::message::Presence;
use hero::proto::target::{ActorId, SelectorDigest};
use hero::store::{Attempt, AttemptEnd, Claim, ClaimLimits, PresenceOf, Store, Verdict};
use jiff::Timestamp;
use serde_json::json;

use super::bench::{Done, bare_redis};

/// The lease, which a measure has no time to renew.
pub(crate) const LEASE: Duration = Duration::from_hours(1);

pub(crate) struct Performer {
    pub(crate) boot: BootId,
    pub(crate) present: PresenceOf,
    store: Store,
    redis: redis::Client,
    job: JobConfig,
}

/// Returns the presence of an actor that is ready.
pub(crate) fn presence(boot: &BootId) -> Done<Presence> {
    let now = Timestamp::now().to_string();
    let presence = json!({
        "pid": std::process::id(), "hostname": "here", "boot_id": boot.as_str(),
        "started_at": now, "version": "0", "capabilities": [], "last_heartbeat": now,
        "tasks": 64, "running": 0, "state": "ready",
    });
    Ok(Presence::parse(presence.to_string().as_bytes())?)
}

impl Performer {
    pub(crate) async fn appear(
        config: &Config,
        store: &Store,
        script_type: &str,
        instance: usize,
    ) -> Done<Self> {
        let boot = BootId::random();
        let actor: ActorId = format!("{script_type}:default:{instance}").parse()?;
        let present = PresenceOf { actor, presence: presence(&boot)? };
        let (store, redis, job) = (store.clone(), bare_redis(config)?, config.job.clone());
        let performer = Self { boot, present, store, redis, job };
        performer.renew(LEASE).await?;
        Ok(performer)
    }

    /// Renews the lease and the presence. If another process has the name, takes it over.
    pub(crate) async fn renew(&self, lease: Duration) -> Done {
        let PresenceOf { actor, presence } = &self.present;
        let key = self.store.keys().presence(actor);
        let mut link = self.redis.get_connection()?;
        let before: Option<String> = redis::cmd("GET").arg(key).query(&mut link)?;
        self.store.actors().appear(actor, presence, lease, before.as_deref()).await?;
        Ok(())
    }

    /// The lists that wake it, with those of the expressions that it matches.
    pub(crate) fn wakes(&self, matched: &[SelectorDigest]) -> Vec<String> {
        let targets = self.present.actor.targets_with(matched);
        targets.iter().map(|target| self.store.keys().wake(target)).collect()
    }

    pub(crate) async fn claim(
        &self,
        matched: &[SelectorDigest],
        wanted: usize,
    ) -> Done<Vec<Attempt>> {
        let queues = self.present.actor.queues_with(matched);
        let lists: Vec<String> = queues.iter().map(|queue| self.store.keys().work(queue)).collect();
        let claim = Claim {
            boot: &self.boot,
            actor: &self.present.actor,
            lists: &lists,
            wanted,
            ahead: 0,
            size_max_bytes: self.job.script_size_max + (1 << 20),
            limits: &ClaimLimits::default(),
        };
        Ok(self.store.attempts().claim(&claim).await?.attempts)
    }

    /// Ends attempts with an output.
    pub(crate) async fn end<'a>(
        &self,
        claimed: impl IntoIterator<Item = &'a Attempt>,
        output: impl Into<JobOutput> + Clone,
    ) -> Done {
        let end = |attempt: &Attempt| AttemptEnd {
            id: attempt.id.clone(),
            claimed_at: attempt.claimed_at,
            script_type: self.present.actor.script_type.clone(),
            verdict: Verdict::Finished { output: output.clone().into(), exit_code: None },
            used: Vec::new(),
            counts: Vec::new(),
        };
        let ends: Vec<AttemptEnd> = claimed.into_iter().map(end).collect();
        self.store.attempts().finish(&self.boot, self.job.kept(), &ends).await?;
        Ok(())
    }
}
