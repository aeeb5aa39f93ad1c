//! Waits that end at a point in time.

use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollTimeout, poll};

/// Waits until a descriptor is ready. Returns false if none is by the time `until`. An interrupted call is repeated.
pub fn poll_until(waits: &mut [PollFd<'_>], until: Instant) -> nix::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up: it must not wake early.
        let milliseconds = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
        match poll(waits, timeout) {
            Ok(0) if Instant::now() < until => {}
            Err(Errno::EINTR) => {}
            done => return done.map(|ready| ready > 0),
        }
    }
}
