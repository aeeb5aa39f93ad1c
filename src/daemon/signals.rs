//! Signals: SIGTERM and SIGINT shut a unit down, SIGHUP reloads it; each of them ends a command
//! that waits.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use futures_core::Stream;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tokio::sync::watch;

use crate::error::{Error, Exit};
use crate::proto::report::Shutdown;

/// The arriving signals of some kinds. Once it is made, they no longer end the process.
pub(super) struct Signals(signal_hook_tokio::Signals);

impl Signals {
    fn of(kinds: &[i32]) -> io::Result<Self> {
        Ok(Self(signal_hook_tokio::Signals::new(kinds)?))
    }

    /// Returns the number of the next signal. Cancelling the call loses no signal.
    pub(super) async fn next(&mut self) -> Option<i32> {
        poll_fn(|context| Pin::new(&mut self.0).poll_next(context)).await
    }
}

/// The signals that ask a command to end: SIGINT, SIGTERM, and SIGHUP unless its caller ignores that, as nohup does.
/// Once it is made, they no longer end the process.
pub struct Interrupts(Signals);

impl Interrupts {
    /// Starts to listen. Needs a Tokio runtime with I/O.
    ///
    /// # Errors
    /// The signal handlers cannot be installed.
    pub fn listen() -> Result<Self, Error> {
        Self::hearing(!ignores_hangup())
    }

    /// Starts to listen, also to a SIGHUP that the caller ignores. Needs a Tokio runtime with I/O.
    ///
    /// # Errors
    /// The signal handlers cannot be installed.
    pub fn with_hangups() -> Result<Self, Error> {
        Self::hearing(true)
    }

    fn hearing(hangups: bool) -> Result<Self, Error> {
        let kinds = [SIGINT, SIGTERM, SIGHUP];
        let heard = if hangups { &kinds[..] } else { &kinds[..2] };
        Signals::of(heard).map(Self).map_err(|error| {
            Error::new(Exit::Unavailable, format!("cannot handle signals: {error}"))
        })
    }

    /// Returns true for the signal of a terminal that has gone, which asks a daemon to reload.
    pub fn is_hangup(signal: u8) -> bool {
        i32::from(signal) == SIGHUP
    }

    /// Returns the number of the next signal. Cancelling the call loses no signal.
    pub async fn next(&mut self) -> u8 {
        match self.0.next().await.map(u8::try_from) {
            Some(Ok(signal)) => signal,
            _ => std::future::pending().await,
        }
    }
}

/// Listens for SIGTERM and SIGINT, and tells `end`: the first asks for an orderly shutdown, the second for a shutdown
/// that does not wait for jobs. Needs a Tokio runtime with I/O.
///
/// # Errors
/// The signal handlers cannot be installed.
pub(super) fn shutdown(end: watch::Sender<Shutdown>) -> io::Result<()> {
    let mut signals = Signals::of(&[SIGTERM, SIGINT])?;
    tokio::spawn(async move {
        let mut signalled = Shutdown::No;
        while signals.next().await.is_some() {
            signalled = if signalled == Shutdown::No { Shutdown::Drain } else { Shutdown::Now };
            end.send_modify(|asked| *asked = (*asked).max(signalled));
        }
    });
    Ok(())
}

/// Listens for SIGHUP, which asks for a reload. Needs a Tokio runtime with I/O.
///
/// # Errors
/// The signal handler cannot be installed.
pub(super) fn hangups() -> io::Result<Signals> {
    Signals::of(&[SIGHUP])
}

/// Returns true if this process was started with SIGHUP ignored, as by nohup, and has no handler of its own yet.
pub fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, SIGHUP)
}

/// Returns true if a process ignores a signal, by its file `status` in `/proc`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or_default() & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status_of_a_process() {
        let status = "Name:\thero\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGTERM) && !ignores(status, SIGINT) && !ignores("", SIGHUP));
    }
}
