//! The state that the heartbeat and the fetch loop of one boot share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::proto::job::JobId;
use crate::proto::units::millis;
use crate::store::Outage;

/// The pause before an actor tries again to start jobs on a machine that was full.
const SHORTAGE_LASTS: Duration = Duration::from_secs(3);

/// The beats without an answer that are remembered; of more, the oldest are forgotten.
const BEATS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Health {
    started: Instant,
    /// The last turn of the fetch loop, in milliseconds since `started`.
    turned_ms: AtomicU64,
    /// Until when the lease certainly lasts, in milliseconds since `started`.
    leased_until_ms: AtomicU64,
    /// A call found the lease lost before the heartbeat did.
    pub(super) lease_lost: Notify,
    /// Jobs whose end was recorded.
    pub(super) done: AtomicU64,
    /// Per actor, in the order of `Boot::actors`.
    pub(super) actors: Vec<ActorHealth>,
    /// The presence should be renewed before the next heartbeat.
    pub(super) presence_changed: Notify,
    /// Why the actors claim no jobs, while the machine is overloaded or full.
    overload: Mutex<Option<String>>,
    /// The shortage of the machine that kept a job from starting, and until when no more are claimed.
    shortage: Mutex<Option<(String, Instant)>>,
    /// An overload began or ended.
    pub(super) overload_changed: Notify,
    /// The beats that the presence may have: the last written, and those without an answer.
    beats: Mutex<Vec<String>>,
    /// The outage of Redis, while it does not answer.
    pub(super) outage: Outage,
}

#[derive(Debug, Default)]
pub(super) struct ActorHealth {
    pub(super) running: AtomicUsize,
    pub(super) draining: AtomicBool,
}

impl Health {
    /// Assumes a lease from now on. The boot gets its first lease later than that, so the
    /// assumption ends too early rather than too late.
    pub(super) fn new(actors: usize, lease: Duration) -> Self {
        Self {
            started: Instant::now(),
            turned_ms: AtomicU64::new(0),
            leased_until_ms: AtomicU64::new(millis(lease)),
            lease_lost: Notify::new(),
            done: AtomicU64::new(0),
            actors: std::iter::repeat_with(ActorHealth::default).take(actors).collect(),
            presence_changed: Notify::new(),
            overload: Mutex::new(None),
            shortage: Mutex::new(None),
            overload_changed: Notify::new(),
            beats: Mutex::new(Vec::new()),
            outage: Outage::default(),
        }
    }

    /// Notes that a call made at `asked_at` renewed the lease.
    pub(super) fn lease_renewed(&self, asked_at: Instant, lease: Duration) {
        let until = asked_at.saturating_duration_since(self.started) + lease;
        self.leased_until_ms.store(millis(until), Ordering::Relaxed);
    }

    /// Returns whether the lease may be over: it was not renewed for as long as it lasts, because
    /// Redis was away or this process was suspended.
    pub(super) fn lease_in_doubt(&self) -> bool {
        millis(self.started.elapsed()) >= self.leased_until_ms.load(Ordering::Relaxed)
    }

    pub(super) fn loop_turned(&self) {
        self.turned_ms.store(millis(self.started.elapsed()), Ordering::Relaxed);
    }

    pub(super) fn since_turn(&self) -> Duration {
        let last = self.turned_ms.load(Ordering::Relaxed);
        Duration::from_millis(millis(self.started.elapsed()).saturating_sub(last))
    }

    /// Returns a new beat, which no other process ever returns, not even a copy of this one: on a cloned
    /// machine random numbers may repeat, but the clock goes on.
    pub(super) fn new_beat(&self) -> String {
        let beat = format!("{:x}-{}", Timestamp::now().as_nanosecond(), JobId::random());
        let mut beats = self.beats.lock();
        if beats.len() == BEATS_MAX {
            beats.remove(1);
        }
        beats.push(beat.clone());
        beat
    }

    pub(super) fn beats(&self) -> Vec<String> {
        self.beats.lock().clone()
    }

    /// Notes that the presence has the latest beat.
    pub(super) fn beat_written(&self) {
        let mut beats = self.beats.lock();
        let before = beats.len().saturating_sub(1);
        beats.drain(..before);
    }

    pub(super) fn overload(&self) -> Option<String> {
        self.overload.lock().clone()
    }

    /// Notes the resource that the machine lacked to start a job. It may have it again after [`SHORTAGE_LASTS`].
    pub(super) fn set_shortage(&self, message: &str) {
        *self.shortage.lock() = Some((message.to_owned(), Instant::now() + SHORTAGE_LASTS));
        // By the next regular heartbeat the actor tries again, and looks as if it claimed jobs.
        self.presence_changed.notify_one();
    }

    /// Returns the resource that the machine lacked to start a job, if that was just now.
    pub(super) fn shortage(&self) -> Option<String> {
        let shortage = self.shortage.lock();
        let recent = shortage.as_ref().filter(|(_, until)| Instant::now() < *until);
        recent.map(|(message, _)| message.clone())
    }

    /// Sets the overload. Returns whether one began or ended.
    pub(super) fn set_overload(&self, now: Option<String>) -> bool {
        let mut overload = self.overload.lock();
        let changed = overload.is_some() != now.is_some();
        *overload = now;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_is_in_doubt_until_it_is_renewed() {
        let health = Health::new(1, Duration::ZERO);
        assert!(health.lease_in_doubt());
        health.lease_renewed(Instant::now(), Duration::from_mins(1));
        assert!(!health.lease_in_doubt());
        // A call that was made long ago proves nothing about now.
        health.lease_renewed(health.started, Duration::ZERO);
        assert!(health.lease_in_doubt());
    }
}
