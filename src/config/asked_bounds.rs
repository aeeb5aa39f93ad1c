//! The bounds that a job may ask for: its script type's, up to its `…_max`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::sandbox::SandboxConfig;
use super::schema::Config;
use super::types::{EngineKind, TypeConfig};
use crate::proto::job::{AskedBounds, InvalidJob, JobFiles, JobSpec, MemorySize, NetworkAccess};
use crate::proto::target::ScriptType;
use crate::proto::units::{format_duration, format_size};

impl Config {
    /// Checks the bounds that a job asks for against its script type's. Another machine may have a type
    /// that is not configured here: its actor checks.
    pub fn check_asked(&self, spec: &JobSpec) -> Result<(), InvalidJob> {
        let Some(name) = &spec.script_type else { return Ok(()) };
        let of_type = self.types.get(name);
        of_type.map_or(Ok(()), |of_type| of_type.check_asked(name, &spec.asked_bounds()))
    }

    /// Checks that a job can be given these files.
    ///
    /// # Errors
    /// [`InvalidJob`] if the scripts of its type are no processes.
    pub fn check_files(&self, spec: &JobSpec, files: &JobFiles) -> Result<(), InvalidJob> {
        let of_type =
            spec.script_type.as_ref().and_then(|name| Some((name, self.types.get(name)?)));
        let Some((name, of_type)) = of_type else { return Ok(()) };
        if files.is_empty() || of_type.engine == EngineKind::Command {
            return Ok(());
        }
        Err(no_process(if files.inputs.is_empty() { "stdin" } else { "input" }, name))
    }
}

impl TypeConfig {
    /// Checks the bounds that a job of this type asks for.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first that is not allowed, and the key that would allow it.
    pub fn check_asked(&self, name: &ScriptType, asked: &AskedBounds) -> Result<(), InvalidJob> {
        match (self.engine, asked.first_field()) {
            (EngineKind::Command, Some(_)) => self.sandbox.for_job(name, asked).map(|_| ()),
            (_, Some(field)) => Err(no_process(field, name)),
            (_, None) => Ok(()),
        }
    }
}

/// Returns the error of a bound for a script that is no process.
pub fn no_process(field: &str, name: &ScriptType) -> InvalidJob {
    let reason = format!("is for scripts that are processes; scripts of type {name} are not");
    InvalidJob::new(field, reason)
}

impl SandboxConfig {
    /// Returns the sandbox of a job that asks for bounds; `name` is its script type.
    pub fn for_job(&self, name: &ScriptType, asked: &AskedBounds) -> Result<Self, InvalidJob> {
        let mut own = self.clone();
        let key = |key: &str| format!("type.{name}.sandbox.{key}");
        if let Some(field) = asked.first_field().filter(|_| !self.enabled) {
            let reason = format!("needs a sandbox, which {} = false switches off", key("enabled"));
            return Err(InvalidJob::new(field, reason));
        }
        let memories = [
            ("memory", asked.memory, self.memory),
            ("job_memory", asked.job_memory, self.job_memory),
        ];
        for (field, memory, of_type) in memories {
            let Some(memory) = memory else { continue };
            let most = of_type.max(self.memory_max);
            if of_type > 0 && memory.bytes() > most {
                let (most, key) = (format_size(most), key("memory_max"));
                let reason = format!("`{memory}` is more than {most}, the limit {key}");
                return Err(InvalidJob::new(field, reason));
            }
        }
        own.memory = asked.memory.map_or(own.memory, MemorySize::bytes);
        own.job_memory =
            asked.job_memory.or(asked.memory).map_or(own.job_memory, MemorySize::bytes);
        if let Some(cpu) = asked.cpu {
            let most = self.cpu.max(self.cpu_max);
            if self.cpu > Duration::ZERO && cpu > most {
                let (most, key) = (format_duration(most), key("cpu_max"));
                let cpu = format_duration(cpu);
                let reason = format!("`{cpu}` is more than {most}, the limit {key}");
                return Err(InvalidJob::new("cpu", reason));
            }
            own.cpu = cpu;
        }
        if let Some(network) = &asked.network {
            let may_all = self.network || self.network_max;
            let is_allowed =
                |port: &u16| may_all || self.ports.contains(port) || self.ports_max.contains(port);
            let refused = match network {
                NetworkAccess::Open if !may_all => {
                    Some(("all".to_owned(), "network_max", "true".to_owned()))
                }
                NetworkAccess::Ports(ports) => {
                    let refused = ports.iter().find(|port| !is_allowed(port));
                    let all: BTreeSet<_> = self.ports_max.iter().chain(ports).collect();
                    let all: Vec<_> = all.into_iter().collect();
                    refused.map(|port| (port.to_string(), "ports_max", format!("{all:?}")))
                }
                _ => None,
            };
            if let Some((what, by, needed)) = refused {
                let reason = format!(
                    "`{what}` is not allowed by {}; {by} = {needed} in [type.{name}.sandbox] of hero.toml, of the \
                     actor too, allows it",
                    key(by)
                );
                return Err(InvalidJob::new("network", reason));
            }
            own.network = *network == NetworkAccess::Open;
            own.ports = match network {
                NetworkAccess::Ports(ports) => ports.iter().copied().collect(),
                _ => Vec::new(),
            };
        }
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(memory: &str, cpu_s: u64, network: &str) -> AskedBounds {
        AskedBounds {
            memory: memory.parse().ok(),
            job_memory: None,
            cpu: Some(Duration::from_secs(cpu_s)).filter(|time| !time.is_zero()),
            network: network.parse().ok(),
        }
    }

    fn sandbox(keys: &str, asked: &AskedBounds) -> Result<SandboxConfig, String> {
        let text = format!("[type.python.sandbox]\n{keys}");
        let config = Config::from_toml("h".as_ref(), &text).expect("legal");
        let name = "python".parse().expect("legal");
        let found = config.types[&name].sandbox.for_job(&name, asked);
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn job_gets_less_than_its_type_and_more_up_to_the_maximum() {
        let less = sandbox("", &asked("512MiB", 5, "none")).expect("less");
        assert_eq!((less.memory, less.job_memory), (512 << 20, 512 << 20));
        assert_eq!((less.cpu, less.network, less.ports), (Duration::from_secs(5), false, vec![]));
        let keys = "memory_max = \"8GiB\"\ncpu = \"1m\"\ncpu_max = \"1h\"\nports = [53]\nports_max = [443]";
        let more = sandbox(keys, &asked("8GiB", 3600, "53,443")).expect("more");
        assert_eq!((more.memory, more.ports), (8 << 30, vec![53, 443]));
        let open = sandbox("network_max = true", &asked("", 0, "all")).expect("allowed");
        assert!(open.network && open.ports.is_empty());
        let narrow = sandbox("network = true", &asked("", 0, "443")).expect("less");
        assert_eq!((narrow.network, narrow.ports), (false, vec![443]));
    }

    #[test]
    fn job_as_a_whole_may_have_another_bound_than_its_processes() {
        let asked = |memory: &str, whole: &str| AskedBounds {
            memory: memory.parse().ok(),
            job_memory: whole.parse().ok(),
            ..AskedBounds::default()
        };
        let whole = sandbox("", &asked("", "1GiB")).expect("less");
        assert_eq!((whole.memory, whole.job_memory), (4 << 30, 1 << 30));
        let both = sandbox("", &asked("512MiB", "1GiB")).expect("less");
        assert_eq!((both.memory, both.job_memory), (512 << 20, 1 << 30));
        let said = "job_memory `2GiB` is more than 1GiB, the limit type.python.sandbox.memory_max";
        let error = sandbox("job_memory = \"1GiB\"", &asked("", "2GiB")).expect_err(said);
        assert!(error.contains(said), "{error}");
        let more = sandbox("memory_max = \"8GiB\"", &asked("", "8GiB")).expect("allowed");
        assert_eq!((more.memory, more.job_memory), (4 << 30, 8 << 30));
    }

    #[test]
    fn more_than_the_maximum_is_rejected_with_its_key() {
        for (keys, asked, said) in [
            (
                "",
                asked("5GiB", 0, ""),
                "memory `5GiB` is more than 4GiB, the limit type.python.sandbox.memory_max",
            ),
            ("memory_max = \"6GiB\"", asked("7GiB", 0, ""), "memory `7GiB` is more than 6GiB"),
            (
                "cpu = \"1m\"",
                asked("", 61, ""),
                "cpu `61s` is more than 1m, the limit type.python.sandbox.cpu_max",
            ),
            (
                "",
                asked("", 0, "all"),
                "network `all` is not allowed by type.python.sandbox.network_max",
            ),
            (
                "ports_max = [443]",
                asked("", 0, "80,443"),
                "network `80` is not allowed by type.python.sandbox.ports_max",
            ),
            (
                "enabled = false",
                asked("1GiB", 0, ""),
                "memory needs a sandbox, which type.python.sandbox.enabled = false",
            ),
        ] {
            let error = sandbox(keys, &asked).expect_err(said);
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn script_that_is_no_process_has_no_such_bounds() {
        let config = Config::default();
        let name = "osis".parse().expect("legal");
        let check = |asked: &AskedBounds| config.types[&name].check_asked(&name, asked);
        assert_eq!(check(&AskedBounds::default()), Ok(()));
        let error = check(&asked("1GiB", 0, "")).expect_err("no process").to_string();
        assert!(error.contains("memory is for scripts that are processes"), "{error}");
    }
}
