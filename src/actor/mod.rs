//! The actor role: takes jobs, runs them, records how they ended.
//!
//! One process is one or more actors with one boot id. Its parts, in the order in which a job
//! meets them: `fetch` claims it and hands it to `workers`, `verdict` decides what its end means,
//! `fetch` records that. `heartbeat` keeps the lease meanwhile, `identity` the name.

mod fetch;
mod handover;
mod heartbeat;
mod identity;
mod life;
mod log_buffer;
mod log_file;
mod machine;
mod objects;
mod settings;
mod verdict;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::proto::job::BootId;
use crate::proto::report::{Report, Reporter, Shutdown};
use crate::proto::target::ActorId;
use crate::store::{Backoff, Store, StoreError};
use fetch::Fetch;
use life::{Life, Vitals};
pub use objects::{RedisObjects, ScriptRedisClient};
pub use settings::Settings;

/// Why an actor could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ActorError {
    /// Another live process has the name.
    #[error(
        "actor {actor} is already running on {host} with pid {pid}; \
         stop that one, or give this one another instance number"
    )]
    IdentityHeld {
        /// The name.
        actor: ActorId,
        /// Its machine.
        host: String,
        /// Its process.
        pid: u32,
    },
    /// Redis does not let it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine does not let it.
    #[error("cannot start the threads that run scripts: {0}")]
    Threads(#[from] std::io::Error),
}

/// What an actor process is made of.
#[derive(Clone)]
pub struct Actors {
    /// Redis, known to answer.
    pub store: Store,
    /// What it is told, now and later.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// The longest time between two heartbeats, if systemd's watchdog asks for more of them than
    /// the configuration.
    pub beat_within: Option<Duration>,
    /// Where the daemon listens.
    pub report: Reporter,
}

impl Actors {
    /// Serves until `shutdown` asks it to end, and then ends in order.
    ///
    /// # Errors
    /// [`ActorError`], only while it starts.
    pub async fn run(self, mut shutdown: watch::Receiver<Shutdown>) -> Result<(), ActorError> {
        let started_at = Timestamp::now();
        loop {
            let life = Arc::new(self.new_life());
            if !take_identity(&life, started_at, shutdown.clone()).await? {
                return Ok(());
            }
            heartbeat::look_at_machine(&life);
            let mut fetch = Fetch::new(&life)?;
            let names: Vec<String> = life.actors.iter().map(ToString::to_string).collect();
            info!(boot_id = %life.boot, "ready: {}", names.join(", "));
            (life.report)(Report::Ready);
            tokio::select! {
                () = fetch.run(&mut shutdown) => {}
                () = heartbeat::run(&life, self.heartbeat(), started_at) => {
                    warn!(boot_id = %life.boot, "the lease is lost: stops its jobs and starts anew");
                    fetch.abandon().await;
                    continue;
                }
            }
            match identity::give_up(&life).await {
                Ok(0) => info!("gone"),
                Ok(left) => warn!(jobs = left, "gone, with jobs left to their lease"),
                Err(error) => warn!("gone without taking leave: {error}"),
            }
            return Ok(());
        }
    }

    fn new_life(&self) -> Life {
        let settings = Arc::clone(&self.settings.borrow());
        let actors: Vec<ActorId> = settings.actors.iter().map(|actor| actor.id.clone()).collect();
        Life {
            boot: BootId::random(),
            vitals: Vitals::new(actors.len(), settings.actor.lease),
            lease: settings.actor.lease,
            store: self.store.clone(),
            settings: self.settings.clone(),
            report: Arc::clone(&self.report),
            actors,
        }
    }

    fn heartbeat(&self) -> Duration {
        let configured = self.settings.borrow().actor.heartbeat;
        self.beat_within.map_or(configured, |within| configured.min(within))
    }
}

/// Takes the identities, however long Redis is away: it was there a moment ago, and will be again.
/// `false` if the process was asked to end meanwhile.
async fn take_identity(
    life: &Life,
    started_at: Timestamp,
    mut shutdown: watch::Receiver<Shutdown>,
) -> Result<bool, ActorError> {
    let mut backoff = Backoff::default();
    loop {
        match identity::take(life, started_at).await {
            Ok(()) => return Ok(true),
            Err(ActorError::Store(error)) if error.is_transient() => {
                if life.vitals.redis_went(std::time::Instant::now()) {
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
