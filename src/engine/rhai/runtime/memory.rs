//! The memory of this process, as the kernel counts it, and what its scripts leave of it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::unistd::{SysconfVar, sysconf};

use crate::sandbox::give_back_freed_memory;

/// The freed memory that the process may keep for its next scripts.
const KEPT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The time between two attempts while other scripts run: one takes some milliseconds.
const INTERVAL: Duration = Duration::from_secs(1);
/// The memory is looked at after this time of scripts. They cannot fill [`KEPT_BYTES_MAX`] in less.
const LOOK_AFTER: Duration = Duration::from_millis(1);

static RUNNING_SCRIPTS: Mutex<RunningScripts> = Mutex::new(RunningScripts {
    running: 0,
    idle_bytes: 0,
    given_back: None,
    unseen: Duration::ZERO,
});

#[derive(Debug)]
struct RunningScripts {
    running: usize,
    /// The memory of the process when last none of them ran.
    idle_bytes: u64,
    given_back: Option<Instant>,
    /// The time of scripts that ended since the memory was last looked at.
    unseen: Duration,
}

/// A script that runs. Its end gives memory back to the kernel, if the process has grown much.
#[derive(Debug)]
pub(in crate::rhai) struct Running {
    began: Instant,
}

impl Running {
    pub(in crate::rhai) fn begin() -> Self {
        RUNNING_SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner).running += 1;
        Self { began: Instant::now() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut scripts = RUNNING_SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
        scripts.running -= 1;
        scripts.unseen += self.began.elapsed();
        if scripts.unseen < LOOK_AFTER {
            return;
        }
        scripts.unseen = Duration::ZERO;
        let size = resident_bytes().unwrap_or_default();
        let is_idle = scripts.running == 0;
        let is_large = size > scripts.idle_bytes + KEPT_BYTES_MAX;
        let may_wait = !is_idle && scripts.given_back.is_some_and(|at| at.elapsed() < INTERVAL);
        if is_large && !may_wait {
            scripts.given_back = Some(Instant::now());
            give_back_freed_memory();
        }
        if is_idle {
            scripts.idle_bytes = if is_large { resident_bytes().unwrap_or(size) } else { size };
        }
    }
}

pub(super) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * system_value(SysconfVar::PAGE_SIZE)?)
}

pub(crate) fn system_value(name: SysconfVar) -> Option<u64> {
    sysconf(name).ok().flatten().and_then(|value| value.try_into().ok())
}
