//! `[type.NAME.sandbox]`: the sandbox of the child processes of one script type.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::config_error::{Fault, KeyPath};
use super::key_row::{ANY, PIB, TEN_YEARS};
use super::units::{duration, size};
use crate::config::toml_table::toml_table;
use crate::proto::units::{format_duration, format_size};
use crate::proto::word_table::words;

toml_table! {
    /// The sandbox of the scripts of a type with the engine `command` and of all processes that they start. By
    /// default they read the system's programs and libraries and write their own folder, which is deleted
    /// afterwards. The log of a script that failed since the sandbox refused it something names the key that would
    /// allow it.
    pub struct SandboxConfig in "type.NAME.sandbox" {
        /// Switches the sandbox on. Without it a script may do what the daemon's user may.
        enabled: bool = true => Flag;
        /// The part of the sandbox that the kernel must enforce: `full` needs Linux 6.12, `basic` is without signals
        /// and abstract sockets, `none` accepts any kernel. `hero check` shows what this kernel enforces; an actor with
        /// less does not start.
        require: Require = Require::Basic => OneOf(&["none", "basic", "full"]);
        /// More folders and files that may be read, with programs that may be started. Symbolic links are resolved.
        read: Vec<PathBuf> = Vec::new() => Folders;
        /// More folders and files that may be written. They are shared between jobs. Values, arrays and shared memory
        /// of Python's multiprocessing need `/dev/shm` here.
        write: Vec<PathBuf> = Vec::new() => Folders;
        /// Allows network access, to this machine too.
        network: bool = false => Flag;
        /// TCP ports that may be reached while network is false, such as `[53, 443]`; 53 allows name resolution. Needs
        /// Linux 6.7; an older kernel allows none.
        ports: Vec<u16> = Vec::new() => Numbers(1, 65_535);
        /// Allows Unix sockets with a path.
        unix_sockets: bool = false => Flag;
        /// Allows changing file modes. The kernel cannot restrict this to folders: a script could make a folder of the
        /// daemon inaccessible to the daemon. Without it, copying files together with their modes fails. The set-uid
        /// and set-gid bits are never set.
        chmod: bool = true => Flag;
        /// The processor time of one process, in whole seconds; `0s`: no limit but the job's timeout.
        cpu: Duration as "duration" = Duration::ZERO => Duration(0, TEN_YEARS);
        /// The memory of one process. The kernel refuses more private memory; shared memory is measured twice a second,
        /// and a process with more ends the job. `0B`: no limit. By default 4GiB, but at most half of the machine's memory.
        memory: u64 as "size" = memory_default() => Size(0, PIB);
        /// The address space of one process, which is more than the memory it uses: node reserves hundreds of GiB.
        /// `0B`: no limit.
        address_space: u64 as "size" = 0 => Size(0, PIB);
        /// Processes and threads of the daemon's user, over all its units; 0: no limit. For root the processes of each
        /// job, checked twice a second.
        processes: u64 = 4096 => Number(0, 1 << 22);
        /// Open files of one process.
        open_files: u64 = 1024 => Number(16, 1 << 20);
        /// The largest file; `0B`: no limit.
        file_size: u64 as "size" = 1 << 30 => Size(0, ANY);
        /// The size of the job's own folder and of its open files without a name, such as files in memory; checked
        /// twice a second; `0B`: no limit.
        disk: u64 as "size" = 1 << 30 => Size(0, ANY);
        /// The memory of a job as a whole: all its processes, and its files in memory file systems; `0B`: no limit.
        /// By default as `memory`. This and the next need a control group that is delegated to the unit, with `Delegate=`, as the packaged unit
        /// does; the daemon's log says whether jobs have one.
        /// ---
        /// A job that exceeds it is killed as a whole, and its `limit` is `job memory`. A job that the kernel kills
        /// since its unit, a slice of it or the machine has no more memory goes back to its queue, as after a crash of
        /// its actor.
        job_memory: u64 as "size" = memory_default() => Size(0, PIB);
        /// Processes and threads of a job as a whole; 0: no limit.
        job_processes: u64 = 1024 => Number(0, 1 << 22);
        /// The memory that a job may ask for with `--memory` and `--job-memory`, if that is more than `memory` and
        /// `job_memory`. Less it may always ask for. With `--memory` alone, the whole job has no more either.
        memory_max: u64 as "size" = 0 => Size(0, PIB);
        /// The processor time that a job may ask for with `--cpu-time`, if that is more than `cpu`.
        cpu_max: Duration as "duration" = Duration::ZERO => Duration(0, TEN_YEARS);
        /// Allows a job to ask for all of the network, with `--network all`.
        network_max: bool = false => Flag;
        /// The TCP ports that a job may ask for with `--network`, beside `ports`.
        ports_max: Vec<u16> = Vec::new() => Numbers(1, 65_535);
    }
}

/// The default memory of a process, and of a job: a job must not take all that its machine has.
fn memory_default() -> u64 {
    const MOST: u64 = 4 << 30;
    machine_memory_bytes().map_or(MOST, |bytes| MOST.min(((bytes / 2) >> 20) << 20))
}

/// Returns the memory of this machine; `None` if the kernel does not tell.
pub fn machine_memory_bytes() -> Option<u64> {
    total_in(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn total_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

words! {
    #[derive(PartialOrd, Ord, Deserialize)]
    Require;
    /// None: the sandbox is as complete as the kernel allows.
    None = "none",
    /// Files by Landlock, system calls and the network by seccomp.
    Basic = "basic",
    /// And signals, abstract sockets and TCP ports by Landlock: Linux 6.12.
    Full = "full",
}

impl SandboxConfig {
    /// Checks what the bounds of the table of keys do not; `table` is the path of the table.
    pub(super) fn check(&self, table: &KeyPath) -> Result<(), Fault> {
        if !self.ports.is_empty() && self.network {
            return table
                .wrong("ports", "cannot be set beside network = true, which allows all ports");
        }
        for (key, bytes, with) in [
            ("memory", self.memory, "with"),
            ("address_space", self.address_space, "with"),
            ("job_memory", self.job_memory, "in"),
        ] {
            if bytes != 0 && bytes < 16 << 20 {
                let least = "must be 0, or at least 16MiB: no interpreter starts";
                return table.wrong(key, format!("{least} {with} less"));
            }
        }
        if self.cpu != Duration::ZERO && self.cpu < Duration::from_secs(1) {
            return table
                .wrong("cpu", "must be 0s, or at least 1s: the kernel counts whole seconds");
        }
        Ok(())
    }

    /// Describes the limits as keys with their values; those that are not set are left out.
    pub fn limits_in_force(&self) -> String {
        let size = |bytes: u64| Some(format_size(bytes)).filter(|_| bytes > 0);
        let count = |number: u64| Some(number.to_string()).filter(|_| number > 0);
        let limits = [
            ("memory", size(self.memory)),
            ("address_space", size(self.address_space)),
            ("cpu", Some(format_duration(self.cpu)).filter(|_| !self.cpu.is_zero())),
            ("processes", count(self.processes)),
            ("open_files", count(self.open_files)),
            ("file_size", size(self.file_size)),
            ("disk", size(self.disk)),
            ("job_memory", size(self.job_memory)),
            ("job_processes", count(self.job_processes)),
        ];
        let set = limits.into_iter().filter_map(|(key, value)| Some(format!("{key} {}", value?)));
        set.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Require};

    fn with(keys: &str) -> Result<Config, String> {
        let text = format!("[type.python.sandbox]\n{keys}");
        Config::from_toml("hero.toml".as_ref(), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn illegal_values_of_a_sandbox_are_rejected_with_their_place() {
        for (keys, said) in [
            (
                "read = [\"/srv\", \"data\"]",
                "2:17: type.python.sandbox.read[1] must be an absolute",
            ),
            ("write = [\"/a/../b\"]", "2:10: type.python.sandbox.write[0] must be an absolute"),
            ("ports = [0]", "2:10: type.python.sandbox.ports[0] must be from 1"),
            ("network = true\nports = [1]", "3:9: type.python.sandbox.ports cannot be set"),
            ("open_files = 1", "2:14: type.python.sandbox.open_files must be from 16"),
            ("memory = \"1MiB\"", "2:10: type.python.sandbox.memory must be 0"),
            ("cpu = \"10ms\"", "2:7: type.python.sandbox.cpu must be 0s"),
            (
                "processes = 5000000",
                "2:13: type.python.sandbox.processes must be from 0 to 4194304",
            ),
            ("job_memory = \"1MiB\"", "2:14: type.python.sandbox.job_memory must be 0"),
            (
                "job_processes = 5000000",
                "2:17: type.python.sandbox.job_processes must be from 0 to",
            ),
            ("require = \"much\"", "2:11: type.python.sandbox.require"),
            ("netwrok = true", "2:1: "),
        ] {
            let error = with(keys).expect_err(keys);
            assert!(error.contains(&format!("hero.toml:{said}")), "{keys}: {error}");
        }
    }

    #[test]
    fn each_key_replaces_only_its_own_default() {
        let config = with("network = true\nrequire = \"full\"").expect("legal");
        let python = &config.types[&"python".parse().expect("legal")].sandbox;
        assert_eq!((python.network, python.require, python.enabled), (true, Require::Full, true));
        let v = &config.types[&"v".parse().expect("legal")].sandbox;
        assert_eq!(*v, super::SandboxConfig::default());
    }

    #[test]
    fn limits_that_are_not_set_are_left_out() {
        let said =
            super::SandboxConfig { disk: 0, ..super::SandboxConfig::default() }.limits_in_force();
        assert!(said.starts_with("memory 4GiB, processes 4096, open_files 1024"), "{said}");
        assert!(!said.contains("disk") && !said.contains("cpu"), "{said}");
    }
}
