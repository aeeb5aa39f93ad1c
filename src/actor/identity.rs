//! Who an actor is to others: it takes its identity when it starts, unless a live one has it.

use std::time::Duration;

use jiff::Timestamp;
use tracing::{info, warn};

use super::ActorError;
use super::life::Life;
use super::machine;
use crate::proto::message::{ActorState, Presence};
use crate::proto::target::ActorId;
use crate::store::{Appearance, PresenceOf, StoreError};

/// Takes the identities of all actors of this process. With one refused, none is kept.
pub(super) async fn take(life: &Life, started_at: Timestamp) -> Result<(), ActorError> {
    let mut taken = Vec::with_capacity(life.actors.len());
    for PresenceOf { actor, presence } in presence_of_all(life, started_at) {
        match take_one(life, &actor, &presence).await {
            Ok(()) => taken.push(actor),
            Err(error) => {
                // Whatever this fails with, the first error is the one to hear of.
                let _ = life.store.disappear(&life.boot, &taken).await;
                return Err(error);
            }
        }
    }
    Ok(())
}

async fn take_one(life: &Life, actor: &ActorId, presence: &Presence) -> Result<(), ActorError> {
    let lease = life.lease;
    let Appearance::Held(held) = life.store.appear(actor, presence, lease, None).await? else {
        return Ok(());
    };
    let held_by = |presence: Option<&Presence>| ActorError::IdentityHeld {
        actor: actor.clone(),
        host: presence.map_or_else(|| "an unknown host".to_owned(), |p| p.hostname.clone()),
        pid: presence.map_or(0, |p| p.pid),
    };
    let Ok(holder) = Presence::parse(held.as_bytes()) else {
        return Err(held_by(None));
    };
    if !is_gone(&holder, presence) {
        return Err(held_by(Some(&holder)));
    }
    info!(actor = %actor, pid = holder.pid, "takes over from a process that is gone");
    match life.store.appear(actor, presence, lease, Some(&held)).await? {
        Appearance::Taken => recover(life, &holder).await,
        // A third was faster.
        Appearance::Held(held) => Err(held_by(Presence::parse(held.as_bytes()).ok().as_ref())),
    }
}

/// The process is gone, so its jobs need not wait for the end of its lease.
async fn recover(life: &Life, holder: &Presence) -> Result<(), ActorError> {
    let job = &life.settings().job;
    let gone = Some(&holder.boot_id);
    let found = life.store.recover_boots(gone, job.crash_limit, job.kept()).await?;
    if found.put_back + found.given_up > 0 {
        warn!(put_back = found.put_back, given_up = found.given_up, "recovered its jobs");
    }
    Ok(())
}

/// Whether the holder is known to be gone: it was on this machine, and its process is no more, or
/// has the number of the one that asks.
fn is_gone(holder: &Presence, own: &Presence) -> bool {
    !own.machine.is_empty()
        && holder.machine == own.machine
        && (holder.pid == own.pid || !machine::is_alive(holder.pid))
}

/// What every actor of this process says of itself now.
pub(super) fn presence_of_all(life: &Life, started_at: Timestamp) -> Vec<PresenceOf> {
    use std::sync::atomic::Ordering::Relaxed;
    let settings = life.settings();
    let hostname = machine::host_name();
    let machine = machine::id();
    let now = format!("{:.3}", Timestamp::now());
    life.actors
        .iter()
        .zip(&life.vitals.actors)
        .enumerate()
        .map(|(place, (actor, vitals))| {
            let engine = settings.engines.get(&actor.script_type);
            let draining = vitals.draining.load(Relaxed);
            PresenceOf {
                actor: actor.clone(),
                presence: Presence {
                    pid: std::process::id(),
                    hostname: hostname.clone(),
                    machine: machine.clone(),
                    boot_id: life.boot.clone(),
                    started_at: format!("{started_at:.3}"),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    capabilities: engine.map(|e| e.capabilities()).unwrap_or_default(),
                    last_heartbeat: now.clone(),
                    tasks: settings.tasks(place),
                    running: vitals.running.load(Relaxed),
                    state: if draining { ActorState::Draining } else { ActorState::Ready },
                    holding: life.vitals.strain(),
                },
            }
        })
        .collect()
}

/// Gives the identities up; a Redis that is away lets them run out.
pub(super) async fn give_up(life: &Life) -> Result<u64, StoreError> {
    const PATIENCE: Duration = Duration::from_secs(2);
    tokio::time::timeout(PATIENCE, life.store.disappear(&life.boot, &life.actors))
        .await
        .unwrap_or_else(|_| {
            Err(StoreError::Unreachable {
                address: life.store.address().to_owned(),
                reason: "it does not answer".to_owned(),
                sent: true,
            })
        })
}
