//! The limits of one process, and the limit that ended it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::Signal;

use crate::config::SandboxConfig;
use crate::proto::word_table::words;

/// The limits of one process: resources with their soft and hard limits.
pub(super) type Limits = [Option<(Resource, u64, u64)>; 7];

words! {
    /// A limit that a job has reached, as its field `limit` names it.
    Limit;
    Cpu = "cpu",
    /// The memory, or the address space, of a process.
    Memory = "memory",
    /// The processes of the user.
    Processes = "processes",
    OpenFiles = "open files",
    FileSize = "file size",
    /// The size of the job's own folder.
    Disk = "disk",
    Output = "output",
    JobMemory = "job memory",
    /// The processes and threads of the job as a whole.
    JobProcesses = "job processes",
    UnitMemory = "unit memory",
    /// The memory of a slice that the unit is in.
    SliceMemory = "slice memory",
    MachineMemory = "machine memory",
}

/// Returns the limits that are set, none above this process's own: to raise one takes a privilege. A child never
/// dumps core, which would hold its secrets.
pub(super) fn limits_of(config: &SandboxConfig) -> Limits {
    let set = |value: u64, resource| (value > 0).then_some((resource, value, value));
    let cpu_s = whole_seconds(config.cpu);
    [
        Some((Resource::RLIMIT_CORE, 0, 0)),
        // The soft limit sends a signal that reports why; the hard one kills a second later.
        (cpu_s > 0).then_some((Resource::RLIMIT_CPU, cpu_s, cpu_s + 1)),
        // Memory that is private and writable: some runtimes reserve much more address space than they use.
        set(config.memory, Resource::RLIMIT_DATA),
        set(config.address_space, Resource::RLIMIT_AS),
        set(config.processes, Resource::RLIMIT_NPROC),
        set(config.open_files, Resource::RLIMIT_NOFILE),
        set(config.file_size, Resource::RLIMIT_FSIZE),
    ]
    .map(|limit| {
        let (resource, soft, hard) = limit?;
        let own = getrlimit(resource).map_or(RLIM_INFINITY, |(_, hard)| hard);
        Some((resource, soft.min(own), hard.min(own)))
    })
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Returns the same configuration with nothing bounded.
pub(super) fn without_limits(config: &SandboxConfig) -> SandboxConfig {
    SandboxConfig {
        cpu: Duration::ZERO,
        memory: 0,
        address_space: 0,
        processes: 0,
        open_files: 0,
        file_size: 0,
        disk: 0,
        job_memory: 0,
        job_processes: 0,
        ..config.clone()
    }
}

/// The limit whose value is the number of the run that a process belongs to. Since Linux 2.6 the kernel
/// does not enforce it; every process inherits it, and the system call filter keeps it from being
/// changed.
pub(super) const RUN_NUMBER: Resource = Resource::RLIMIT_LOCKS;

/// Returns false if this process is part of a run itself, whose number its children keep.
pub(super) fn has_run_numbers() -> bool {
    getrlimit(RUN_NUMBER).is_ok_and(|(_, hard)| hard == RLIM_INFINITY)
}

/// Returns the limit that ended a failed child. The kernel sends a signal for two of them; the others
/// make a call fail, which shows only in the last lines of standard error.
pub fn limit_hit(
    limits: &SandboxConfig,
    status: ExitStatus,
    cpu: Duration,
    stderr_tail: &str,
) -> Option<Limit> {
    if status.success() {
        return None;
    }
    // A shell exits with 128 and the number of the signal that ended its command.
    let code_of = |signal: Signal| status.code() == Some(128 + signal as i32);
    let by = |signal: Signal| status.signal() == Some(signal as i32) || code_of(signal);
    let cpu_s = whole_seconds(limits.cpu);
    let cpu_used_up = cpu_s > 0 && cpu >= Duration::from_secs(cpu_s);
    if cpu_s > 0 && by(Signal::SIGXCPU) || cpu_used_up && by(Signal::SIGKILL) {
        return Some(Limit::Cpu);
    }
    if limits.file_size > 0 && by(Signal::SIGXFSZ) {
        return Some(Limit::FileSize);
    }
    let said = |texts: &[&str]| texts.iter().any(|text| stderr_tail.contains(text));
    let memory =
        ["MemoryError", "annot allocate", "bad_alloc", "heap out of memory", "allocation failed"];
    let has_memory = limits.memory > 0 || limits.address_space > 0;
    // Bash says of a file that it cannot open that it "cannot allocate" its number.
    [
        (limits.open_files > 0 && said(&["Too many open files"]), Limit::OpenFiles),
        (has_memory && said(&memory), Limit::Memory),
        (limits.file_size > 0 && said(&["File too large"]), Limit::FileSize),
        (limits.processes > 0 && said(&["Resource temporarily unavailable"]), Limit::Processes),
    ]
    .into_iter()
    .find_map(|(is_hit, limit)| is_hit.then_some(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_set_limits_are_passed_to_the_kernel() {
        let set = |config: &SandboxConfig| limits_of(config).into_iter().flatten().count();
        let default = SandboxConfig::default();
        assert_eq!(set(&without_limits(&default)), 1, "core dumps are always off");
        assert_eq!(set(&default), 5);
        let config = SandboxConfig { cpu: Duration::from_millis(1500), ..SandboxConfig::default() };
        let (_, soft, hard) = limits_of(&config)[1].expect("set");
        assert_eq!((soft, hard), (2, 3));
    }

    #[test]
    fn limit_is_reported_only_if_it_is_set_and_the_child_failed() {
        let config = SandboxConfig { cpu: Duration::from_secs(2), ..SandboxConfig::default() };
        let of = |raw: i32, cpu_s, said: &str| {
            let cpu = Duration::from_secs(cpu_s);
            let hit = |limits: &_| limit_hit(limits, ExitStatus::from_raw(raw), cpu, said);
            assert_eq!(hit(&without_limits(&config)), None, "{raw} {said}");
            hit(&config)
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
            (code(134), 0, "FATAL ERROR: … JavaScript heap out of memory", Some(Limit::Memory)),
            (code(1), 0, "bash: xrealloc: cannot allocate 8 bytes", Some(Limit::Memory)),
            (code(1), 0, "OSError: [Errno 24] Too many open files", Some(Limit::OpenFiles)),
            (code(1), 0, "cannot allocate new fd: Too many open files", Some(Limit::OpenFiles)),
            (code(254), 0, "fork: Resource temporarily unavailable", Some(Limit::Processes)),
            (0, 3, "MemoryError", None),
            (code(1), 3, "", None),
        ] {
            assert_eq!(of(raw, cpu_s, said), limit, "{raw} {said}");
        }
    }
}
