//! Explains the limit that ended a child, and a system call of another kind.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use super::Explainer;
use crate::config::{format_duration, format_size};
use crate::engine::process::watch::Ended;
use crate::sandbox::Limit;

/// The end of a child that has failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) ended: Ended,
    pub(crate) status: ExitStatus,
    /// The limit that it hit.
    pub(crate) limit: Option<Limit>,
}

impl Ending {
    fn is_by(self, signal: Signal) -> bool {
        let number = signal as i32;
        self.ended == Ended::Itself
            && (self.status.signal() == Some(number) || self.status.code() == Some(128 + number))
    }
}

impl Explainer<'_> {
    /// Returns what the sandbox has ended, or refused, as the end of the child shows.
    pub(crate) fn of_end(&self, ending: Ending) -> Option<String> {
        if ending.is_by(Signal::SIGSYS) && !self.allowance.denied_calls().is_empty() {
            let what =
                "a program was ended by SIGSYS, as for system calls of another processor's kind";
            return Some(format!(
                "sandbox: {what}; no key of [{}] allows them but enabled = false",
                self.table
            ));
        }
        self.of_limit(ending)
    }

    fn of_limit(&self, ending: Ending) -> Option<String> {
        let (config, asked) = self.of_type?;
        let size = |bytes: u64| format_size(bytes);
        let memory_key = if config.memory > 0 { "memory" } else { "address_space" };
        let (what, key, value) = match ending.limit? {
            // Its error says it.
            Limit::Output | Limit::UnitMemory | Limit::SliceMemory | Limit::MachineMemory => {
                return None;
            }
            Limit::Cpu => {
                let cpu = asked.cpu.unwrap_or(config.cpu);
                ("processor time of one process", "cpu", format_duration(cpu))
            }
            Limit::Memory => {
                let of_type = if config.memory > 0 { config.memory } else { config.address_space };
                let bytes = asked.memory.as_ref().map_or(of_type, |memory| memory.bytes());
                ("memory of one process", memory_key, size(bytes))
            }
            Limit::Processes => ("processes", "processes", config.processes.to_string()),
            Limit::OpenFiles => {
                ("open files of one process", "open_files", config.open_files.to_string())
            }
            Limit::FileSize => ("size of a file", "file_size", size(config.file_size)),
            Limit::Disk => ("space on disk", "disk", size(config.disk)),
            Limit::JobMemory => {
                let whole = asked.job_memory.as_ref().or(asked.memory.as_ref());
                let bytes = whole.map_or(config.job_memory, |memory| memory.bytes());
                ("memory of the whole job", "job_memory", size(bytes))
            }
            Limit::JobProcesses => {
                ("processes of the whole job", "job_processes", config.job_processes.to_string())
            }
        };
        let by_signal = ending.is_by(Signal::SIGXCPU) || ending.is_by(Signal::SIGXFSZ);
        let counted = matches!(ending.limit?, Limit::JobMemory | Limit::JobProcesses);
        let is_certain = ending.ended != Ended::Itself || by_signal || counted;
        let how = if is_certain { "reached" } else { "probably reached" };
        let table = &self.table;
        let is_asked = match key {
            "memory" => asked.memory.is_some(),
            "job_memory" => asked.job_memory.is_some() || asked.memory.is_some(),
            "cpu" => asked.cpu.is_some(),
            _ => false,
        };
        let opens = if is_asked {
            let option = match key {
                "cpu" => "--cpu-time",
                "job_memory" if asked.job_memory.is_some() => "--job-memory",
                _ => "--memory",
            };
            format!("it is the job's own: {option} asks for more")
        } else {
            format!("a larger {key} in [{table}] allows more")
        };
        Some(format!("sandbox: the job {how} its limit for the {what}, {value}; {opens}"))
    }
}
