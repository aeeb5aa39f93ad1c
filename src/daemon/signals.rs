//! What signals mean to a unit: SIGTERM and SIGINT become a shutdown, a second one a hurry.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::proto::report::Shutdown;

/// Listens from now on. The first signal asks for an end in order, the second for the same
/// without waiting. Must be called on a runtime.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn shutdown() -> io::Result<watch::Receiver<Shutdown>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (asked, receiver) = watch::channel(Shutdown::No);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            asked.send_modify(|asked| {
                *asked = if *asked == Shutdown::No { Shutdown::Drain } else { Shutdown::Now };
            });
        }
    });
    Ok(receiver)
}

/// SIGHUP from now on: read the configuration again. Must be called on a runtime.
///
/// # Errors
/// When the handler cannot be installed.
pub(super) fn hangups() -> io::Result<tokio::signal::unix::Signal> {
    signal(SignalKind::hangup())
}
