//! The supervisor role: does what happens to jobs later. Each duty is one file and one loop for each shard,
//! all started here; some are only of the home shard. Every duty is idempotent, so any number of supervisors
//! may run at the same time.

mod awaited_jobs;
mod clock_watch;
mod control_fan_out;
mod cron_in_force;
mod dead_boots;
mod deliver;
mod deliveries;
mod dependents;
mod due_jobs;
mod durability;
mod duty;
mod expired_jobs;
mod fallbacks;
mod foreign_actors;
mod foreign_jobs;
mod foreign_pops;
mod found_circles;
mod heartbeat;
mod held_jobs;
mod late_jobs;
mod legacy_pushes;
mod legacy_queues;
mod legacy_stops;
mod long_waits;
mod loss_watch;
mod machines;
mod notify_deliveries;
mod notify_events;
mod object_indexes;
mod orphaned_entries;
mod periodic_jobs;
mod poll;
mod problems;
mod rhailib_bridge;
mod script_files;
mod statistics;
mod unindexed_jobs;
mod unused_contents;
mod whole_crontab;
mod wrong_types;

pub use duty::SupervisorSettings;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tracing::info;

use crate::proto::job::BootId;
use crate::proto::message::RECOVERING;
use crate::proto::report::{Reporter, Reports, ServiceReport, Shutdown};
use crate::proto::shard::Shard;
use crate::store::{Shards, Store, StoreError};
use crate::trace::Tracer;
use duty::{DutyCounts, Next, Round, repeat};
use heartbeat::{BEAT, Heartbeat};

/// A supervisor before it starts.
pub struct Supervisor {
    /// The name of its unit.
    pub unit: String,
    /// The stores of the whole system.
    pub system: Shards,
    /// The shards that it serves.
    pub served: Vec<Shard>,
    /// The configuration, which may change while the supervisor runs.
    pub settings: watch::Receiver<Arc<SupervisorSettings>>,
    /// The receiver of reports.
    pub report: Reporter,
    /// The longest time between two reports that systemd's watchdog allows.
    pub beat_within: Option<Duration>,
    /// Takes the spans of firings; `None` if none are made.
    pub tracer: Option<Tracer>,
}

/// A supervisor. It has the duties of each shard that it serves.
#[derive(Clone)]
pub struct RunningSupervisor(Arc<SupervisorState>);

struct SupervisorState {
    of: Supervisor,
    reports: Reports,
    /// The counters of each served shard.
    counts: Vec<Arc<DutyCounts>>,
}

impl Supervisor {
    /// Starts it; it serves nothing yet.
    pub fn start(self) -> RunningSupervisor {
        let is_one = self.served.len() == 1;
        let counts = |shard: &Shard| Arc::new(DutyCounts::of((!is_one).then_some(*shard)));
        let counts = self.served.iter().map(counts).collect();
        let reports = Reports::new(Arc::clone(&self.report), self.served.len());
        RunningSupervisor(Arc::new(SupervisorState { of: self, reports, counts }))
    }
}

impl RunningSupervisor {
    /// Serves a shard, whose Redis has answered, until `shutdown` requests the end. A duty holds nothing
    /// between its rounds, so the end waits only for notifications that are being delivered. `place` is the place of
    /// the shard among those that it serves.
    pub async fn serve(
        &self,
        place: usize,
        store: &Store,
        mut shutdown: watch::Receiver<Shutdown>,
    ) {
        let SupervisorState { of, reports, counts } = self.0.as_ref();
        counts[place].begin();
        let of_shard = counts[place].of_shard();
        let mut duties = self.start_duties(store, &counts[place]);
        let hears = Arc::new(Notify::new());
        duties.spawn(foreign_jobs::hear(store.clone(), of.settings.clone(), Arc::clone(&hears)));
        // Who pushes once it is ready is heard.
        drop(tokio::time::timeout(BEAT, hears.notified()).await);
        info!("ready: {} duties{of_shard}", duties.len());
        let report = reports.of(place);
        report(ServiceReport::Ready);

        let heartbeat = Heartbeat {
            store,
            id: BootId::random(),
            unit: &of.unit,
            report: &report,
            counts: &counts[place],
            settings: &of.settings,
            all: counts,
            tracer: of.tracer.as_ref(),
        };
        tokio::select! {
            () = heartbeat.run(of.beat_within.unwrap_or(BEAT)) => {}
            asked = shutdown.wait_for(|asked| *asked > Shutdown::No) => drop(asked),
        }
        let status = "shutting down".to_owned();
        report(ServiceReport::Stopping { status, within: BEAT + deliveries::LAST_WITHIN });
        tokio::select! {
            () = counts[place].deliveries.end() => {}
            _ = shutdown.wait_for(|asked| *asked == Shutdown::Now) => {}
        }
        duties.shutdown().await;
        heartbeat.give_up().await;
        reports.gone(place);
        info!("stopped{of_shard}");
    }

    fn start_duties(&self, store: &Store, counts: &Arc<DutyCounts>) -> JoinSet<()> {
        let SupervisorState { of: Supervisor { system, settings, tracer, .. }, .. } =
            self.0.as_ref();
        let means = Round {
            name: "",
            store: store.clone(),
            system: system.clone(),
            tracer: tracer.clone(),
            settings: Arc::clone(&settings.borrow()),
            counts: Arc::clone(counts),
        };
        let mut duties = Duties { all: JoinSet::new(), means, settings };
        duties.start("keeping the outputs that jobs wait for", awaited_jobs::round);
        duties.start("forwarding control messages", control_fan_out::round);
        duties.start_after(RECOVERING, dead_boots::AFTER_OUTAGE, dead_boots::round);
        duties.start("notifying dependents", dependents::round);
        duties.start("dispatching due jobs", due_jobs::round);
        duties.start("checking what redis keeps", durability::round);
        duties.start("ending jobs that did not start in time", expired_jobs::round);
        duties.start("moving jobs from queues without live actors", fallbacks::round);
        duties.start("checking jobs of foreign actors", foreign_actors::round);
        duties.start("adopting jobs of foreign programs", foreign_jobs::round);
        duties.start("checking limits", held_jobs::round);
        duties.start("finding late and slow jobs", late_jobs::round);
        duties.start("checking for long waits", long_waits::round);
        duties.start("finding jobs in no index", unindexed_jobs::round);
        duties.start("looking for work", poll::round);
        duties.start("recovering foreign pops", foreign_pops::round);
        duties.start("removing orphaned index entries", orphaned_entries::round);
        duties.start("sampling statistics", statistics::round);
        duties.start("reporting keys with a wrong type", wrong_types::round);
        if store.shard() == Shard::HOME {
            duties.start_those_of_home();
        }
        duties.all
    }
}

/// The duties of one shard, while they are started.
struct Duties<'a> {
    all: JoinSet<()>,
    means: Round,
    settings: &'a watch::Receiver<Arc<SupervisorSettings>>,
}

impl Duties<'_> {
    /// Starts the duties that are not of jobs alone: the home shard has everything else.
    fn start_those_of_home(&mut self) {
        self.start("delivering notifications", notify_deliveries::round);
        self.start("reading events for notifications", notify_events::round);
        self.start("building indexes of objects", object_indexes::round);
        self.start("noting machines", machines::round);
        self.start("telling problems", problems::round);
        self.start("submitting periodic jobs", periodic_jobs::round);
        self.start("publishing scripts of files", script_files::round);
        self.start("deleting files that no job names", unused_contents::round);
        let Round { store, counts, .. } = self.means.clone();
        if !store.legacy_queues().is_empty() {
            self.start("checking legacy queues", legacy_queues::round);
            self.start("serving stop queues of old workers", legacy_stops::round);
        }
        for queue in store.legacy_queues().iter().filter(|queue| !queue.is_pattern()) {
            let (store, settings) = (store.clone(), self.settings.clone());
            let list = queue.legacy.clone();
            self.all.spawn(legacy_pushes::run(store, settings, list, Arc::clone(&counts)));
        }
        let circles = self.settings.borrow().supervisor.rhailib_circles.clone();
        if circles.iter().any(|circle| circle.circle.is_pattern()) {
            let (store, circles) = (store.clone(), circles.clone());
            self.all.spawn(found_circles::run(store, circles, Arc::clone(&counts)));
        }
        for circle in circles.into_iter().filter(|circle| !circle.circle.is_pattern()) {
            self.all.spawn(rhailib_bridge::run(store.clone(), circle, Arc::clone(&counts)));
        }
    }

    fn start<F>(&mut self, name: &'static str, duty: fn(Round) -> F)
    where
        F: Future<Output = Result<Next, StoreError>> + Send + 'static,
    {
        self.start_after(name, Duration::ZERO, duty);
    }

    fn start_after<F>(&mut self, name: &'static str, after_outage: Duration, duty: fn(Round) -> F)
    where
        F: Future<Output = Result<Next, StoreError>> + Send + 'static,
    {
        let means = Round { name, ..self.means.clone() };
        self.all.spawn(repeat(means, self.settings.clone(), after_outage, duty));
    }
}
