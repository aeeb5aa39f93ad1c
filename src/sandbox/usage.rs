//! The resource usage of a job.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::limits::Limit;

/// The resource usage of the process of a job, with all children that it has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The processor time.
    pub cpu: Duration,
    /// The peak memory in bytes: of the whole job where it has a control group of its own, else of
    /// one process. The latter is at least what the daemon used when it started the process, which
    /// begins in the daemon's memory.
    pub memory_bytes: u64,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit that it hit.
    pub limit: Option<Limit>,
}

/// Converts the kernel's account of a process.
pub(super) fn used(usage: &libc::rusage, status: ExitStatus) -> Usage {
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
        seconds + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or_default())
    };
    let memory_bytes = u64::try_from(usage.ru_maxrss).unwrap_or_default().saturating_mul(1024);
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    Usage { cpu, memory_bytes, signal: status.signal(), limit: None }
}
