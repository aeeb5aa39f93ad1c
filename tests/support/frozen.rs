//! Processes that stand still.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process that stands still until this is dropped.
pub(crate) struct Frozen(Pid);

impl Frozen {
    pub(crate) fn new(pid: u32) -> Self {
        let pid = Pid::from_raw(pid.cast_signed());
        kill(pid, Signal::SIGSTOP).expect("stopping a process");
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}
