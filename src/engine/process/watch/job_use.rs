//! The limits of a job that the kernel does not have, measured at intervals: the space on disks, shared memory, and
//! processes where their user is root.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, getpid};

use super::disk_use::DiskUse;
use super::patience::Activity;
use crate::engine::process::proc;
use crate::engine::process::start::Run;
use crate::sandbox::{Limit, Sandbox};

const MEASURE_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct JobUse<'a> {
    pid: Pid,
    run: Run,
    disk: Option<DiskUse<'a>>,
    processes_max: Option<u64>,
    /// The maximum memory of one process. The kernel limits private memory; here shared memory counts too.
    memory_bytes_max: Option<u64>,
    /// The maximum memory of its own process at any measurement.
    pub(super) memory_seen_bytes: u64,
    /// The time of the next measurement; `None` without a limit.
    pub(super) next: Option<Instant>,
}

impl<'a> JobUse<'a> {
    pub(super) fn new(pid: Pid, run: Run, folder: &'a Path, sandbox: &Sandbox) -> Self {
        let bound = |value: u64| Some(value).filter(|value| *value > 0);
        let disk = bound(sandbox.limits.disk).map(|bytes_max| DiskUse::new(folder, bytes_max));
        let processes_max = bound(sandbox.limits.processes);
        let memory_bytes_max = bound(sandbox.limits.memory);
        let is_limited = disk.is_some() || processes_max.is_some() || memory_bytes_max.is_some();
        let next = is_limited.then(|| Instant::now() + MEASURE_EVERY);
        let memory_seen_bytes = 0;
        Self { pid, run, disk, processes_max, memory_bytes_max, memory_seen_bytes, next }
    }

    /// Measures the job if it is time to, and returns the limit that it exceeds.
    pub(super) fn exceeded(&mut self, now: Instant) -> Option<Limit> {
        if self.next.is_none_or(|at| now < at) {
            return None;
        }
        let began = Instant::now();
        let peak = proc::memory_peak_bytes(self.pid.as_raw()).unwrap_or_default();
        self.memory_seen_bytes = self.memory_seen_bytes.max(peak);
        let processes = self.processes();
        let count = u64::try_from(processes.len()).unwrap_or(u64::MAX);
        let exceeded = if self.processes_max.is_some_and(|max| count > max) {
            Some(Limit::Processes)
        } else if self.memory_bytes_max.is_some_and(|max| is_any_larger(&processes, max)) {
            Some(Limit::Memory)
        } else {
            let exceeds = self.disk.as_mut().is_some_and(|disk| disk.exceeds_limit(&processes));
            exceeds.then_some(Limit::Disk)
        };
        // Measuring a large job may take at most a twentieth of the time.
        self.next = Some(Instant::now() + MEASURE_EVERY.max(began.elapsed() * 20));
        exceeded
    }

    /// Returns what the processes of the job do that outlive its own.
    pub(super) fn activity(&self) -> Activity {
        let own = self.pid.as_raw();
        let mut wants_to_run = false;
        let processor = self.processes().into_iter().filter(|pid| *pid != own).map(|pid| {
            wants_to_run |= proc::Stat::of(pid).is_some_and(|stat| stat.wants_to_run);
            proc::processor_time(pid)
        });
        let processor = processor.sum();
        Activity { wants_to_run, processor }
    }

    /// Returns the names of the processes of the job that hold the other end of one of these pipes, with
    /// their number if several have the same name; at most `names_max`.
    pub(super) fn holders(&self, pipes: &[RawFd], names_max: usize) -> Vec<String> {
        let this = getpid().as_raw();
        let pipes: Vec<_> = pipes.iter().filter_map(|end| proc::open_file(this, *end)).collect();
        let own = self.pid.as_raw();
        let holders = self.processes().into_iter().filter(|pid| *pid != own);
        let holders = holders.filter(|pid| {
            proc::open_files(*pid).is_none_or(|files| files.iter().any(|file| pipes.contains(file)))
        });
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        for name in holders.filter_map(proc::name) {
            *names.entry(name).or_default() += 1;
        }
        let names = names.into_iter().map(|(name, count)| match count {
            1 => name,
            count => format!("{name} ({count} processes)"),
        });
        names.take(names_max).collect()
    }

    /// Lists the processes of the job: its child, its orphans, and all below them.
    fn processes(&self) -> Vec<i32> {
        let adopted = proc::adopted(getpid().as_raw()).unwrap_or_default();
        let orphans = adopted
            .into_iter()
            .filter(|pid| *pid != self.pid.as_raw() && Run::of_process(*pid) == Some(self.run));
        let roots = std::iter::once(self.pid.as_raw()).chain(orphans);
        roots.flat_map(|pid| std::iter::once(pid).chain(proc::descendants(pid))).collect()
    }
}

fn is_any_larger(processes: &[i32], bytes_max: u64) -> bool {
    processes.iter().any(|pid| proc::memory_bytes(*pid).is_some_and(|bytes| bytes > bytes_max))
}
