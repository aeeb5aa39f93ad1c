//! Notifies systemd: ready, alive, reloading, stopping, and a status line.

use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tracing::warn;

use crate::proto::report::{Reporter, ServiceReport};

/// Returns a reporter that notifies systemd. Without systemd it has no effect.
pub(super) fn reporter() -> Reporter {
    Arc::new(|report| match &report {
        ServiceReport::Ready => notify(&[NotifyState::Ready]),
        ServiceReport::Alive(status) => {
            notify(&[NotifyState::Watchdog, NotifyState::Status(status)]);
        }
        ServiceReport::Stopping { status, within } => {
            let extend = u32::try_from(within.as_micros()).unwrap_or(u32::MAX);
            notify(&[
                NotifyState::Stopping,
                NotifyState::Status(status),
                NotifyState::ExtendTimeoutUsec(extend),
            ]);
        }
    })
}

/// Sets the status line before the service is ready.
pub(super) fn waiting(status: &str) {
    notify(&[NotifyState::Status(status)]);
}

/// Announces a reload; [`reloaded`] must follow.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => warn!("cannot notify systemd of the reload: {error}"),
    }
}

/// Announces the end of the reload, with its status line.
pub(super) fn reloaded(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Returns the longest time between two notifications, which is half of the watchdog's timeout. `None`
/// without a watchdog.
pub(super) fn beat_within() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!("cannot notify systemd: {error}");
    }
}
