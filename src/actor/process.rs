//! The state that all boots of one process share: its threads, its reports, and its state line.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::crew::Crew;
use super::health::Health;
use super::settings::ActorSettings;
use crate::proto::report::{Reports, Shutdown};
use crate::proto::text::counted;
use crate::store::Store;

/// The state that all boots of one process share.
pub(super) struct ActorProcess {
    /// The settings, now and after each reload.
    pub(super) settings: watch::Receiver<Arc<ActorSettings>>,
    /// The longest time between two heartbeats that the watchdog allows.
    pub(super) beat_within: Option<Duration>,
    /// The reports of the boots, which become those of the process.
    pub(super) reports: Reports,
    /// Asks all boots to shut down.
    pub(super) end: watch::Sender<Shutdown>,
    /// The threads.
    pub(super) crew: Crew,
    /// When the process started.
    pub(super) started_at: Timestamp,
    /// True while a boot claims nothing, as the machine is overloaded or full.
    is_overloaded: AtomicBool,
    /// The state of the boot of each shard that serves.
    serving: Mutex<Vec<Option<Arc<Health>>>>,
}

impl ActorProcess {
    /// Creates the state of a process without boots.
    pub(super) fn new(
        settings: watch::Receiver<Arc<ActorSettings>>,
        beat_within: Option<Duration>,
        reports: Reports,
        end: watch::Sender<Shutdown>,
        crew: Crew,
    ) -> Self {
        let serving = Mutex::new(vec![None; crew.shards()]);
        let started_at = Timestamp::now();
        let is_overloaded = AtomicBool::new(false);
        Self { settings, beat_within, reports, end, crew, started_at, is_overloaded, serving }
    }

    /// Notes that a boot finds the machine overloaded, or no longer. Returns whether that is new.
    pub(super) fn overload_changed(&self, is_overloaded: bool) -> bool {
        self.is_overloaded.swap(is_overloaded, Ordering::Relaxed) != is_overloaded
    }

    /// Returns the time between two heartbeats.
    pub(super) fn heartbeat(&self) -> Duration {
        let configured = self.settings.borrow().actor.heartbeat;
        self.beat_within.map_or(configured, |within| configured.min(within))
    }

    /// Notes that a boot of a shard serves, or that none does.
    pub(super) fn serves(&self, place: usize, health: Option<Arc<Health>>) {
        if health.is_none() {
            self.reports.gone(place);
        }
        self.lock()[place] = health;
    }

    /// Returns ` on shard 3` for a process that serves several, else nothing.
    pub(super) fn of_shard(&self, store: &Store) -> String {
        if self.crew.shards() > 1 { format!(" on shard {}", store.shard()) } else { String::new() }
    }

    /// Returns the number of running jobs of all shards.
    pub(super) fn running(&self) -> usize {
        let serving = self.lock();
        let actors = serving.iter().flatten().flat_map(|health| &health.actors);
        actors.map(|actor| actor.running.load(Ordering::Relaxed)).sum()
    }

    /// Returns one line for a person: `2 of 4 tasks busy, 18 231 done, redis ok`.
    pub(super) fn status(&self) -> String {
        let tasks: usize = self.settings.borrow().actors.iter().map(|actor| actor.tasks).sum();
        let running = self.running();
        let serving = self.lock();
        let all = || serving.iter().flatten();
        let done = grouped(all().map(|health| health.done.load(Ordering::Relaxed)).sum());
        let draining = all()
            .any(|health| health.actors.iter().any(|actor| actor.draining.load(Ordering::Relaxed)));
        let draining = if draining { ", draining" } else { "" };
        let overload = all().find_map(|health| health.overload());
        let overload = overload.map(|why| format!(", holding: {why}")).unwrap_or_default();
        let redis = redis_line(&serving);
        format!("{running} of {tasks} tasks busy, {done} done, {redis}{overload}{draining}")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Arc<Health>>>> {
        // No code panics while it holds it.
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the state of Redis; of several shards, how many are away.
fn redis_line(serving: &[Option<Arc<Health>>]) -> String {
    let since = |health: &Option<Arc<Health>>| health.as_ref()?.outage.since();
    let away: Vec<u64> =
        serving.iter().filter_map(since).map(|at| at.elapsed().as_secs()).collect();
    let unserved = serving.iter().filter(|health| health.is_none()).count();
    let unserved = match unserved as u64 {
        0 => String::new(),
        number => format!(", {} not served yet", counted(number, "shard is", "shards are")),
    };
    match (away.iter().max(), serving.len()) {
        (None, _) => format!("redis ok{unserved}"),
        (Some(longest), 1) => format!("redis away for {longest} s"),
        (Some(longest), shards) => {
            format!("redis of {} of {shards} shards away for {longest} s{unserved}", away.len())
        }
    }
}

/// Formats a number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (18_231, "18 231")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(1_234_567), "1 234 567");
    }
}
