//! The pause after a failed call to Redis, and the log lines about it.

use std::sync::Arc;
use std::time::Instant;

use tracing::{debug, error, info, warn};

use crate::actor::boot::Boot;
use crate::store::{Backoff, StoreError};

/// The state of the fetch loop's calls to Redis.
pub(super) struct Retry {
    boot: Arc<Boot>,
    backoff: Backoff,
    /// Until when no call is made.
    until: Option<Instant>,
}

impl Retry {
    /// Creates it with no failed call.
    pub(super) fn new(boot: &Arc<Boot>) -> Self {
        Self { boot: Arc::clone(boot), backoff: Backoff::default(), until: None }
    }

    /// Returns whether no call should be made now.
    pub(super) fn is_waiting(&mut self, now: Instant) -> bool {
        self.until = self.until.filter(|until| now < *until);
        self.until.is_some()
    }

    /// Returns until when no call should be made.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Notes a failed call.
    pub(super) fn failed(&mut self, doing: &str, error: &StoreError) {
        let now = Instant::now();
        self.until = Some(now + self.backoff.failed());
        if !error.is_transient() {
            error!("{doing}: {error}");
        } else if self.boot.health.set_redis_away(now) {
            warn!("{error}; running jobs go on, trying again");
        } else {
            debug!("{doing}: {error}");
        }
    }

    /// Notes a call that Redis answered.
    pub(super) fn answered(&mut self) {
        self.backoff.succeeded();
        if let Some(since) = self.boot.health.set_redis_back() {
            info!("redis is back after {:.1} s", since.elapsed().as_secs_f64());
        }
    }
}
