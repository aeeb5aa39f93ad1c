//! The supervisor role: does what happens to jobs later. Each duty is one file and one loop, all
//! started here. Every duty is idempotent, so any number of supervisors may run at the same time.

mod control_fan_out;
mod dead_boots;
mod dependents;
mod due_jobs;
mod durability;
mod duty;
mod fallbacks;
mod foreign_actors;
mod foreign_jobs;
mod found_circles;
mod heartbeat;
mod held_jobs;
mod legacy_pushes;
mod legacy_queues;
mod legacy_stops;
mod long_waits;
mod look;
mod lost_pops;
mod object_indexes;
mod orphaned_entries;
mod periodic_jobs;
mod rhailib_bridge;
mod statistics;
mod unqueued_jobs;
mod unused_contents;
mod whole_crontab;
mod wrong_types;

pub use duty::SupervisorSettings;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::info;

use crate::proto::job::BootId;
use crate::proto::report::{Reporter, ServiceReport, Shutdown};
use crate::store::Store;
use duty::{Duty, DutyCounts, repeat};
use heartbeat::{BEAT, Heartbeat};

/// A supervisor before it starts.
#[derive(Clone)]
pub struct Supervisor {
    /// Redis, which has answered.
    pub store: Store,
    /// The name of its unit.
    pub unit: String,
    /// The configuration, which may change while the supervisor runs.
    pub settings: watch::Receiver<Arc<SupervisorSettings>>,
    /// The receiver of reports.
    pub report: Reporter,
    /// The longest time between two reports that systemd's watchdog allows.
    pub beat_within: Option<Duration>,
}

impl Supervisor {
    /// Runs until `shutdown` requests the end. A duty holds nothing between its rounds, so the end
    /// waits for nothing.
    pub async fn run(self, mut shutdown: watch::Receiver<Shutdown>) {
        let counts = Arc::new(DutyCounts::default());
        let mut duties = self.start_duties(&counts);
        info!("ready: {} duties", duties.len());
        (self.report)(ServiceReport::Ready);

        let heartbeat = Heartbeat {
            store: &self.store,
            id: BootId::random(),
            unit: &self.unit,
            report: &self.report,
            counts: &counts,
        };
        tokio::select! {
            () = heartbeat.run(self.beat_within.unwrap_or(BEAT)) => {}
            asked = shutdown.wait_for(|asked| *asked > Shutdown::No) => drop(asked),
        }
        let status = "shutting down".to_owned();
        (self.report)(ServiceReport::Stopping { status, within: BEAT });
        duties.shutdown().await;
        heartbeat.give_up().await;
        info!("stopped");
    }

    fn start_duties(&self, counts: &Arc<DutyCounts>) -> JoinSet<()> {
        let mut duties = JoinSet::new();
        self.start::<control_fan_out::ControlFanOut>(&mut duties, counts);
        self.start::<dead_boots::DeadBoots>(&mut duties, counts);
        self.start::<dependents::Dependents>(&mut duties, counts);
        self.start::<due_jobs::DueJobs>(&mut duties, counts);
        self.start::<durability::Durability>(&mut duties, counts);
        self.start::<fallbacks::Fallbacks>(&mut duties, counts);
        self.start::<foreign_actors::ForeignActors>(&mut duties, counts);
        self.start::<foreign_jobs::ForeignJobs>(&mut duties, counts);
        self.start::<held_jobs::HeldJobs>(&mut duties, counts);
        self.start::<long_waits::LongWaits>(&mut duties, counts);
        self.start::<look::LookForWork>(&mut duties, counts);
        self.start::<lost_pops::LostPops>(&mut duties, counts);
        self.start::<object_indexes::ObjectIndexes>(&mut duties, counts);
        self.start::<orphaned_entries::OrphanedEntries>(&mut duties, counts);
        self.start::<periodic_jobs::PeriodicJobs>(&mut duties, counts);
        self.start::<statistics::Statistics>(&mut duties, counts);
        self.start::<unqueued_jobs::UnqueuedJobs>(&mut duties, counts);
        self.start::<unused_contents::UnusedContents>(&mut duties, counts);
        self.start::<wrong_types::WrongTypes>(&mut duties, counts);
        if self.store.has_legacy() {
            self.start::<legacy_queues::LegacyQueues>(&mut duties, counts);
            self.start::<legacy_stops::LegacyStops>(&mut duties, counts);
        }
        for queue in self.store.legacy_queues().iter().filter(|queue| !queue.is_pattern()) {
            let (store, settings) = (self.store.clone(), self.settings.clone());
            let list = queue.legacy.clone();
            duties.spawn(legacy_pushes::run(store, settings, list, Arc::clone(counts)));
        }
        let circles = self.settings.borrow().supervisor.rhailib_circles.clone();
        if circles.iter().any(|circle| circle.circle.is_pattern()) {
            let (store, circles) = (self.store.clone(), circles.clone());
            duties.spawn(found_circles::run(store, circles, Arc::clone(counts)));
        }
        for circle in circles.into_iter().filter(|circle| !circle.circle.is_pattern()) {
            duties.spawn(rhailib_bridge::run(self.store.clone(), circle, Arc::clone(counts)));
        }
        duties
    }

    fn start<D: Duty>(&self, duties: &mut JoinSet<()>, counts: &Arc<DutyCounts>) {
        duties.spawn(repeat::<D>(self.store.clone(), self.settings.clone(), Arc::clone(counts)));
    }
}
