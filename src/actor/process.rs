//! The state that all boots of one process share: its threads, its reports, and its state line.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::crew::Crew;
use super::health::Health;
use super::settings::ActorSettings;
use crate::proto::report::{Reporter, Reports, Shutdown, redis_away, redis_refuses};
use crate::proto::text::grouped;
use crate::store::Store;
use crate::trace::Tracer;

/// The actors of one process, before they start.
pub struct Actors {
    pub settings: watch::Receiver<Arc<ActorSettings>>,
    /// The longest time between two heartbeats, where systemd's watchdog needs more of them than
    /// the configuration.
    pub beat_within: Option<Duration>,
    pub report: Reporter,
    /// Asks the process to shut down: a control message on any shard does.
    pub end: watch::Sender<Shutdown>,
    /// The number of shards that it serves. They share its tasks.
    pub shards: usize,
    pub tracer: Option<Tracer>,
    /// The home shard, which has the published scripts.
    pub home: Store,
}

pub(super) struct ActorProcess {
    /// The actors, as they were given at the start.
    pub(super) of: Actors,
    /// The reports of the boots, which become the reports of the process.
    pub(super) reports: Reports,
    pub(super) crew: Crew,
    pub(super) started_at: Timestamp,
    /// True while a boot claims nothing, as the machine is overloaded or full.
    is_overloaded: AtomicBool,
    /// When it took a name over from a process that was killed for lack of memory.
    pub(super) after_oom_kill: OnceLock<String>,
    /// The actors that are drained, in the order of the settings. It holds for all shards, with those whose
    /// boot begins later.
    drained: watch::Sender<Vec<bool>>,
    shards: Mutex<Vec<ShardState>>,
}

#[derive(Clone)]
enum ShardState {
    /// Its Redis has not answered, since this time.
    Awaited(Instant),
    /// A boot serves it.
    Served(Arc<Health>),
    /// It has no boot: one has ended.
    Ended,
}

impl ActorProcess {
    pub(super) fn new(of: Actors, crew: Crew) -> Self {
        Self {
            reports: Reports::new(Arc::clone(&of.report), of.shards),
            of,
            started_at: Timestamp::now(),
            is_overloaded: AtomicBool::new(false),
            after_oom_kill: OnceLock::new(),
            drained: watch::Sender::new(vec![false; crew.workers.len()]),
            shards: Mutex::new(vec![ShardState::Awaited(Instant::now()); crew.shards]),
            crew,
        }
    }

    /// Drains an actor on all shards, or lets it claim jobs again. Returns whether that is new.
    pub(super) fn drain(&self, actor: usize, is_drained: bool) -> bool {
        self.drained.send_if_modified(|drained| {
            std::mem::replace(&mut drained[actor], is_drained) != is_drained
        })
    }

    pub(super) fn drained(&self) -> watch::Receiver<Vec<bool>> {
        self.drained.subscribe()
    }

    /// Notes that a boot finds the machine overloaded, or no longer. Returns whether that is new.
    pub(super) fn overload_changed(&self, is_overloaded: bool) -> bool {
        self.is_overloaded.swap(is_overloaded, Ordering::Relaxed) != is_overloaded
    }

    /// Returns the time between two heartbeats.
    pub(super) fn heartbeat(&self) -> Duration {
        let configured = self.of.settings.borrow().actor.heartbeat;
        self.of.beat_within.map_or(configured, |within| configured.min(within))
    }

    pub(super) fn serves(&self, place: usize, health: Arc<Health>) {
        self.shards.lock()[place] = ShardState::Served(health);
    }

    pub(super) fn ended(&self, place: usize) {
        self.reports.gone(place);
        self.shards.lock()[place] = ShardState::Ended;
    }

    /// Returns ` on shard 3` for a process that serves several, else nothing.
    pub(super) fn of_shard(&self, store: &Store) -> String {
        if self.crew.shards > 1 { format!(" on shard {}", store.shard()) } else { String::new() }
    }

    /// Returns the number of running jobs of all shards.
    pub(super) fn running(&self) -> usize {
        let shards = self.shards.lock();
        let actors = served(&shards).flat_map(|health| &health.actors);
        actors.map(|actor| actor.running.load(Ordering::Relaxed)).sum()
    }

    /// Returns one line for a person: `2 of 4 tasks busy, 18 231 done, redis ok`.
    pub(super) fn status(&self) -> String {
        let tasks: usize = self.of.settings.borrow().actors.iter().map(|actor| actor.tasks).sum();
        let running = self.running();
        let shards = self.shards.lock();
        let all = || served(&shards);
        let done: u64 = all().map(|health| health.done.load(Ordering::Relaxed)).sum();
        let done = grouped(&done.to_string());
        let draining = all()
            .any(|health| health.actors.iter().any(|actor| actor.draining.load(Ordering::Relaxed)));
        let draining = if draining { ", draining" } else { "" };
        let overload = all().find_map(|health| health.overload());
        let overload = overload.map(|why| format!(", holding: {why}")).unwrap_or_default();
        let redis = redis_line(&shards);
        let dropped = self.of.tracer.as_ref().map_or(0, Tracer::dropped);
        let dropped =
            if dropped > 0 { format!(", {dropped} spans dropped") } else { String::new() };
        format!(
            "{running} of {tasks} tasks busy, {done} done, {redis}{overload}{dropped}{draining}"
        )
    }
}

fn served(shards: &[ShardState]) -> impl Iterator<Item = &Arc<Health>> {
    shards.iter().filter_map(|shard| match shard {
        ShardState::Served(health) => Some(health),
        ShardState::Awaited(_) | ShardState::Ended => None,
    })
}

/// Returns the state of Redis; of several shards, how many are away.
fn redis_line(shards: &[ShardState]) -> String {
    let away_since = |shard: &ShardState| match shard {
        ShardState::Awaited(since) => Some(*since),
        ShardState::Served(health) => health.outage.since(),
        ShardState::Ended => None,
    };
    let away = shards.iter().filter_map(away_since).map(|since| since.elapsed());
    let refused = served(shards).filter(|health| health.outage.is_refused()).count();
    if let Some(refused) = redis_refuses(refused, shards.len()) {
        return refused;
    }
    redis_away(&away.collect::<Vec<_>>(), shards.len()).unwrap_or_else(|| "redis ok".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_whose_redis_has_not_answered_counts_as_away() {
        let served = || ShardState::Served(Arc::new(Health::new(1, Duration::ZERO)));
        let awaited = ShardState::Awaited(Instant::now());
        assert_eq!(redis_line(&[served(), ShardState::Ended]), "redis ok");
        assert_eq!(
            redis_line(&[served(), awaited, served(), served()]),
            "redis of 1 of 4 shards away for 0 s"
        );
        let away = Health::new(1, Duration::ZERO);
        away.outage.failed(Instant::now());
        let away = ShardState::Served(Arc::new(away));
        assert_eq!(redis_line(std::slice::from_ref(&away)), "redis away for 0 s");
        assert_eq!(redis_line(&[away, served()]), "redis of 1 of 2 shards away for 0 s");
    }
}
