//! The pause after a failed call to Redis, and the log lines about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, error, warn};

use crate::actor::boot::Boot;
use crate::store::{Backoff, StoreError};

/// The shortest time between two log lines about calls that fail though Redis serves.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The state of the fetch loop's calls to Redis.
pub(super) struct Retry {
    boot: Arc<Boot>,
    backoff: Backoff,
    /// Until when no call is made.
    pub(super) until: Option<Instant>,
    failure_logged_at: Option<Instant>,
}

impl Retry {
    pub(super) fn new(boot: &Arc<Boot>) -> Self {
        Self {
            boot: Arc::clone(boot),
            backoff: Backoff::default(),
            until: None,
            failure_logged_at: None,
        }
    }

    /// Returns whether no call should be made now.
    pub(super) fn is_waiting(&mut self, now: Instant) -> bool {
        self.until = self.until.filter(|until| now < *until);
        self.until.is_some()
    }

    pub(super) fn failed(&mut self, doing: &str, error: &StoreError) {
        let now = Instant::now();
        self.until = Some(now + self.backoff.failed());
        let is_logged = if error.is_outage() {
            self.boot.health.outage.failed_by(now, error)
        } else {
            is_due(&mut self.failure_logged_at)
        };
        if !is_logged {
            debug!("{doing}: {error}");
        } else if error.is_outage() {
            warn!("{error}; running jobs go on, trying again");
        } else {
            error!("{doing}: {error}");
        }
    }

    pub(super) fn answered(&mut self) {
        self.backoff.succeeded();
        self.boot.health.outage.answered();
    }
}

/// Returns whether the next log line is due, and notes it.
fn is_due(logged_at: &mut Option<Instant>) -> bool {
    let is_due = logged_at.is_none_or(|at| at.elapsed() >= LOG_INTERVAL);
    if is_due {
        *logged_at = Some(Instant::now());
    }
    is_due
}
