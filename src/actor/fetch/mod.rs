//! The fetch loop: claims jobs for the free slots of this process, hands them to their threads,
//! and records how they ended. It waits only when its queues are empty.
//!
//! At most one claim, one recording, one errand and one wait are under way at a time; the first
//! three share a connection and go out in one write when they are due together.

mod abandon;
mod claims;
mod drain;
mod endings;
mod errand;
mod inputs;
mod legacy;
mod messages;
mod slots;
mod waiting;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, watch};
use tracing::{debug, error, info, warn};

use super::life::Life;
use super::log_buffer::LogBuffer;
use super::settings::Settings;
use super::verdict;
use super::workers::{Outcome, Workers};
use crate::engine::Cancel;
use crate::proto::job::{Job, JobId};
use crate::proto::report::Shutdown;
use crate::proto::target::{ActorId, Queue};
use crate::store::{Backoff, Blocking, StoreError, Waker, Woken};
use claims::Claims;
use drain::Drain;
use endings::Endings;
use errand::{Done, Errand, Errands};
use legacy::Legacy;
use slots::Slots;

/// Outcomes that may wait for the loop; a thread with one more waits itself.
const OUTCOMES_MAX: usize = 1024;
/// How long log lines gather before they are written.
const LOG_LATENCY: Duration = Duration::from_millis(50);
/// How often a loop whose lease is in doubt looks whether it has been renewed.
const DOUBT_LATENCY: Duration = Duration::from_millis(20);

type Pending<T> = Option<Pin<Box<dyn Future<Output = T>>>>;

/// Waits for what is under way; for ever if nothing is.
async fn next<T>(pending: &mut Pending<T>) -> T {
    match pending {
        Some(future) => {
            let value = future.await;
            *pending = None;
            value
        }
        None => std::future::pending().await,
    }
}

/// A job that runs here.
struct Running {
    actor: usize,
    queue: Queue,
    cancel: Arc<Cancel>,
    log: Arc<LogBuffer>,
}

/// Everything the loop knows.
pub(super) struct Fetch {
    life: Arc<Life>,
    /// As this loop has taken them over.
    settings: Arc<Settings>,
    changes: watch::Receiver<Arc<Settings>>,
    sender: mpsc::Sender<Outcome>,
    slots: Vec<Slots>,
    workers: Vec<Workers>,
    running: HashMap<JobId, Running>,
    outcomes: mpsc::Receiver<Outcome>,
    log_written: Arc<Notify>,
    log_due: Option<Instant>,
    endings: Endings,
    errands: Errands,
    /// Stops for jobs that are claimed but not here yet.
    early_stops: Vec<JobId>,
    popped: Vec<(usize, Woken)>,
    /// Whether a claim may have gone through without us hearing of it.
    unsure: bool,
    reconciled_at: Instant,
    /// Not before this time is Redis tried again.
    retry_at: Option<Instant>,
    backoff: Backoff,
    drain: Drain,
    skipped: u64,
    skips_logged_at: Option<Instant>,
    claiming: Pending<Claims>,
    reconciling: Pending<Result<Vec<JobId>, StoreError>>,
    recording: Pending<endings::Batch>,
    flushing: Pending<endings::Flush>,
    erranding: Pending<(Errand, Result<Done, StoreError>)>,
    waiting: Pending<(Blocking, Result<Option<Woken>, StoreError>)>,
    /// The connection that blocks, while it does not.
    blocking: Option<Blocking>,
    /// What the wait under way looks at, and how to wake it.
    waiting_for: Vec<String>,
    waiting_for_work: bool,
    waker: Waker,
    waking: bool,
    waited_at: Instant,
    legacy: Legacy,
}

impl Fetch {
    /// Starts the threads; claims nothing yet.
    pub(super) fn new(life: &Arc<Life>) -> std::io::Result<Self> {
        let mut changes = life.settings.clone();
        let settings = Arc::clone(&changes.borrow_and_update());
        let (sender, outcomes) = mpsc::channel(OUTCOMES_MAX);
        let workers = start_workers(life, &settings, &sender)?;
        let slots: Vec<Slots> = life
            .actors
            .iter()
            .enumerate()
            .map(|(place, id)| {
                let legacy = life.store.legacy_lists(id);
                Slots::new(id.clone(), settings.tasks(place), life.store.keys(), legacy)
            })
            .collect();
        let legacy = Legacy::watch(&life.store, &slots);
        let blocking = life.store.blocking();
        let waker = blocking.waker();
        Ok(Self {
            settings,
            changes,
            sender,
            slots,
            workers,
            running: HashMap::new(),
            outcomes,
            log_written: Arc::default(),
            log_due: None,
            endings: Endings::default(),
            errands: Errands::new(),
            early_stops: Vec::new(),
            popped: Vec::new(),
            unsure: false,
            reconciled_at: Instant::now(),
            retry_at: None,
            backoff: Backoff::default(),
            drain: Drain::default(),
            skipped: 0,
            skips_logged_at: None,
            claiming: None,
            reconciling: None,
            recording: None,
            flushing: None,
            erranding: None,
            waiting: None,
            blocking: Some(blocking),
            waiting_for: Vec::new(),
            waiting_for_work: false,
            waker,
            waking: false,
            waited_at: Instant::now(),
            legacy,
            life: Arc::clone(life),
        })
    }

    /// Goes round until the process is asked to end and has.
    pub(super) async fn run(&mut self, shutdown: &mut watch::Receiver<Shutdown>) {
        loop {
            self.life.vitals.turned();
            let asked = *shutdown.borrow_and_update();
            self.drain_as_asked(asked);
            if self.is_over() {
                return;
            }
            self.begin();
            let timer = self.next_timer();
            tokio::select! {
                Some(outcome) = self.outcomes.recv() => self.on_outcomes(outcome),
                claims = next(&mut self.claiming) => self.on_claims(claims),
                owned = next(&mut self.reconciling) => self.on_owned(owned),
                batch = next(&mut self.recording) => self.on_recorded(batch),
                flush = next(&mut self.flushing) => self.on_flushed(flush),
                (errand, done) = next(&mut self.erranding) => self.on_errand(errand, done),
                (blocking, woken) = next(&mut self.waiting) => self.on_woken(blocking, woken),
                () = self.log_written.notified() => {
                    self.log_due.get_or_insert_with(|| Instant::now() + LOG_LATENCY);
                }
                actor = self.legacy.found() => self.slots[actor].hungry = true,
                () = sleep_until(timer) => {}
                _ = shutdown.changed() => {}
                () = self.life.vitals.strain_changed.notified() => {}
                Ok(()) = self.changes.changed() => self.take_over_settings(),
            }
            self.tell_vitals();
        }
    }

    /// Takes over new settings. What runs goes on as it began; its threads end with it.
    fn take_over_settings(&mut self) {
        let settings = Arc::clone(&self.changes.borrow_and_update());
        match start_workers(&self.life, &settings, &self.sender) {
            Ok(workers) => self.workers = workers,
            Err(error) => {
                error!("cannot start the threads that new settings ask for: {error}");
                return;
            }
        }
        for (place, slots) in self.slots.iter_mut().enumerate() {
            slots.resize(settings.tasks(place));
        }
        self.settings = settings;
        info!("new settings are in force");
    }

    /// Puts under way whatever is due.
    fn begin(&mut self) {
        let now = Instant::now();
        // Not a line of a log must come from a boot whose jobs may be somebody else's by now. The
        // heartbeat finds out.
        if self.retry_at.is_some_and(|at| now < at) || self.life.vitals.lease_in_doubt() {
            return;
        }
        self.retry_at = None;
        let held = self.life.vitals.strain().is_some();
        for slots in &mut self.slots {
            slots.hold(held);
            slots.mend(now);
        }
        if now.duration_since(self.reconciled_at) >= self.life.lease {
            self.unsure = true;
        }
        // Before the next recording, which it would have to wait for.
        if self.unsure {
            self.begin_reconciling();
        }
        self.begin_recording();
        self.begin_flushing(now);
        if !self.unsure {
            self.begin_claiming();
        }
        self.begin_waiting(now);
        self.legacy.look(&self.slots);
        // Last, since those before may have an errand to do at once.
        self.begin_errand();
    }

    fn begin_errand(&mut self) {
        if self.erranding.is_none()
            && let Some(errand) = self.errands.pop_front()
        {
            let life = Arc::clone(&self.life);
            self.erranding = Some(Box::pin(async move {
                let done = errand.run(&life).await;
                (errand, done)
            }));
        }
    }

    fn on_outcomes(&mut self, first: Outcome) {
        self.on_outcome(first);
        while let Ok(outcome) = self.outcomes.try_recv() {
            self.on_outcome(outcome);
        }
    }

    fn on_outcome(&mut self, outcome: Outcome) {
        let Outcome { job, result, took } = outcome;
        let Some(running) = self.running.remove(&job.id) else {
            return;
        };
        let slots = &mut self.slots[running.actor];
        slots.ended();
        log_end(&job, slots, &result, took);
        if let Some(verdict) = verdict::decide(&job, result, &self.settings.job, fastrand::f64()) {
            let script_type = slots.id.script_type.clone();
            self.endings.add(job.id, script_type, verdict, &running.log);
        }
    }

    fn on_errand(&mut self, errand: Errand, done: Result<Done, StoreError>) {
        match done {
            Ok(Done::Quietly) => {}
            Ok(Done::StopIsOurs(id)) => self.stop_own(id),
            // Scripts are killed only once all jobs are back in their queues.
            Ok(Done::GivenBack) => {
                if !self.errands.iter().any(|errand| matches!(errand, Errand::GiveBack(_))) {
                    self.drain.given_back();
                }
            }
            Err(error) => {
                if error.is_transient() && !matches!(errand, Errand::Wake(_)) {
                    self.errands.push_front(errand);
                }
                self.redis_failed("doing an errand", &error);
                return;
            }
        }
        self.redis_answered();
    }

    fn redis_failed(&mut self, doing: &str, error: &StoreError) {
        self.retry_at = Some(Instant::now() + self.backoff.failed());
        if !error.is_transient() {
            error!("{doing}: {error}");
        } else if self.life.vitals.redis_went(Instant::now()) {
            warn!("{error}; running jobs go on, trying again");
        } else {
            debug!("{doing}: {error}");
        }
    }

    fn redis_answered(&mut self) {
        self.backoff.succeeded();
        if let Some(since) = self.life.vitals.redis_came() {
            info!("redis is back after {:.1} s", since.elapsed().as_secs_f64());
        }
    }

    fn tell_vitals(&self) {
        for (slots, vitals) in self.slots.iter().zip(&self.life.vitals.actors) {
            vitals.running.store(slots.running, Ordering::Relaxed);
            vitals.draining.store(slots.draining, Ordering::Relaxed);
        }
    }

    /// When the loop has something to do though nothing happens.
    fn next_timer(&self) -> Option<Instant> {
        let now = Instant::now();
        let due = if self.life.vitals.lease_in_doubt() {
            Some(now + DOUBT_LATENCY)
        } else {
            self.retry_at.or_else(|| self.log_due.filter(|_| self.flushing.is_none()))
        };
        [due, self.drain.deadline(now)].into_iter().flatten().min()
    }
}

/// The threads of every actor.
fn start_workers(
    life: &Life,
    settings: &Settings,
    outcomes: &mpsc::Sender<Outcome>,
) -> std::io::Result<Vec<Workers>> {
    let start = |(place, id): (usize, &ActorId)| {
        let engine = settings.engines.get(&id.script_type).ok_or(std::io::ErrorKind::NotFound)?;
        let log_dir = &settings.job.log_dir;
        Workers::start(settings.tasks(place), engine, log_dir, outcomes)
    };
    life.actors.iter().enumerate().map(start).collect()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn log_end(
    job: &Job,
    slots: &Slots,
    result: &Result<crate::engine::Success, crate::engine::Failure>,
    took: Duration,
) {
    let outcome = match result {
        Ok(_) => "finished".to_owned(),
        Err(failure) => failure.to_string(),
    };
    info!(
        job_id = %job.id,
        script_type = %slots.id.script_type,
        group = %slots.id.group,
        instance = %slots.id.instance,
        attempt = job.attempt,
        caller_id = %job.spec.caller_id,
        context_id = %job.spec.context_id,
        took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "job ended: {outcome}"
    );
}
