//! What one process may use up, and which of these limits ended it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit};

use crate::config::SandboxConfig;
use crate::engine::Usage;

/// How many limits there are at the most.
pub(super) const LIMITS_MAX: usize = 6;

/// The limits of one process. Zero sets none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::engine::process) struct Limits {
    cpu_s: u64,
    memory_bytes: u64,
    processes: u64,
    open_files: u64,
    file_bytes: u64,
}

/// A limit that a script has run into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The processor time of a process.
    Cpu,
    /// The address space of a process.
    Memory,
    /// The processes of the user.
    Processes,
    /// The open files of a process.
    OpenFiles,
    /// The size of a file.
    FileSize,
    /// What the job's own folder may hold.
    Disk,
    /// What may be written to standard output.
    Output,
    /// The memory of the job as a whole.
    JobMemory,
    /// The processes and threads of the job as a whole.
    JobProcesses,
}

impl Limit {
    /// As the job's field `limit` says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::OpenFiles => "open files",
            Self::FileSize => "file size",
            Self::Disk => "disk",
            Self::Output => "output",
            Self::JobMemory => "job memory",
            Self::JobProcesses => "job processes",
        }
    }
}

impl Limits {
    pub(super) fn of(config: &SandboxConfig) -> Self {
        Self {
            cpu_s: config.cpu.as_secs() + u64::from(config.cpu.subsec_nanos() > 0),
            memory_bytes: config.memory,
            processes: config.processes,
            open_files: config.open_files,
            file_bytes: config.file_size,
        }
    }

    /// As the kernel takes them. A child never leaves a core: it would be of its secrets.
    pub(super) fn list(&self) -> [Option<(Resource, Rlimit)>; LIMITS_MAX] {
        let both = |soft, hard| Rlimit { current: Some(soft), maximum: Some(hard) };
        let set = |value: u64, resource| (value > 0).then_some((resource, both(value, value)));
        [
            Some((Resource::Core, both(0, 0))),
            // The first is a signal that says why, the second a second later is the end.
            (self.cpu_s > 0).then_some((Resource::Cpu, both(self.cpu_s, self.cpu_s + 1))),
            set(self.memory_bytes, Resource::As),
            set(self.processes, Resource::Nproc),
            set(self.open_files, Resource::Nofile),
            set(self.file_bytes, Resource::Fsize),
        ]
        .map(|limit| limit.map(|(resource, limit)| (resource, within_own(resource, limit))))
    }
}

/// A limit no higher than what this process itself has: to raise it takes a privilege.
fn within_own(resource: Resource, limit: Rlimit) -> Rlimit {
    let own = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let capped = |value: Option<u64>| value.map(|value| value.min(own));
    Rlimit { current: capped(limit.current), maximum: capped(limit.maximum) }
}

/// Which limit ended a child that failed. The kernel tells by a signal of two of them; the others
/// make a call fail, and what the program said last tells of it, if anything does.
pub(in crate::engine::process) fn hit(
    limits: &Limits,
    status: ExitStatus,
    cpu: Duration,
    stderr_tail: &str,
) -> Option<Limit> {
    if status.success() {
        return None;
    }
    // A shell tells of a signal that ended its command as a code.
    let code_of = |signal: Signal| status.code() == Some(128 + signal.as_raw());
    let by = |signal: Signal| status.signal() == Some(signal.as_raw()) || code_of(signal);
    let cpu_used_up = limits.cpu_s > 0 && cpu >= Duration::from_secs(limits.cpu_s);
    if limits.cpu_s > 0 && by(Signal::XCPU) || cpu_used_up && by(Signal::KILL) {
        return Some(Limit::Cpu);
    }
    if limits.file_bytes > 0 && by(Signal::XFSZ) {
        return Some(Limit::FileSize);
    }
    let said = |texts: &[&str]| texts.iter().any(|text| stderr_tail.contains(text));
    let memory = ["MemoryError", "Cannot allocate memory", "annot allocate", "bad_alloc"];
    [
        (limits.memory_bytes > 0 && said(&memory), Limit::Memory),
        (limits.file_bytes > 0 && said(&["File too large"]), Limit::FileSize),
        (limits.open_files > 0 && said(&["Too many open files"]), Limit::OpenFiles),
        (limits.processes > 0 && said(&["Resource temporarily unavailable"]), Limit::Processes),
    ]
    .into_iter()
    .find_map(|(is_hit, limit)| is_hit.then_some(limit))
}

/// What the kernel says that a process has used.
pub(super) fn used(usage: &libc::rusage, status: ExitStatus) -> Usage {
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
        seconds + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or_default())
    };
    let memory_bytes = u64::try_from(usage.ru_maxrss).unwrap_or_default().saturating_mul(1024);
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    Usage { cpu, memory_bytes, signal: status.signal(), limit: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_handed_to_the_kernel() {
        let set = |limits: Limits| limits.list().into_iter().flatten().count();
        assert_eq!(set(Limits::default()), 1, "a core is never left");
        assert_eq!(set(Limits::of(&SandboxConfig::default())), 5);
        let config = SandboxConfig { cpu: Duration::from_millis(1500), ..SandboxConfig::default() };
        let cpu = Limits::of(&config).list()[1].expect("set").1;
        assert_eq!((cpu.current, cpu.maximum), (Some(2), Some(3)));
    }

    #[test]
    fn a_limit_is_named_only_if_it_is_set_and_the_child_failed() {
        let config = SandboxConfig { cpu: Duration::from_secs(2), ..SandboxConfig::default() };
        let limits = Limits::of(&config);
        let of = |raw: i32, cpu_s, said: &str| {
            let cpu = Duration::from_secs(cpu_s);
            let hit = |limits: Limits| hit(&limits, ExitStatus::from_raw(raw), cpu, said);
            assert_eq!(hit(Limits::default()), None, "{raw} {said}");
            hit(limits)
        };
        let code = |code: i32| code << 8;
        for (raw, cpu_s, said, limit) in [
            (24, 2, "", Some(Limit::Cpu)),
            (code(152), 0, "", Some(Limit::Cpu)),
            (9, 3, "", Some(Limit::Cpu)),
            (9, 1, "", None),
            (25, 0, "", Some(Limit::FileSize)),
            (code(1), 0, "OSError: [Errno 27] File too large", Some(Limit::FileSize)),
            (code(1), 0, "MemoryError", Some(Limit::Memory)),
            (code(1), 0, "bash: xrealloc: cannot allocate 8 bytes", Some(Limit::Memory)),
            (code(1), 0, "OSError: [Errno 24] Too many open files", Some(Limit::OpenFiles)),
            (code(254), 0, "fork: Resource temporarily unavailable", Some(Limit::Processes)),
            (0, 3, "MemoryError", None),
            (code(1), 3, "", None),
        ] {
            assert_eq!(of(raw, cpu_s, said), limit, "{raw} {said}");
        }
    }
}
