//! Explains the limit that ended a child, and a system call of another kind.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use super::Explainer;
use crate::config::{format_duration, format_size};
use crate::engine::process::watch::Ended;
use crate::sandbox::Limit;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) ended: Ended,
    pub(crate) status: ExitStatus,
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
        if ending.is_by(Signal::SIGSYS) && !self.allowance.denied_calls.is_empty() {
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
        let (size, none) = (format_size, None);
        let memory_key = if config.memory > 0 { "memory" } else { "address_space" };
        let (what, key, value, option) = match ending.limit? {
            // Its error says it.
            Limit::Output | Limit::UnitMemory | Limit::SliceMemory | Limit::MachineMemory => {
                return None;
            }
            Limit::Cpu => {
                let cpu = format_duration(asked.cpu.unwrap_or(config.cpu));
                ("processor time of one process", "cpu", cpu, asked.cpu.map(|_| "--cpu-time"))
            }
            Limit::Memory => {
                let of_type = if config.memory > 0 { config.memory } else { config.address_space };
                let own = asked.memory.as_ref();
                let bytes = own.map_or(of_type, |memory| memory.bytes());
                let option = own.filter(|_| config.memory > 0).map(|_| "--memory");
                ("memory of one process", memory_key, size(bytes), option)
            }
            Limit::Processes => ("processes", "processes", config.processes.to_string(), none),
            Limit::OpenFiles => {
                ("open files of one process", "open_files", config.open_files.to_string(), none)
            }
            Limit::FileSize => ("size of a file", "file_size", size(config.file_size), none),
            Limit::Disk => ("space on disk", "disk", size(config.disk), none),
            Limit::JobMemory => {
                let own = asked.job_memory.as_ref().map(|memory| (memory, "--job-memory"));
                let own = own.or(asked.memory.as_ref().map(|memory| (memory, "--memory")));
                let bytes = own.map_or(config.job_memory, |(memory, _)| memory.bytes());
                let option = own.map(|(_, option)| option);
                ("memory of the whole job", "job_memory", size(bytes), option)
            }
            Limit::JobProcesses => {
                let processes = config.job_processes.to_string();
                ("processes of the whole job", "job_processes", processes, none)
            }
        };
        let by_signal = ending.is_by(Signal::SIGXCPU) || ending.is_by(Signal::SIGXFSZ);
        let counted = matches!(ending.limit?, Limit::JobMemory | Limit::JobProcesses);
        let is_certain = ending.ended != Ended::Itself || by_signal || counted;
        let how = if is_certain { "reached" } else { "probably reached" };
        let opens = match option {
            Some(option) => format!("it is the job's own: {option} asks for more"),
            None => format!("a larger {key} in [{}] allows more", self.table),
        };
        Some(format!("sandbox: the job {how} its limit for the {what}, {value}; {opens}"))
    }
}
