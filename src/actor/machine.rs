//! The machine that an actor runs on: its id, its processes, its load.

use std::fs;

use crate::config::{ActorConfig, format_size};

/// Returns an id of this machine until its next reboot: the kernel's boot id and the namespace of
/// process ids. A host name is no id: cloned machines and containers share theirs. Empty where the
/// kernel does not report.
pub(super) fn id() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match (boot.trim(), space.to_string_lossy()) {
        ("", _) => String::new(),
        (boot, space) => format!("{boot} {space}"),
    }
}

/// Returns whether a process of this machine runs, and is the one that started then, if that is known. A zombie does not
/// run.
pub(super) fn is_alive(pid: u32, since: Option<u64>) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = fields(&stat).next().and_then(|state| state.chars().next());
    !matches!(state, Some('Z' | 'X' | 'x'))
        && since.is_none_or(|since| started(&stat) == Some(since))
}

/// Returns when this process started, in the kernel's ticks since boot.
pub(super) fn own_start() -> Option<u64> {
    started(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn started(stat: &str) -> Option<u64> {
    const BETWEEN: usize = 19;
    fields(stat).nth(BETWEEN)?.parse().ok()
}

/// Returns the fields from the state on. The name before it may hold anything, parentheses too.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace()
}

/// Returns why the machine is overloaded by the bounds of the configuration, for a person. A value
/// that cannot be read counts as within its bound.
pub(super) fn overload(bounds: &ActorConfig) -> Option<String> {
    let most = bounds.load_max;
    if most > 0.0
        && let Some(load) = load().filter(|load| *load > most)
    {
        return Some(format!("load {load:.1} over {most:.1}"));
    }
    if bounds.memory_min > 0
        && let Some(bytes) = free_memory().filter(|bytes| *bytes < bounds.memory_min)
    {
        let least = format_size(bounds.memory_min);
        return Some(format!("memory {} MiB under {least}", bytes >> 20));
    }
    None
}

/// Returns the number of processes that the kernel has killed for lack of memory since this machine started.
pub(super) fn oom_kills() -> Option<u64> {
    oom_kills_in(&fs::read_to_string("/proc/vmstat").ok()?)
}

/// Returns the memory of this machine, in bytes.
pub(super) fn total_memory() -> Option<u64> {
    memory_in(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// Returns the memory of this machine that is available, in bytes.
pub(super) fn free_memory() -> Option<u64> {
    memory_in(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Returns the load over the last minute, in hundredths, as the kernel reports it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and bounded"
)]
pub(super) fn load_hundredths() -> Option<u64> {
    load().filter(|load| (0.0..1e6).contains(load)).map(|load| (load * 100.0).round() as u64)
}

fn load() -> Option<f64> {
    load_in(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn oom_kills_in(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Returns the load over the last minute.
fn load_in(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

/// Returns a number of bytes by its name.
fn memory_in(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    #[test]
    fn oom_kills_are_read_where_the_kernel_counts_them() {
        assert_eq!(oom_kills_in("pgfault 7\noom_kill 3\ndrop_pagecache 0\n"), Some(3));
        assert_eq!(oom_kills_in("pgfault 7\n"), None);
    }

    #[test]
    fn load_and_memory_are_read_as_the_kernel_writes_them() {
        assert_eq!(load_in("9.13 4.00 2.71 3/456 789\n"), Some(9.13));
        assert_eq!(load_in(""), None);
        let text = "MemTotal:       8000 kB\nMemFree:  10 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(memory_in(text, "MemAvailable:"), Some(2 << 20));
        assert_eq!(memory_in("MemAvailable: much\n", "MemAvailable:"), None);
    }

    #[test]
    fn machine_is_overloaded_only_past_a_configured_bound() {
        let mut bounds = ActorConfig::default();
        assert_eq!(overload(&bounds), None);
        bounds.load_max = 100_000.0;
        bounds.memory_min = 1;
        assert_eq!(overload(&bounds), None);
        bounds.memory_min = 1 << 50;
        let said = overload(&bounds).expect("no machine has that much");
        assert!(said.starts_with("memory ") && said.ends_with(" MiB under 1048576GiB"), "{said}");
    }

    #[test]
    fn own_process_is_alive_and_an_unused_pid_is_not() {
        let (pid, since) = (std::process::id(), own_start());
        assert!(is_alive(pid, None) && is_alive(pid, since) && since.is_some());
        assert!(!is_alive(pid, since.map(|since| since - 1)), "another process had the id before");
        assert!(!is_alive(u32::MAX, None));
        assert!(!id().is_empty());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "only a child process becomes a zombie")]
    fn zombie_is_not_alive() {
        let mut child = std::process::Command::new("/bin/true").spawn().expect("starts");
        let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
        let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(pid), ended).expect("the process ends");
        assert!(fs::metadata(format!("/proc/{}", child.id())).is_ok(), "it is still a zombie");
        assert!(!is_alive(child.id(), None));
        child.wait().expect("reaped");
    }
}
