//! The resource usage of a job.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

use super::limits::Limit;

/// The resource usage of the process of a job, with all children that it has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub cpu: Duration,
    /// The peak memory in bytes: of the job if it has a control group, else of one process; 0 if it is not known.
    pub memory_bytes: u64,
    pub signal: Option<i32>,
    pub limit: Option<Limit>,
}

impl Usage {
    /// Returns the signal that ended it, if no limit did and it is one that people send to whole units.
    pub fn unit_signal(&self) -> Option<i32> {
        const SENT: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGKILL, libc::SIGTERM];
        self.signal.filter(|signal| self.limit.is_none() && SENT.contains(signal))
    }

    /// Corrects the peak memory of a process that began in the daemon's memory, which the kernel counts as
    /// its own: a peak that the daemon has too reports nothing. `seen_bytes` was measured meanwhile.
    pub fn leave_out_daemon(&mut self, seen_bytes: u64) {
        let daemon = getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| kibibytes(usage.max_rss()));
        if self.memory_bytes <= daemon {
            self.memory_bytes = seen_bytes;
        }
    }
}

fn kibibytes(number: libc::c_long) -> u64 {
    u64::try_from(number).unwrap_or_default().saturating_mul(1024)
}

pub(super) fn used(usage: &libc::rusage, status: ExitStatus) -> Usage {
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
        seconds + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or_default())
    };
    let memory_bytes = kibibytes(usage.ru_maxrss);
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    Usage { cpu, memory_bytes, signal: status.signal(), limit: None }
}
