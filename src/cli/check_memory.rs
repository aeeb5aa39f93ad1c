//! Compares the memory that the jobs of a unit may take with the memory of this machine.

use serde_json::{Value, json};

use crate::config::{ActorUnit, Config, EngineKind, Unit, format_size, machine_memory_bytes};

/// The memory that the jobs of a unit may take together, and the memory of the machine.
pub(super) struct MemoryCheck {
    jobs_bytes: u64,
    machine_bytes: u64,
}

impl MemoryCheck {
    /// Adds up the memory of all tasks of actors whose jobs are processes; `None` if one has no bound, or the kernel
    /// does not tell what there is.
    pub(super) fn of(config: &Config, unit: &Unit) -> Option<Self> {
        let Unit::Actors(actors) = unit else { return None };
        Some(Self {
            jobs_bytes: jobs_bytes(config, actors)?,
            machine_bytes: machine_memory_bytes()?,
        })
    }

    /// Describes it in one line.
    pub(super) fn line(&self, unit: &str) -> String {
        let [jobs, machine] =
            [self.jobs_bytes, self.machine_bytes].map(|bytes| format_size(bytes >> 20 << 20));
        let more = if self.jobs_bytes > self.machine_bytes {
            ", which is less: lower `tasks`, `memory` or `job_memory` of the sandbox, or set MemoryMax= for the unit"
        } else {
            ""
        };
        format!(
            "unit {unit}: its jobs may take {jobs} of memory at once; this machine has {machine}{more}"
        )
    }

    /// The same as JSON.
    pub(super) fn document(&self) -> Value {
        json!({ "jobs_bytes": self.jobs_bytes, "machine_bytes": self.machine_bytes })
    }
}

fn jobs_bytes(config: &Config, actors: &[ActorUnit]) -> Option<u64> {
    let mut sum = 0_u64;
    for actor in actors {
        let of_type = config.types.get(&actor.id.script_type)?;
        if of_type.engine == EngineKind::Command {
            let sandbox = Some(&of_type.sandbox).filter(|sandbox| sandbox.enabled)?;
            // A job has several processes, which `job_memory` bounds together.
            let of_job = if sandbox.job_memory > 0 { sandbox.job_memory } else { sandbox.memory };
            let tasks = u64::try_from(actor.tasks).unwrap_or(u64::MAX);
            sum =
                sum.saturating_add(Some(of_job).filter(|bytes| *bytes > 0)?.saturating_mul(tasks));
        }
    }
    Some(sum).filter(|sum| *sum > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, unit: &str) -> Option<u64> {
        let config = Config::from_toml("h".as_ref(), text).expect("legal");
        let Unit::Actors(actors) = config.unit(unit).expect("a unit") else { panic!("actors") };
        jobs_bytes(&config, &actors)
    }

    #[test]
    fn memory_of_all_tasks_is_added_up() {
        let own = "[actor]\ntasks = 3\n[type.bash.sandbox]\njob_memory = \"1GiB\"\n";
        assert_eq!(of(own, "bash-default-1"), Some(3 << 30));
        assert_eq!(of(own, "osis-default-1"), None, "its scripts have bounds of their own");
        let open = "[type.bash.sandbox]\nmemory = \"0B\"\njob_memory = \"0B\"\n";
        assert_eq!(of(open, "bash-default-1"), None);
    }

    #[test]
    fn more_than_the_machine_has_is_told() {
        let small = MemoryCheck { jobs_bytes: 8 << 30, machine_bytes: 3 << 30 };
        assert!(small.line("u").contains("8GiB") && small.line("u").contains("which is less"));
        let large = MemoryCheck { jobs_bytes: 1 << 30, machine_bytes: 3 << 30 };
        assert!(large.line("u").ends_with("this machine has 3GiB"), "{}", large.line("u"));
    }
}
