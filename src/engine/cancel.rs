//! How a running script is told to stop: a flag that is cheap to look at, and a descriptor that
//! wakes whoever waits in `poll`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Why a running script was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody asked for it: the job ends in `stopped_by_request`.
    Requested,
    /// The actor is shutting down: the job goes back to its queue.
    Shutdown,
    /// The actor lost its lease: the job is somebody else's now.
    LeaseLost,
}

const RUNNING: u8 = 0;

impl StopReason {
    fn code(self) -> u8 {
        match self {
            Self::Requested => 1,
            Self::Shutdown => 2,
            Self::LeaseLost => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Requested),
            2 => Some(Self::Shutdown),
            3 => Some(Self::LeaseLost),
            _ => None,
        }
    }
}

/// Shared between the one who may stop a script and the engine that runs it. The first request
/// wins; later ones change nothing.
#[derive(Debug, Default)]
pub struct Cancel {
    reason: AtomicU8,
    /// Made only when an engine wants to wait on it; most Rhai jobs never do.
    wake: OnceLock<OwnedFd>,
}

impl Cancel {
    /// A new one, not requested.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the script to stop, for `reason` unless another came first.
    pub fn request(&self, reason: StopReason) {
        let first = self
            .reason
            .compare_exchange(RUNNING, reason.code(), Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        if first && let Some(wake) = self.wake.get() {
            signal(wake.as_fd());
        }
    }

    /// Why it should stop, if it should. Costs one load.
    pub fn requested(&self) -> Option<StopReason> {
        StopReason::from_code(self.reason.load(Ordering::SeqCst))
    }

    /// A descriptor that becomes readable once a stop is requested, for `poll`.
    ///
    /// # Errors
    /// The error of `eventfd(2)`, as when the process has no descriptors left.
    pub fn descriptor(&self) -> std::io::Result<BorrowedFd<'_>> {
        if self.wake.get().is_none() {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            // Losing a race to another thread only drops the second descriptor.
            let _ = self.wake.set(made);
        }
        let Some(wake) = self.wake.get() else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        // The request may have come before there was anything to signal.
        if self.requested().is_some() {
            signal(wake.as_fd());
        }
        Ok(wake.as_fd())
    }
}

/// Makes the descriptor readable. It can only fail once the counter is full, and then it is
/// readable already.
fn signal(wake: BorrowedFd<'_>) {
    let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn readable(cancel: &Cancel) -> bool {
        let descriptor = cancel.descriptor().expect("a descriptor");
        let mut waits = [PollFd::new(&descriptor, PollFlags::IN)];
        poll(&mut waits, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("poll") == 1
    }

    #[test]
    fn the_first_reason_wins_and_wakes_a_poll() {
        let cancel = Cancel::new();
        assert!(!readable(&cancel));
        cancel.request(StopReason::Requested);
        cancel.request(StopReason::Shutdown);
        assert_eq!(cancel.requested(), Some(StopReason::Requested));
        assert!(readable(&cancel));
    }

    #[test]
    fn a_descriptor_made_after_the_request_is_readable_at_once() {
        let cancel = Cancel::new();
        cancel.request(StopReason::LeaseLost);
        assert!(readable(&cancel));
    }
}
