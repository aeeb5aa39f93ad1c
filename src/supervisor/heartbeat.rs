//! The heartbeat of a supervisor on one shard: renews its presence, reports its state, and feeds the watchdog while
//! the duties make progress or rest, or Redis is away.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tracing::{debug, error, warn};

use super::cron_in_force::cron_in_force;
use super::duty::{DutyCounts, SupervisorSettings, status};
use crate::client::host_name;
use crate::proto::cron::CronInForce;
use crate::proto::job::BootId;
use crate::proto::message::SupervisorPresence;
use crate::proto::report::{Reporter, ServiceReport};
use crate::proto::text::counted;
use crate::store::{Backoff, EmptiedRedis, Store, StoreError};
use crate::trace::Tracer;

/// The longest time between two heartbeats, and the longest wait for an answer to one: a third of the
/// time that presence lasts. The duties share the connection, so a heartbeat may wait for their
/// attempts to connect.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// The time between two counts of jobs.
const COUNTED_EACH: Duration = Duration::from_secs(30);

pub(super) struct Heartbeat<'a> {
    pub(super) store: &'a Store,
    /// The id of this start.
    pub(super) id: BootId,
    pub(super) unit: &'a str,
    pub(super) report: &'a Reporter,
    pub(super) counts: &'a DutyCounts,
    /// The settings in force, for the script types.
    pub(super) settings: &'a watch::Receiver<Arc<SupervisorSettings>>,
    /// The counters of all shards, for the status line.
    pub(super) all: &'a [Arc<DutyCounts>],
    pub(super) tracer: Option<&'a Tracer>,
}

impl Heartbeat<'_> {
    /// Beats until the future is dropped. While Redis is away it beats more often.
    pub(super) async fn run(&self, every: Duration) {
        let every = every.min(BEAT);
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut backoff = Backoff::default();
        let (started_at, mut rounds) = (Timestamp::now(), None);
        let mut loss = LossWatch::default();
        let mut settings = self.settings.clone();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                // The settings have changed.
                Ok(()) = settings.changed() => {}
                () = self.counts.redis_lost.notified() => {
                    (self.report)(ServiceReport::Alive(status(self.all)));
                    continue;
                }
            }
            let now = Arc::clone(&self.settings.borrow());
            let in_force = cron_in_force(&now, self.counts.crontab.latest()).await;
            match self.beat(started_at, in_force).await {
                Ok((supervisors, mark)) => {
                    backoff.succeeded();
                    if let Err(error) = loss.watch(self.store, mark).await {
                        debug!("cannot tell whether redis was emptied: {error}");
                    }
                    if !self.store.is_refused() {
                        self.counts.redis_answered();
                    }
                    debug!(supervisors, "heartbeat");
                    if let Some(tracer) = self.tracer {
                        tracer.count_dropped(self.store).await;
                    }
                }
                Err(error) if error.is_outage() => {
                    self.counts.redis_failed("renewing presence", &error);
                    ticks.reset_after(backoff.failed().min(every));
                }
                // A duty warns of the same.
                Err(error) => debug!("cannot renew presence: {error}"),
            }
            let now = self.counts.rounds.load(Ordering::Relaxed);
            let is_away = self.counts.redis_away_since().is_some();
            let is_progress = rounds.replace(now) != Some(now) || self.counts.may_rest(every);
            // Without Redis the duties wait for each other's attempts to connect.
            if is_progress || is_away {
                (self.report)(ServiceReport::Alive(status(self.all)));
            } else {
                warn!("no duty makes progress: the watchdog is not fed");
            }
        }
    }

    async fn beat(
        &self,
        started_at: Timestamp,
        cron: CronInForce,
    ) -> Result<(u64, Option<String>), StoreError> {
        let presence = SupervisorPresence {
            unit: self.unit.to_owned(),
            pid: std::process::id(),
            hostname: host_name(),
            started_at: format!("{started_at:.3}"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            last_heartbeat: format!("{:.3}", Timestamp::now()),
            redis: self.counts.trouble().unwrap_or_else(|| "ok".to_owned()),
            types: self.settings.borrow().crontab.rules.type_names(),
            cron: Some(cron),
            clock_step: self.counts.clock.step(),
            settings: self.settings.borrow().digest.clone(),
            settings_at: format!("{:.3}", self.settings.borrow().read_at),
        };
        let times = Arc::clone(&self.settings.borrow().times);
        let renewed = self.store.supervisors().supervise(&self.id, &presence, &times);
        let silent = |_| Err(StoreError::silent(self.store.address().as_ref(), true));
        tokio::time::timeout(BEAT, renewed).await.unwrap_or_else(silent)
    }

    /// Gives the presence up. If Redis is away for longer than the patience, it expires by itself.
    pub(super) async fn give_up(&self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let mut backoff = Backoff::default();
        let leaves = async {
            while let Err(error) = self.store.supervisors().leave(&self.id).await {
                debug!("cannot give up the presence: {error}; trying again");
                tokio::time::sleep(backoff.failed()).await;
            }
        };
        if tokio::time::timeout(PATIENCE, leaves).await.is_err() {
            debug!("cannot give up the presence; it expires by itself");
        }
    }
}

/// The state of Redis at the last heartbeats, which shows that it has lost all keys of the namespace.
#[derive(Default)]
struct LossWatch {
    /// When the jobs were last counted; none before the first heartbeat.
    counted_at: Option<Instant>,
    jobs: u64,
    /// The mark of the data.
    mark: Option<String>,
    /// The process of Redis.
    run_id: Option<String>,
}

impl LossWatch {
    /// Checks a heartbeat. `mark` is the mark of the data, if Redis did not have the presence before it.
    async fn watch(&mut self, store: &Store, mark: Option<String>) -> Result<(), StoreError> {
        let is_due = self.counted_at.is_none_or(|at| at.elapsed() >= COUNTED_EACH);
        let before = mark.clone().and_then(|mark| self.mark.replace(mark));
        let is_lost = before.is_some() && before != mark;
        if self.jobs > 0 && is_lost {
            self.report(store).await?;
        } else if !is_due {
            return Ok(());
        }
        self.jobs = store.jobs().count().await?.all();
        self.run_id = store.redis().state(false).await?.run_id;
        self.counted_at = Some(Instant::now());
        Ok(())
    }

    async fn report(&self, store: &Store) -> Result<(), StoreError> {
        let run_id = store.redis().state(false).await?.run_id;
        let restarted = run_id.is_some() && self.run_id.is_some() && run_id != self.run_id;
        let emptied = EmptiedRedis { at: store.now().await?, jobs: self.jobs, restarted };
        let jobs = counted(emptied.jobs, "job was known", "jobs were known");
        let how = if restarted { "was restarted without its data" } else { "was emptied" };
        error!("redis at {} {how}: {jobs}, all keys of the namespace are gone", store.address());
        store.redis().note_emptied(&emptied).await
    }
}
