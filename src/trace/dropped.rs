//! The number of spans that no receiver got.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of spans that no receiver got, for the log and for the metrics of the namespace.
#[derive(Debug, Default)]
pub(super) struct DroppedSpans {
    all: AtomicU64,
    /// The part of them that Redis does not know.
    untold: AtomicU64,
}

impl DroppedSpans {
    /// Counts further ones.
    pub(super) fn add(&self, number: u64) {
        self.all.fetch_add(number, Ordering::Relaxed);
        self.give_back(number);
    }

    /// Returns all since the start of this process.
    pub(super) fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Takes the number that was not taken yet.
    pub(super) fn take_untold(&self) -> u64 {
        self.untold.swap(0, Ordering::Relaxed)
    }

    /// Gives back a number that could not be reported.
    pub(super) fn give_back(&self, number: u64) {
        self.untold.fetch_add(number, Ordering::Relaxed);
    }
}
