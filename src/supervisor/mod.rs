//! The supervisor role: tends what happens to jobs later. Each duty is one file and one loop, all
//! wired here. Every duty is idempotent, so any number of supervisors may run at once.

mod control_fan_out;
mod cron;
mod dead_boots;
mod due_jobs;
mod foreign_actors;
mod large_fan_out;
mod legacy_pushes;
mod legacy_queues;
mod legacy_stops;
mod limits;
mod long_waits;
mod lost_pops;
mod object_indexes;
mod orphans;
mod rhailib_bridge;
mod statistics;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tracing::{debug, info, warn};

use crate::config::{ActorConfig, Crontab, JobConfig, OsisConfig, SupervisorConfig};
use crate::proto::report::{Report, Reporter, Shutdown};
use crate::store::{Backoff, Recovered, Store, StoreError};

/// How often a supervisor says that it is alive, at the least.
const PULSE: Duration = Duration::from_secs(5);

/// What a supervisor is made of.
#[derive(Clone)]
pub struct Supervisor {
    /// Redis, known to answer.
    pub store: Store,
    /// What it is told, now and later.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// Where the daemon listens.
    pub report: Reporter,
    /// The longest time between two signs of life, if systemd's watchdog asks for more of them.
    pub beat_within: Option<Duration>,
}

/// What a supervisor is told by its configuration. Each round of a duty takes the latest.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `[supervisor]`.
    pub supervisor: SupervisorConfig,
    /// `[job]`.
    pub job: JobConfig,
    /// `[actor]`, for how long an actor counts as live.
    pub actor: ActorConfig,
    /// `[osis]`, for the indexes that are declared.
    pub osis: OsisConfig,
    /// The periodic jobs.
    pub crontab: Arc<Crontab>,
}

/// What one round of a duty works with.
struct Round {
    store: Store,
    settings: Arc<Settings>,
}

/// What the duties did, for the status line.
#[derive(Debug, Default)]
struct Tally {
    /// Rounds of any duty, proof that they are not stuck.
    rounds: AtomicU64,
    /// Rounds that Redis did not answer, since the last that it did.
    unanswered: AtomicU64,
    /// Scheduled jobs dispatched.
    dispatched: AtomicU64,
    /// Firings of periodic jobs.
    fired: AtomicU64,
    /// Control messages handed on.
    handed_on: AtomicU64,
    /// Jobs put back to their queues.
    recovered: AtomicU64,
}

impl Supervisor {
    /// Serves until `shutdown` asks it to end. No duty holds anything between its rounds, so
    /// there is nothing to wait for.
    pub async fn run(self, mut shutdown: watch::Receiver<Shutdown>) {
        let tally = Arc::new(Tally::default());
        let mut duties = JoinSet::new();
        duties.spawn(repeat::<control_fan_out::ControlFanOut>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<cron::Cron>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<dead_boots::DeadBoots>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<due_jobs::DueJobs>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<foreign_actors::ForeignActors>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<large_fan_out::LargeFanOut>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<limits::HeldJobs>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<long_waits::LongWaits>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<lost_pops::LostPops>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<object_indexes::ObjectIndexes>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<orphans::Orphans>(self.clone(), Arc::clone(&tally)));
        duties.spawn(repeat::<statistics::Statistics>(self.clone(), Arc::clone(&tally)));
        if self.store.has_legacy() {
            duties.spawn(repeat::<legacy_queues::LegacyQueues>(self.clone(), Arc::clone(&tally)));
            duties.spawn(repeat::<legacy_stops::LegacyStops>(self.clone(), Arc::clone(&tally)));
        }
        for queue in self.store.legacy_queues() {
            let list = queue.legacy.clone();
            duties.spawn(legacy_pushes::run(self.clone(), list, Arc::clone(&tally)));
        }
        let circles = self.settings.borrow().supervisor.rhailib_circles.clone();
        for circle in circles {
            duties.spawn(rhailib_bridge::run(self.clone(), circle, Arc::clone(&tally)));
        }
        info!("ready: {} duties", duties.len());
        (self.report)(Report::Ready);

        let every = self.beat_within.map_or(PULSE, |within| within.min(PULSE));
        let mut pulse = tokio::time::interval(every);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut rounds = None;
        loop {
            tokio::select! {
                _ = pulse.tick() => {
                    let now = tally.rounds.load(Ordering::Relaxed);
                    if rounds.replace(now) == Some(now) {
                        warn!("no duty makes progress");
                    } else {
                        (self.report)(Report::Alive(tally.status()));
                    }
                }
                changed = shutdown.wait_for(|asked| *asked > Shutdown::No) => {
                    drop(changed);
                    (self.report)(Report::Stopping { status: "shutting down".to_owned(), within: PULSE });
                    duties.shutdown().await;
                    info!("gone");
                    return;
                }
            }
        }
    }
}

impl Tally {
    /// Counts and logs what a sweep of recovery found.
    fn note(&self, duty: &'static str, found: Recovered) {
        let Recovered { boots, put_back, given_up, foreign, orphans } = found;
        self.recovered.fetch_add(put_back, Ordering::Relaxed);
        if boots + put_back + given_up > 0 {
            warn!(boots, put_back, given_up, foreign, orphans, "{duty}");
        } else if foreign + orphans > 0 {
            info!(foreign, orphans, "{duty}");
        }
    }

    fn status(&self) -> String {
        let redis = match self.unanswered.load(Ordering::Relaxed) {
            0 => "redis ok",
            _ => "redis away",
        };
        format!(
            "{} scheduled jobs dispatched, {} periodic jobs fired, {} recovered, {} control messages handed on, {redis}",
            self.dispatched.load(Ordering::Relaxed),
            self.fired.load(Ordering::Relaxed),
            self.recovered.load(Ordering::Relaxed),
            self.handed_on.load(Ordering::Relaxed)
        )
    }
}

/// One thing a supervisor does again and again.
trait Duty: Send + 'static {
    /// What it does, for messages.
    const NAME: &'static str;
    /// How long it holds still once Redis is back, so that others can do what they could not do
    /// meanwhile.
    const AFTER_OUTAGE: Duration = Duration::ZERO;

    /// Does it once. Returns how long to wait before the next time.
    fn round(
        own: &Round,
        tally: &Tally,
    ) -> impl Future<Output = Result<Duration, StoreError>> + Send;
}

/// Does a duty for ever; a round that fails is tried again with backoff.
async fn repeat<D: Duty>(own: Supervisor, tally: Arc<Tally>) {
    let name = D::NAME;
    let mut backoff = Backoff::default();
    let mut away = false;
    loop {
        tally.rounds.fetch_add(1, Ordering::Relaxed);
        if away && own.store.ping().await.is_ok() {
            away = false;
            tokio::time::sleep(D::AFTER_OUTAGE).await;
        }
        let settings = Arc::clone(&own.settings.borrow());
        let round = Round { store: own.store.clone(), settings };
        let wait = match D::round(&round, &tally).await {
            Ok(wait) => {
                tally.unanswered.store(0, Ordering::Relaxed);
                if backoff.succeeded() {
                    info!("{name}: redis is back");
                }
                wait
            }
            Err(error) => {
                away |= error.is_transient();
                if tally.unanswered.fetch_add(1, Ordering::Relaxed) == 0 || !error.is_transient() {
                    warn!("{name}: {error}; trying again");
                } else {
                    debug!("{name}: {error}");
                }
                backoff.failed()
            }
        };
        tokio::time::sleep(wait).await;
    }
}
