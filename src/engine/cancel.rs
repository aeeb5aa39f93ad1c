//! The request to stop a running script: a cheap flag, and a descriptor that wakes a thread in `poll`.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// The reason for stopping a running script. Of two requests the later reason of this list counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// The actor is shutting down: the job goes back to its queue.
    #[error("stopped by the shutdown")]
    Shutdown = 1,
    /// A stop request: the job ends in `stopped_by_request`.
    #[error("stopped_by_request")]
    Requested,
    /// The actor lost its lease: the job belongs to another actor.
    #[error("stopped with the lease lost")]
    LeaseLost,
}

const RUNNING: u8 = 0;

/// Shared between the actor, which may stop a script, and the engine that runs it. The first request stops it. A
/// later one changes the reason if it says more: the job was stopped by a person, or is lost.
#[derive(Debug, Default)]
pub struct Cancel {
    reason: AtomicU8,
    /// Created only for an engine that waits in `poll`; most Rhai jobs never do.
    wake: OnceLock<EventFd>,
}

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests a stop. A shutdown gives way to the other reasons, and a stop on request to a lost lease.
    pub fn request(&self, reason: StopReason) {
        let before = self.reason.fetch_max(reason as u8, Ordering::SeqCst);
        if before == RUNNING
            && let Some(wake) = self.wake.get()
        {
            signal(wake);
        }
    }

    /// Returns the reason of a requested stop. Costs one load.
    pub fn requested(&self) -> Option<StopReason> {
        let reasons = [StopReason::Shutdown, StopReason::Requested, StopReason::LeaseLost];
        let asked = self.reason.load(Ordering::SeqCst);
        reasons.into_iter().find(|reason| *reason as u8 == asked)
    }

    /// Returns a descriptor for `poll` that becomes readable once a stop is requested.
    pub fn descriptor(&self) -> std::io::Result<BorrowedFd<'_>> {
        let wake = if let Some(wake) = self.wake.get() {
            wake
        } else {
            let created = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
            // If another thread was faster, this descriptor is dropped.
            self.wake.get_or_init(|| created)
        };
        // The request may have come before the descriptor existed.
        if self.requested().is_some() {
            signal(wake);
        }
        Ok(wake.as_fd())
    }
}

/// Makes the descriptor readable. It only fails if the counter is full, when it is readable already.
fn signal(wake: &EventFd) {
    let _ = wake.write(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn readable(cancel: &Cancel) -> bool {
        let descriptor = cancel.descriptor().expect("a descriptor");
        let mut waits = [PollFd::new(descriptor, PollFlags::POLLIN)];
        poll(&mut waits, PollTimeout::ZERO).expect("poll") == 1
    }

    #[test]
    fn request_wakes_a_poll_and_a_stop_by_a_person_counts_more_than_a_shutdown() {
        for [first, second] in [
            [StopReason::Requested, StopReason::Shutdown],
            [StopReason::Shutdown, StopReason::Requested],
        ] {
            let cancel = Cancel::new();
            assert!(!readable(&cancel));
            cancel.request(first);
            cancel.request(second);
            assert_eq!(cancel.requested(), Some(StopReason::Requested));
            assert!(readable(&cancel));
        }
    }

    #[test]
    fn a_descriptor_created_after_the_request_is_readable() {
        let cancel = Cancel::new();
        cancel.request(StopReason::LeaseLost);
        assert!(readable(&cancel));
    }
}
