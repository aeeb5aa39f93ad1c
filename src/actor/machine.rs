//! On which machine, in which space of process numbers, an actor runs, and whether a process
//! there is still alive.

use std::fs;

use crate::config::{ActorConfig, format_size};

/// What tells this machine, as long as it is up, from all others: the kernel's own boot id and
/// the namespace of process numbers. A host name does not: cloned machines and containers share
/// theirs. Empty if the kernel does not say.
pub(super) fn id() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match (boot.trim(), space.to_string_lossy()) {
        ("", _) => String::new(),
        (boot, space) => format!("{boot} {space}"),
    }
}

/// Returns the host name of this machine, for people to read.
pub(super) fn host_name() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Whether a process of this machine runs. One that has ended and that its parent has not yet
/// taken note of does not.
pub(super) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The name before the state may hold anything, parentheses too.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X' | 'x'))
}

/// Why an actor should take no jobs now, as a few words for a person: its machine is past what the
/// configuration allows. What cannot be read keeps nobody from working.
pub(super) fn strain(bounds: &ActorConfig) -> Option<String> {
    let most = bounds.load_max.get();
    if most > 0.0 {
        let load = fs::read_to_string("/proc/loadavg").ok().and_then(|text| load_in(&text));
        if let Some(load) = load.filter(|load| *load > most) {
            return Some(format!("load {load:.1} over {most:.1}"));
        }
    }
    if bounds.memory_min > 0 {
        let memory = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_in(&text));
        if let Some(bytes) = memory.filter(|bytes| *bytes < bounds.memory_min) {
            let least = format_size(bounds.memory_min);
            return Some(format!("memory {} MiB under {least}", bytes >> 20));
        }
    }
    None
}

/// The load over the last minute.
fn load_in(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

/// The bytes of memory that programs may still have without swapping.
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Load;
    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    #[test]
    fn load_and_memory_are_read_as_the_kernel_writes_them() {
        assert_eq!(load_in("9.13 4.00 2.71 3/456 789\n"), Some(9.13));
        assert_eq!(load_in(""), None);
        let text = "MemTotal:       8000 kB\nMemFree:  10 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available_in(text), Some(2 << 20));
        assert_eq!(available_in("MemAvailable: much\n"), None);
    }

    #[test]
    fn a_machine_is_strained_only_past_a_bound_that_somebody_set() {
        let mut bounds = ActorConfig::default();
        assert_eq!(strain(&bounds), None);
        bounds.load_max = Load::new(100_000.0).expect("a load");
        bounds.memory_min = 1;
        assert_eq!(strain(&bounds), None);
        bounds.memory_min = 1 << 50;
        let said = strain(&bounds).expect("no machine has that much");
        assert!(said.starts_with("memory ") && said.ends_with(" MiB under 1048576GiB"), "{said}");
    }

    #[test]
    fn this_process_is_alive_and_one_that_cannot_be_is_not() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(u32::MAX));
        assert!(!id().is_empty());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a zombie is made only by starting a process")]
    fn a_process_that_has_ended_is_not_alive_though_nobody_took_note() {
        let mut child = std::process::Command::new("/bin/true").spawn().expect("starts");
        let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
        let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(pid), ended).expect("it ends");
        assert!(fs::metadata(format!("/proc/{}", child.id())).is_ok(), "it still has its entry");
        assert!(!is_alive(child.id()));
        child.wait().expect("reaped");
    }
}
