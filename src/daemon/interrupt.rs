//! What a person at a terminal presses, for the commands that are no unit.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals that ask a program to end. From the moment it is made, they do not
/// end the process by themselves any more.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Interrupts {
    /// Starts to listen. Needs a Tokio runtime with I/O.
    ///
    /// # Errors
    /// Those of installing a signal handler.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next SIGINT, SIGTERM or SIGHUP and returns its number. May be given up at any
    /// time without losing one.
    pub async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
            _ = self.hangup.recv() => 1,
        }
    }
}
