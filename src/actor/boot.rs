//! One boot: one life of an actor process on one shard, with its id and its settings.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;

use super::health::Health;
use super::log_places::{AttemptLog, LogPlaces};
use super::process::ActorProcess;
use super::settings::ActorSettings;
use crate::proto::job::BootId;
use crate::proto::report::Reporter;
use crate::proto::target::ActorId;
use crate::store::{RefusedLines, Store, StoreError};

/// One life of an actor process on one shard. A process that loses its lease there starts a new boot.
pub(super) struct Boot {
    pub(super) process: Arc<ActorProcess>,
    /// Its shard, by its place among those that the process serves.
    pub(super) place: usize,
    pub(super) store: Store,
    /// The owner of the jobs that are claimed here.
    pub(super) id: BootId,
    pub(super) actors: Vec<ActorId>,
    /// The time that the boot keeps its jobs without a heartbeat.
    pub(super) lease: Duration,
    pub(super) settings: watch::Receiver<Arc<ActorSettings>>,
    pub(super) report: Reporter,
    pub(super) health: Arc<Health>,
    pub(super) log_places: LogPlaces,
}

impl Boot {
    /// Starts a boot with a new id. It owns nothing until it has taken its identity.
    pub(super) fn new(process: &Arc<ActorProcess>, place: usize, store: &Store) -> Self {
        let settings = process.of.settings.clone();
        let now = Arc::clone(&settings.borrow());
        let actors: Vec<ActorId> = now.actors.iter().map(|actor| actor.id.clone()).collect();
        let health = Health::new(actors.len(), now.actor.lease);
        for (actor, is_drained) in health.actors.iter().zip(process.drained().borrow().iter()) {
            actor.draining.store(*is_drained, Ordering::Relaxed);
        }
        Self {
            id: BootId::random(),
            health: Arc::new(health),
            log_places: LogPlaces::default(),
            lease: now.actor.lease,
            store: store.clone(),
            report: process.reports.of(place),
            process: Arc::clone(process),
            place,
            settings,
            actors,
        }
    }

    pub(super) fn settings(&self) -> Arc<ActorSettings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Writes entries of the logs of jobs that it runs, each once. Returns those that Redis refused.
    pub(super) async fn append_logs(
        &self,
        logs: &[AttemptLog<'_>],
    ) -> Result<Vec<RefusedLines>, StoreError> {
        let unwritten = self.log_places.unwritten(&self.store, logs).await?;
        let job = &self.settings().job;
        let entries = unwritten
            .iter()
            .flat_map(|(id, _, entries)| entries.iter().map(move |entry| (*id, entry)));
        let kept = job.retention + job.timeout_max;
        let appended = self.store.logs().append(&self.id, entries, kept).await;
        self.log_places.note(logs, appended.as_ref().ok().map(|appended| &appended.last));
        Ok(appended?.refused)
    }
}
