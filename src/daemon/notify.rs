//! What systemd is told: ready, alive, reloading, stopping, and a line for people.

use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tracing::warn;

use crate::proto::report::{Report, Reporter};

/// Hands reports on to systemd. Without one, nothing hears them.
pub(super) fn reporter() -> Reporter {
    Arc::new(|report| match &report {
        Report::Ready => tell(&[NotifyState::Ready]),
        Report::Alive(status) => tell(&[NotifyState::Watchdog, NotifyState::Status(status)]),
        Report::Stopping { status, within } => {
            let extend = u32::try_from(within.as_micros()).unwrap_or(u32::MAX);
            tell(&[
                NotifyState::Stopping,
                NotifyState::Status(status),
                NotifyState::ExtendTimeoutUsec(extend),
            ]);
        }
    })
}

/// It is not ready yet, because of this.
pub(super) fn waiting(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// A reload begins; [`reloaded`] must follow.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => warn!("telling systemd of the reload: {error}"),
    }
}

/// The reload is over, with this to say of it.
pub(super) fn reloaded(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The longest time between two signs of life that the watchdog lets pass with ease: half of its
/// own. `None` without a watchdog.
pub(super) fn beat_within() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!("telling systemd: {error}");
    }
}
