//! The identity of an actor: its name, which one live process holds at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use tracing::{info, warn};

use super::boot::Boot;
use super::machine;
use crate::client::host_name;
use crate::engine::process::folders_left;
use crate::proto::job::BootId;
use crate::proto::labels::label;
use crate::proto::message::{ActorState, Presence};
use crate::proto::target::ActorId;
use crate::store::{Appearance, BootDeath, PresenceOf, StoreError};

/// Why an actor process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ActorError {
    #[error(
        "actor {actor} is already running on {host} with pid {pid}; \
         stop that one, or give this one another instance number"
    )]
    IdentityHeld {
        actor: ActorId,
        host: String,
        pid: u32,
        /// Both sightings, if its machine may be this one before its last start, or a clone of it.
        clone: Option<Box<CloneSightings>>,
    },
    #[error(
        "actor {actor} is already running on a clone of this machine: {0}; give the clone an id of its own (rm \
         /etc/machine-id && systemd-machine-id-setup) and another host name, and its actor another instance number",
        sightings.text
    )]
    HeldByClone { actor: ActorId, sightings: Box<CloneSightings> },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot start the threads that run scripts: {0}")]
    Threads(#[from] std::io::Error),
}

/// An actor of one name on two machines that look the same.
#[derive(Debug)]
pub struct CloneSightings {
    /// The last heartbeat of the other process.
    pub heartbeat: String,
    text: String,
}

impl CloneSightings {
    fn new(there: &Presence, here: &Presence) -> Self {
        let heartbeat = there.last_heartbeat.clone();
        let (there, here) = (there.sighting(), here.sighting());
        let text = format!("there {there}, heartbeat {heartbeat}; here {here}");
        Self { heartbeat, text }
    }
}

/// Takes the identities of all actors of this process, or none of them.
pub(super) async fn take(boot: &Boot, started_at: Timestamp) -> Result<(), ActorError> {
    let mut taken = Vec::with_capacity(boot.actors.len());
    let mut gone = BTreeSet::new();
    for PresenceOf { actor, presence } in presence_of_all(boot, started_at) {
        match take_one(boot, &actor, &presence, &mut gone).await {
            Ok(()) => taken.push(actor),
            Err(error) => {
                // The first error is the one to report.
                let _ = boot.store.actors().disappear(&boot.id, &taken).await;
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Takes one identity. `gone` collects the boots that are known to have ended.
async fn take_one(
    boot: &Boot,
    actor: &ActorId,
    presence: &Presence,
    gone: &mut BTreeSet<BootId>,
) -> Result<(), ActorError> {
    let (lease, own) = (boot.lease, presence);
    let Appearance::Held(held) = boot.store.actors().appear(actor, presence, lease, None).await?
    else {
        return Ok(());
    };
    let held_by = |presence: Option<&Presence>| ActorError::IdentityHeld {
        actor: actor.clone(),
        host: presence.map_or_else(|| "an unknown host".to_owned(), |p| p.hostname.clone()),
        pid: presence.map_or(0, |p| p.pid),
        clone: presence
            .filter(|holder| looks_the_same(holder, own))
            .map(|holder| Box::new(CloneSightings::new(holder, own))),
    };
    let Ok(holder) = Presence::parse(held.as_bytes()) else {
        return Err(held_by(None));
    };
    let Some(ended) = holder.boot_id.clone().filter(|_| is_gone(&holder, presence)) else {
        return Err(held_by(Some(&holder)));
    };
    // On a copy of a machine, made while the actor ran, its process is gone and the name is live.
    if !gone.contains(&ended) && boot.store.actors().is_listening(actor).await? {
        let sightings = Box::new(CloneSightings::new(&holder, own));
        return Err(ActorError::HeldByClone { actor: actor.clone(), sightings });
    }
    gone.insert(ended.clone());
    info!(actor = %actor, pid = holder.pid, "takes the name over from a process that has ended");
    match boot.store.actors().appear(actor, presence, lease, Some(&held)).await? {
        Appearance::Taken => {
            let is_oom_kill = holder
                .oom_kills
                .zip(machine::oom_kills())
                .is_some_and(|(before, now)| now > before);
            if is_oom_kill {
                note_oom_kill(boot, actor, holder.pid);
            }
            recover(boot, actor, &ended, is_oom_kill).await
        }
        // Another process took it first.
        Appearance::Held(held) => Err(held_by(Presence::parse(held.as_bytes()).ok().as_ref())),
    }
}

fn note_oom_kill(boot: &Boot, actor: &ActorId, pid: u32) {
    warn!(
        actor = %actor, pid,
        "the process before was killed as memory ran out: raise MemoryMax= of its unit, or lower `tasks`, or `memory` \
         and `job_memory` of the sandbox (hero check UNIT compares them)"
    );
    let _ = boot.process.after_oom_kill.set(format!("{:.3}", Timestamp::now()));
}

/// Requeues the jobs of an ended process before its lease is over. If it was killed for lack of memory, jobs that are
/// processes of their own are charged nothing: each is killed before the actor, so the actor was the largest.
async fn recover(
    boot: &Boot,
    actor: &ActorId,
    gone: &BootId,
    is_oom_kill: bool,
) -> Result<(), ActorError> {
    let settings = boot.settings();
    let job = &settings.job;
    let engine = settings.engines.get(&actor.script_type);
    let death = match is_oom_kill {
        false => BootDeath::Unknown,
        true if engine.is_some_and(|engine| engine.runs_processes()) => BootDeath::Memory,
        true => BootDeath::MemoryOfScripts,
    };
    let (gone, limit) = (Some((gone, death)), job.crash_limit);
    let found = boot.store.recovery().boots(gone, Duration::ZERO, limit, job.kept()).await?;
    for note in &found.notes {
        warn!(job_id = %note.job_id, script_type = %note.script_type, "{note}");
    }
    if found.put_back + found.given_up > 0 {
        warn!(put_back = found.put_back, given_up = found.given_up, "recovered its jobs");
    }
    Ok(())
}

/// Returns whether the holder is known to have ended: it ran on this machine, and its pid is free
/// or belongs to this process.
fn is_gone(holder: &Presence, own: &Presence) -> bool {
    !own.machine.is_empty()
        && holder.machine == own.machine
        && (holder.pid == own.pid || !machine::is_alive(holder.pid, holder.pid_since))
}

/// Returns whether a holder is on another boot of a machine with the name or the machine id of this one: on a clone, or
/// on this machine before its last start.
fn looks_the_same(holder: &Presence, own: &Presence) -> bool {
    let is_other = !own.machine.is_empty() && holder.machine != own.machine;
    let machine = |of: &Presence| label(&of.labels, "machine").cloned();
    let has_id = machine(own).is_some() && machine(holder) == machine(own);
    is_other && (holder.hostname == own.hostname || has_id)
}

pub(super) fn presence_of_all(boot: &Boot, started_at: Timestamp) -> Vec<PresenceOf> {
    use std::sync::atomic::Ordering::Relaxed;
    let settings = boot.settings();
    let hostname = host_name();
    let machine = machine::id();
    let now = format!("{:.3}", Timestamp::now());
    let beat = boot.health.new_beat();
    let (load_hundredths, memory_available) = (machine::load_hundredths(), machine::free_memory());
    boot.actors
        .iter()
        .zip(&boot.health.actors)
        .enumerate()
        .map(|(place, (actor, health))| {
            let engine = settings.engines.get(&actor.script_type);
            let draining = health.draining.load(Relaxed);
            PresenceOf {
                actor: actor.clone(),
                presence: Presence {
                    pid: std::process::id(),
                    pid_since: machine::own_start(),
                    hostname: hostname.clone(),
                    machine: machine.clone(),
                    boot_id: Some(boot.id.clone()),
                    started_at: format!("{started_at:.3}"),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    capabilities: engine.map(|e| e.capabilities()).unwrap_or_default(),
                    last_heartbeat: now.clone(),
                    beat: beat.clone(),
                    tasks: settings.tasks(place),
                    running: health.running.load(Relaxed),
                    state: if draining { ActorState::Draining } else { ActorState::Ready },
                    holding: boot.health.overload(),
                    oom_kills: machine::oom_kills(),
                    after_oom_kill: boot.process.after_oom_kill.get().cloned(),
                    labels: settings.labels(place).clone(),
                    folders_left: folders_left(),
                    load_hundredths,
                    memory_available,
                    settings: settings.digest.clone(),
                    settings_at: format!("{:.3}", settings.read_at),
                },
            }
        })
        .collect()
}

/// Gives the identities up. While Redis is away they expire by themselves.
pub(super) async fn give_up(boot: &Boot) -> Result<u64, StoreError> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let gives_up = boot.store.actors().disappear(&boot.id, &boot.actors);
    let silent = |_| Err(StoreError::silent(boot.store.address().as_ref(), true));
    tokio::time::timeout(PATIENCE, gives_up).await.unwrap_or_else(silent)
}
