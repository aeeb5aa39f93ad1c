//! What belongs to one life of an actor process: its boot id, its settings, and what its loops
//! tell each other. An actor that loses its lease starts a new life.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::settings::Settings;
use crate::proto::job::BootId;
use crate::proto::report::Reporter;
use crate::proto::target::ActorId;
use crate::store::Store;

/// Shared by the loops of one life.
pub(super) struct Life {
    /// Redis.
    pub(super) store: Store,
    /// Who owns the jobs that this life claims.
    pub(super) boot: BootId,
    /// The actors of this process.
    pub(super) actors: Vec<ActorId>,
    /// How long a boot lives without a heartbeat.
    pub(super) lease: Duration,
    /// What may change while it lives.
    pub(super) settings: watch::Receiver<Arc<Settings>>,
    /// Where the daemon listens.
    pub(super) report: Reporter,
    /// How it goes.
    pub(super) vitals: Vitals,
}

impl Life {
    /// The settings as they are now.
    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }
}

/// What the fetch loop leaves for the heartbeat to tell.
#[derive(Debug)]
pub(super) struct Vitals {
    /// When the fetch loop went round last, in milliseconds since `born`: proof that it is not
    /// stuck.
    turned_ms: AtomicU64,
    born: Instant,
    /// Until when the lease certainly lasts, in milliseconds since `born`.
    leased_until_ms: AtomicU64,
    /// Somebody else than the heartbeat was told that the lease is lost.
    pub(super) lease_lost: Notify,
    /// Jobs whose end was recorded.
    pub(super) done: AtomicU64,
    /// Per actor, in the order of `Life::actors`.
    pub(super) actors: Vec<ActorVitals>,
    /// Something changed that others should hear of before the next heartbeat.
    pub(super) news: Notify,
    /// Why the actors take nothing though they could, if their machine is past its bounds.
    strain: Mutex<Option<String>>,
    /// That has changed.
    pub(super) strain_changed: Notify,
    /// Since when Redis has been away, if it is.
    away_since: Mutex<Option<Instant>>,
}

/// How one actor does.
#[derive(Debug, Default)]
pub(super) struct ActorVitals {
    /// Jobs it runs.
    pub(super) running: AtomicUsize,
    /// Whether it takes no more.
    pub(super) draining: AtomicBool,
}

impl Vitals {
    /// Those of a life that begins now. It gets its first lease later than that, so this one ends
    /// too early rather than too late.
    pub(super) fn new(actors: usize, lease: Duration) -> Self {
        Self {
            turned_ms: AtomicU64::new(0),
            born: Instant::now(),
            leased_until_ms: AtomicU64::new(millis(lease)),
            lease_lost: Notify::new(),
            done: AtomicU64::new(0),
            actors: std::iter::repeat_with(ActorVitals::default).take(actors).collect(),
            news: Notify::new(),
            strain: Mutex::new(None),
            strain_changed: Notify::new(),
            away_since: Mutex::new(None),
        }
    }

    /// The lease was renewed by a call that was made at this time.
    pub(super) fn leased(&self, asked_at: Instant, lease: Duration) {
        let until = asked_at.saturating_duration_since(self.born) + lease;
        self.leased_until_ms.store(millis(until), Ordering::Relaxed);
    }

    /// Whether the lease may be over: nobody has renewed it for as long as it lasts, because
    /// Redis was away, or because this process was stopped for a while.
    pub(super) fn lease_in_doubt(&self) -> bool {
        millis(self.born.elapsed()) >= self.leased_until_ms.load(Ordering::Relaxed)
    }

    /// The fetch loop went round.
    pub(super) fn turned(&self) {
        self.turned_ms.store(millis(self.born.elapsed()), Ordering::Relaxed);
    }

    /// How long ago it did.
    pub(super) fn since_turn(&self) -> Duration {
        let last = self.turned_ms.load(Ordering::Relaxed);
        Duration::from_millis(millis(self.born.elapsed()).saturating_sub(last))
    }

    /// Why the actors take nothing, if their machine is past its bounds.
    pub(super) fn strain(&self) -> Option<String> {
        self.strain.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes how the machine does. Returns whether its bounds were passed just now, one way or the
    /// other.
    pub(super) fn strained(&self, now: Option<String>) -> bool {
        let mut strain = self.strain.lock().unwrap_or_else(PoisonError::into_inner);
        let news = strain.is_some() != now.is_some();
        *strain = now;
        news
    }

    /// Since when Redis has been away.
    pub(super) fn away_since(&self) -> Option<Instant> {
        *self.away_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that Redis is away. Returns whether that is news.
    pub(super) fn redis_went(&self, now: Instant) -> bool {
        let mut since = self.away_since.lock().unwrap_or_else(PoisonError::into_inner);
        let news = since.is_none();
        since.get_or_insert(now);
        news
    }

    /// Notes that Redis is there. Returns since when it had been away, if it had.
    pub(super) fn redis_came(&self) -> Option<Instant> {
        self.away_since.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_in_doubt_until_it_is_renewed() {
        let vitals = Vitals::new(1, Duration::ZERO);
        assert!(vitals.lease_in_doubt());
        vitals.leased(Instant::now(), Duration::from_mins(1));
        assert!(!vitals.lease_in_doubt());
        // A call that was made long ago says nothing of now.
        vitals.leased(vitals.born, Duration::ZERO);
        assert!(vitals.lease_in_doubt());
    }
}
