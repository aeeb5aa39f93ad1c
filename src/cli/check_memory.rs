//! Compares the memory that the jobs of a unit may take with the memory of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::config::{ActorUnit, Config, EngineKind, Unit, format_size, machine_memory_bytes};

/// The memory of one unit, or of each unit of actors of this machine.
pub(super) struct UnitsMemory {
    units: Vec<(String, MemoryCheck)>,
    is_of_one: bool,
}

impl UnitsMemory {
    /// Adds up the memory of this unit; without one, of the tables `[unit.NAME]` and of what systemd starts.
    pub(super) fn of(config: &Config, unit: Option<&(&str, Unit)>) -> Self {
        if let Some((name, unit)) = unit {
            let of_unit = MemoryCheck::of(config, unit).map(|of| ((*name).to_owned(), of));
            return Self { units: of_unit.into_iter().collect(), is_of_one: true };
        }
        let names: BTreeSet<String> = config.units.keys().cloned().chain(enabled_units()).collect();
        let check = |name: String| {
            let unit = config.unit(&name).ok()?;
            Some((name, MemoryCheck::of(config, &unit)?))
        };
        Self { units: names.into_iter().filter_map(check).collect(), is_of_one: false }
    }

    /// Describes each unit in one line, and several together in another.
    pub(super) fn lines(&self) -> Vec<String> {
        let of_units = self.units.iter().map(|(name, of)| of.line(&format!("unit {name}")));
        let together = self.together().map(|of| of.line("all units together"));
        of_units.chain(together).collect()
    }

    /// Adds it to a document: to its unit, or for all units by name.
    pub(super) fn add_to(&self, document: &mut Value) {
        if self.is_of_one {
            document["unit"]["memory"] = json!(self.units.first().map(|(_, of)| of));
        } else {
            let of_units = self.units.iter().map(|(name, of)| (name.clone(), json!(of)));
            document["memory"] = of_units.collect::<serde_json::Map<_, _>>().into();
        }
    }

    /// Returns the sum over units; `None` for less than two.
    fn together(&self) -> Option<MemoryCheck> {
        let (_, MemoryCheck { machine_bytes, .. }) = *self.units.get(1)?;
        let bytes = self.units.iter().map(|(_, of)| of.jobs_bytes);
        let jobs_bytes = bytes.fold(0, u64::saturating_add);
        Some(MemoryCheck { jobs_bytes, machine_bytes })
    }
}

/// The memory that the jobs of a unit may take together, and the memory of the machine.
#[derive(Serialize)]
struct MemoryCheck {
    jobs_bytes: u64,
    machine_bytes: u64,
}

impl MemoryCheck {
    /// Adds up the memory of all tasks of actors whose jobs are processes; `None` if one has no bound, or the kernel
    /// does not tell what there is.
    fn of(config: &Config, unit: &Unit) -> Option<Self> {
        let Unit::Actors(actors) = unit else { return None };
        Some(Self {
            jobs_bytes: jobs_bytes(config, actors)?,
            machine_bytes: machine_memory_bytes()?,
        })
    }

    fn line(&self, who: &str) -> String {
        let [jobs, machine] =
            [self.jobs_bytes, self.machine_bytes].map(|bytes| format_size(bytes >> 20 << 20));
        let more = if self.jobs_bytes > self.machine_bytes {
            ", which is less: lower `tasks`, `memory` or `job_memory` of the sandbox, or set MemoryMax= for the unit"
        } else {
            ""
        };
        format!(
            "{who}: the jobs may take {jobs} of memory at once; this machine has {machine}{more}"
        )
    }
}

/// Returns the units `hero@NAME` that systemd starts with the machine.
fn enabled_units() -> Vec<String> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let wants = entries(Path::new("/etc/systemd/system"))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|of| of == "wants"));
    let names = wants.flat_map(|folder| entries(&folder).collect::<Vec<_>>());
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| Some(name.strip_prefix("hero@")?.strip_suffix(".service")?.to_owned()))
        .collect()
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
    fn more_than_the_machine_has_is_reported() {
        let small = MemoryCheck { jobs_bytes: 8 << 30, machine_bytes: 3 << 30 };
        assert!(small.line("u").contains("8GiB") && small.line("u").contains("which is less"));
        let large = MemoryCheck { jobs_bytes: 1 << 30, machine_bytes: 3 << 30 };
        assert!(large.line("u").ends_with("this machine has 3GiB"), "{}", large.line("u"));
    }
}
