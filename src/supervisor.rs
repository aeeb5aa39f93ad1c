//! The supervisor role: does what happens to jobs later. Each duty is one function and one loop for each shard,
//! all started here; some are only of the home shard. Every duty is idempotent, so any number of supervisors
//! may run at the same time.

mod clock_watch;
mod cron_in_force;
mod deliver;
mod deliveries;
mod due_jobs;
mod duty;
mod heartbeat;
mod notify_deliveries;
mod notify_events;
mod periodic_jobs;
mod problems;
mod queues;
mod recovery;
mod rhailib_bridge;
mod script_files;
mod unused_contents;
mod upkeep;
mod whole_crontab;

pub use deliver::template_faults;
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
use crate::store::{AdoptionRules, Shards, Store, StoreError, adopt_what_is_pushed};
use crate::trace::Tracer;
use duty::{DutyCounts, Next, Round, repeat};
use heartbeat::{BEAT, Heartbeat};

/// A supervisor before it starts.
pub struct Supervisor {
    pub unit: String,
    pub system: Shards,
    pub served: Vec<Shard>,
    pub settings: watch::Receiver<Arc<SupervisorSettings>>,
    pub report: Reporter,
    /// The longest time between two reports that systemd's watchdog allows.
    pub beat_within: Option<Duration>,
    pub tracer: Option<Tracer>,
}

/// A supervisor. It has the duties of each shard that it serves.
#[derive(Clone)]
pub struct RunningSupervisor(Arc<SupervisorState>);

struct SupervisorState {
    of: Supervisor,
    reports: Reports,
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
        let listening = Arc::new(Notify::new());
        let (pushed, settings, ready) =
            (store.clone(), of.settings.clone(), Arc::clone(&listening));
        duties.spawn(async move {
            let rules = || AdoptionRules::from(&settings.borrow().job);
            adopt_what_is_pushed(&pushed, rules, &ready).await;
        });
        // No push is missed once it is ready.
        drop(tokio::time::timeout(BEAT, listening.notified()).await);
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
        duties.start("keeping the outputs that jobs wait for", due_jobs::awaited);
        duties.start("forwarding control messages", queues::control);
        duties.start_after(RECOVERING, recovery::AFTER_OUTAGE, recovery::dead_boots);
        duties.start("notifying dependents", due_jobs::dependents);
        duties.start("dispatching due jobs", due_jobs::scheduled);
        duties.start("checking what redis keeps", upkeep::durability);
        duties.start("ending jobs that did not start in time", due_jobs::expired);
        duties.start("moving jobs from queues without live actors", queues::fallbacks);
        duties.start("checking jobs of foreign actors", recovery::foreign_actors);
        duties.start("adopting jobs of foreign programs", queues::foreign_jobs);
        duties.start("checking limits", due_jobs::held);
        duties.start("finding late and slow jobs", due_jobs::late);
        duties.start("checking for long waits", queues::long_waits);
        duties.start("finding jobs in no index", recovery::unindexed_jobs);
        duties.start("looking for work", upkeep::poll);
        duties.start("recovering foreign pops", recovery::foreign_pops);
        duties.start("removing orphaned index entries", recovery::orphaned_entries);
        duties.start("sampling statistics", upkeep::statistics);
        duties.start("reporting keys with a wrong type", upkeep::wrong_types);
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
        self.start("building indexes of objects", upkeep::object_indexes);
        self.start("noting machines", upkeep::machines);
        self.start("telling problems", problems::round);
        self.start("submitting periodic jobs", periodic_jobs::round);
        self.start("publishing scripts of files", script_files::round);
        self.start("deleting files that no job names", unused_contents::round);
        let Round { store, counts, .. } = self.means.clone();
        if !store.legacy().queues().is_empty() {
            self.start("checking legacy queues", recovery::legacy_queues);
            self.start("serving stop queues of old workers", recovery::legacy_stops);
        }
        for queue in store.legacy().queues().iter().filter(|queue| !queue.is_pattern()) {
            let (store, settings) = (store.clone(), self.settings.clone());
            let list = queue.legacy.clone();
            self.all.spawn(recovery::watch_legacy_pushes(
                store,
                settings,
                list,
                Arc::clone(&counts),
            ));
        }
        let circles = self.settings.borrow().supervisor.rhailib_circles.clone();
        if circles.iter().any(|circle| circle.circle.is_pattern()) {
            let (store, circles) = (store.clone(), circles.clone());
            self.all.spawn(rhailib_bridge::run_found(store, circles, Arc::clone(&counts)));
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
