//! `[type.NAME.sandbox]`: the sandbox of the child processes of one script type.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::config_error::{Fault, KeyPath};
use super::units;
use crate::config::toml_table::toml_table;
use crate::proto::units::{format_duration, format_size};
use crate::proto::word_table::words;

toml_table! {
    /// `[type.NAME.sandbox]`: the permissions and limits of a script's process and its descendants.
    ///
    /// The defaults allow it to read the system and to write its own folder.
    pub struct SandboxConfig {
        /// Sandboxes the processes.
        pub enabled: bool = true,
        /// The least part of the sandbox without which the type does not run.
        pub require: Require = Require::Basic,
        /// Further folders and files that may be read and executed.
        pub read: Vec<PathBuf> = Vec::new(),
        /// Further folders and files that may be read, executed and written.
        pub write: Vec<PathBuf> = Vec::new(),
        /// Allows network connections, to this machine too.
        pub network: bool = false,
        /// The TCP ports that are allowed while `network` is false.
        pub ports: Vec<u16> = Vec::new(),
        /// Allows connections to the sockets of other programs on this machine.
        pub unix_sockets: bool = false,
        /// Allows to change the modes of files.
        pub chmod: bool = true,
        /// The CPU time of one process; zero leaves it to the job's timeout.
        #[serde(with = "units::duration")]
        pub cpu: Duration = Duration::ZERO,
        /// The memory of one process; zero for no bound.
        #[serde(with = "units::size")]
        pub memory: u64 = 4 << 30,
        /// The address space of one process; zero for no bound.
        #[serde(with = "units::size")]
        pub address_space: u64 = 0,
        /// The maximum number of processes and threads of the daemon's user; zero for no bound.
        pub processes: u64 = 4096,
        /// The maximum number of open files of one process.
        pub open_files: u64 = 1024,
        /// The largest file that may be written; zero for no bound.
        #[serde(with = "units::size")]
        pub file_size: u64 = 1 << 30,
        /// The maximum number of bytes in the job's own folder; zero for no bound.
        #[serde(with = "units::size")]
        pub disk: u64 = 1 << 30,
        /// The memory of all processes of a job, if it has its own control group; zero for no bound.
        #[serde(with = "units::size")]
        pub job_memory: u64 = 4 << 30,
        /// The maximum number of processes and threads of a job, if it has its own control group; zero for no
        /// bound.
        pub job_processes: u64 = 1024,
        /// The maximum memory that a job may ask for, where that is more than `memory`.
        #[serde(with = "units::size")]
        pub memory_max: u64 = 0,
        /// The maximum CPU time that a job may ask for, where that is more than `cpu`.
        #[serde(with = "units::duration")]
        pub cpu_max: Duration = Duration::ZERO,
        /// Allows a job to ask for the whole network.
        pub network_max: bool = false,
        /// The TCP ports that a job may ask for, beside `ports`.
        pub ports_max: Vec<u16> = Vec::new(),
    }
}

words! {
    /// The part of the sandbox that the kernel must support.
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
        let bad =
            |name: &str, message| Err(Fault::new(table.then(name), message).or(table.clone()));
        if !self.ports.is_empty() && self.network {
            return bad("ports", "cannot be set beside network = true, which allows all ports");
        }
        if self.memory != 0 && self.memory < 16 << 20 {
            return bad("memory", "must be 0, or at least 16MiB: no interpreter starts with less");
        }
        if self.address_space != 0 && self.address_space < 16 << 20 {
            return bad(
                "address_space",
                "must be 0, or at least 16MiB: no interpreter starts with less",
            );
        }
        if self.job_memory != 0 && self.job_memory < 16 << 20 {
            return bad(
                "job_memory",
                "must be 0, or at least 16MiB: no interpreter starts in less",
            );
        }
        if self.cpu != Duration::ZERO && self.cpu < Duration::from_secs(1) {
            return bad("cpu", "must be 0s, or at least 1s: the kernel counts whole seconds");
        }
        Ok(())
    }
}

impl SandboxConfig {
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
