//! The actor role: claims jobs, runs them, records how they ended.
//!
//! One process is one or more actors with one boot id. A job passes through `fetch`, which claims
//! it, `workers`, which runs it, `verdict`, which decides what its end means, and `fetch` again,
//! which records that. Meanwhile `heartbeat` renews the lease; `identity` holds the name.

mod boot;
mod counts;
mod error;
mod fetch;
mod heartbeat;
mod identity;
mod log_buffer;
mod log_entries;
mod log_file;
mod log_writer;
mod machine;
mod objects;
mod secret_store;
mod secrets;
mod settings;
mod story;
mod verdict;
mod workers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::proto::report::{Reporter, ServiceReport, Shutdown};
use crate::store::{Backoff, Store};
use boot::Boot;
pub use error::ActorError;
use fetch::Fetch;
pub use objects::{RedisObjects, ScriptRedisClient};
pub use settings::ActorSettings;

/// The actors of one process.
#[derive(Clone)]
pub struct Actors {
    /// Redis, known to answer.
    pub store: Store,
    /// The settings, now and after each reload.
    pub settings: watch::Receiver<Arc<ActorSettings>>,
    /// The longest time between two heartbeats, where systemd's watchdog needs more of them than
    /// the configuration.
    pub beat_within: Option<Duration>,
    /// Receives the state of this role.
    pub report: Reporter,
}

impl Actors {
    /// Serves until `shutdown` asks for the end, then drains. A lost lease starts a new boot.
    ///
    /// # Errors
    /// [`ActorError`], only while it starts.
    pub async fn run(self, mut shutdown: watch::Receiver<Shutdown>) -> Result<(), ActorError> {
        let started_at = Timestamp::now();
        loop {
            let boot = Arc::new(Boot::new(&self.store, &self.settings, Arc::clone(&self.report)));
            if !take_identity(&boot, started_at, shutdown.clone()).await? {
                return Ok(());
            }
            heartbeat::check_overload(&boot);
            let mut fetch = Fetch::new(&boot)?;
            let names: Vec<String> = boot.actors.iter().map(ToString::to_string).collect();
            info!(boot_id = %boot.id, "ready: {}", names.join(", "));
            (boot.report)(ServiceReport::Ready);
            tokio::select! {
                () = fetch.run(&mut shutdown) => {}
                () = heartbeat::run(&boot, self.heartbeat(), started_at) => {
                    warn!(boot_id = %boot.id, "lost the lease: stopping its jobs, then restarting with a new boot id");
                    fetch.abandon().await;
                    continue;
                }
            }
            match identity::give_up(&boot).await {
                Ok(0) => info!("stopped"),
                Ok(left) => warn!(
                    jobs = left,
                    "stopped; jobs that it still owns run again when its lease ends"
                ),
                Err(error) => warn!("stopped, but could not deregister: {error}"),
            }
            return Ok(());
        }
    }

    fn heartbeat(&self) -> Duration {
        let configured = self.settings.borrow().actor.heartbeat;
        self.beat_within.map_or(configured, |within| configured.min(within))
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
    loop {
        match identity::take(boot, started_at).await {
            Ok(()) => return Ok(true),
            Err(ActorError::Store(error)) if error.is_transient() => {
                if boot.health.outage.failed(Instant::now()) {
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
