//! The messages that a supervisor is delivering, which the end of the supervisor waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

use crate::proto::text::counted;

/// The longest time that messages which are being delivered hold up the end.
pub(super) const LAST_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct PendingDeliveries {
    is_ending: AtomicBool,
    under_way: watch::Sender<usize>,
}

/// One message until its outcome is recorded.
pub(super) struct PendingDelivery<'a>(&'a PendingDeliveries);

impl<'a> PendingDelivery<'a> {
    fn of(all: &'a PendingDeliveries) -> Self {
        all.under_way.send_modify(|number| *number += 1);
        Self(all)
    }

    /// Counts another message, though the supervisor ends.
    pub(super) fn another(&self) -> Self {
        Self::of(self.0)
    }
}

impl Drop for PendingDelivery<'_> {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|number| *number -= 1);
    }
}

impl PendingDeliveries {
    /// Counts a message as being delivered until the value is dropped. `None` if the supervisor ends and takes no
    /// further ones.
    pub(super) fn begin(&self) -> Option<PendingDelivery<'_>> {
        if self.is_ending.load(Ordering::Relaxed) {
            return None;
        }
        Some(PendingDelivery::of(self))
    }

    /// Takes no further messages, and waits for a short time until the outcomes of the others are recorded.
    pub(super) async fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        let mut under_way = self.under_way.subscribe();
        if timeout(LAST_WITHIN, under_way.wait_for(|number| *number == 0)).await.is_err() {
            let left = *self.under_way.borrow() as u64;
            warn!(
                "this supervisor ends while {} delivered: another one delivers them again",
                counted(left, "notification is being", "notifications are being")
            );
        }
    }
}
