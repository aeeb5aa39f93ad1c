//! The actor role: claims jobs, runs them, records how they ended.
//!
//! One process is one or more actors, with one boot id on each shard that it serves. A job passes through
//! `fetch`, which claims it, `workers`, which runs it, `verdict`, which decides what its end means, and
//! `fetch` again, which records that. Meanwhile `heartbeat` renews the lease; `identity` holds the name. Each
//! shard has these loops of its own; the threads of `workers` serve all, and `tasks` shares them.

mod boot;
mod crew;
mod fetch;
mod handover;
mod health;
mod heartbeat;
mod identity;
mod job_log_lines;
mod labels;
mod log_buffer;
mod log_entries;
mod log_file;
mod log_places;
mod log_unfinished;
mod log_writer;
mod machine;
mod objects;
mod process;
mod requests;
mod running_job;
mod secret_store;
mod secrets;
mod settings;
mod signatures;
mod spans;
mod tasks;
mod verdict;
mod workers;

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::proto::report::{ServiceReport, Shutdown};
use crate::store::{Backoff, Store};
use boot::Boot;
use crew::Crew;
use fetch::Fetch;
pub use identity::ActorError;
pub use labels::all_labels;
pub use objects::{RedisObjects, ScriptRedisClient};
use process::ActorProcess;
pub use process::Actors;
pub use settings::ActorSettings;

/// The actors of one process, with their threads.
#[derive(Clone)]
pub struct RunningActors(Arc<ActorProcess>);

impl Actors {
    /// Starts the threads.
    pub fn start(self) -> Result<RunningActors, ActorError> {
        let settings = Arc::clone(&self.settings.borrow());
        let crew = Crew::start(&settings, self.shards)?;
        Ok(RunningActors(Arc::new(ActorProcess::new(self, crew))))
    }
}

impl RunningActors {
    /// Serves a shard, whose Redis answers, until `shutdown` asks for the end; then drains. A lost lease
    /// starts a new boot. `place` is the place of the shard among those that the process serves.
    ///
    /// # Errors
    /// [`ActorError`], only while it starts.
    pub async fn serve(
        &self,
        place: usize,
        store: &Store,
        mut shutdown: watch::Receiver<Shutdown>,
    ) -> Result<(), ActorError> {
        let process = &self.0;
        loop {
            let boot = Arc::new(Boot::new(process, place, store));
            if !take_identity(&boot, process.started_at, shutdown.clone()).await? {
                return Ok(());
            }
            heartbeat::check_overload(&boot);
            let mut fetch = Fetch::new(&boot)?;
            process.serves(place, Arc::clone(&boot.health));
            let names: Vec<String> = boot.actors.iter().map(ToString::to_string).collect();
            info!(boot_id = %boot.id, "ready: {}{}", names.join(", "), process.of_shard(store));
            (boot.report)(ServiceReport::Ready);
            let ended = tokio::select! {
                () = fetch.run(&mut shutdown) => true,
                () = heartbeat::run(&boot, process.heartbeat(), process.started_at) => false,
            };
            process.ended(place);
            if !ended {
                warn!(boot_id = %boot.id, "lost the lease: stopping its jobs, then restarting with a new boot id");
                fetch.abandon().await;
                continue;
            }
            match identity::give_up(&boot).await {
                Ok(0) => info!("stopped{}", process.of_shard(store)),
                Ok(left) => warn!(
                    jobs = left,
                    "stopped; jobs that it still owns run again when its lease ends"
                ),
                Err(error) => warn!("stopped, but could not deregister: {error}"),
            }
            return Ok(());
        }
    }
}

/// Takes the identities, retrying while Redis is away. Returns `false` if the process was asked to
/// shut down meanwhile.
async fn take_identity(
    boot: &Boot,
    started_at: Timestamp,
    mut shutdown: watch::Receiver<Shutdown>,
) -> Result<bool, ActorError> {
    let mut backoff = Backoff::default();
    // The heartbeat of a holder that may have died with this machine.
    let mut before: Option<String> = None;
    loop {
        match identity::take(boot, started_at).await {
            Ok(()) => return Ok(true),
            Err(ActorError::IdentityHeld { actor, host, pid, clone: Some(sightings) }) => {
                match &before {
                    None => info!(
                        "{actor} ran with pid {pid} on {host}, which has the name or the machine id of this machine: \
                         waiting until its presence expires, if the machine was started again"
                    ),
                    Some(before) if *before != sightings.heartbeat => {
                        return Err(ActorError::HeldByClone { actor, sightings });
                    }
                    Some(_) => {}
                }
                before = Some(sightings.heartbeat);
            }
            Err(ActorError::Store(error)) if error.is_outage() => {
                if boot.health.outage.failed_by(Instant::now(), &error) {
                    warn!("{error}; trying again until it answers");
                }
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.failed()) => {}
            _ = shutdown.wait_for(|asked| *asked > Shutdown::No) => return Ok(false),
        }
    }
}
