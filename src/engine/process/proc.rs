//! Reads `/proc`: the parents, children and environment of processes.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::ClockId;
use nix::unistd::{SysconfVar, sysconf};

use crate::proto::text::escape;

const BELOW_MAX: usize = 10_000;
/// The largest environment that is read: more than `execve` accepts by default.
const ENVIRONMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: i32,
    pub(super) group: i32,
    /// The time when it began, in the kernel's ticks since boot.
    pub(super) began: u64,
    /// True if it is dead and waits to be reaped.
    pub(super) is_dead: bool,
    /// True if it runs, wants to, or waits for a disk.
    pub(super) wants_to_run: bool,
}

impl Stat {
    pub(super) fn of(pid: i32) -> Option<Self> {
        // Room for 52 numbers and a name.
        let mut stat = [0_u8; 2048];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
        Self::parse(&stat[..length])
    }

    fn parse(stat: &[u8]) -> Option<Self> {
        // The name, in parentheses, may hold parentheses itself.
        let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(stat.get(end_of_name + 1..)?).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let began = fields.nth(16)?.parse().ok()?;
        let (is_dead, wants_to_run) = (matches!(state, "Z" | "X"), matches!(state, "R" | "D"));
        Some(Self { parent, group, began, is_dead, wants_to_run })
    }
}

/// Returns the time since boot in the kernel's ticks, like [`Stat::began`].
pub(super) fn ticks() -> u64 {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let per_second = per_second.and_then(|ticks| u64::try_from(ticks).ok()).unwrap_or(100);
    ClockId::CLOCK_BOOTTIME.now().map_or(0, |now| ticks_of(now, per_second))
}

fn ticks_of(time: TimeSpec, ticks_per_second: u64) -> u64 {
    let whole = u64::try_from(time.tv_sec()).unwrap_or_default();
    let rest = u64::try_from(time.tv_nsec()).unwrap_or_default();
    whole * ticks_per_second + rest * ticks_per_second / 1_000_000_000
}

pub(super) fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(pids) => children.extend(numbers(&pids)),
            // The thread has just ended; another has its children.
            Err(_) if !thread.path().exists() => {}
            // The kernel keeps no such lists.
            Err(_) => return children_by_walking(pid),
        }
    }
    children
}

/// Lists the children of a process's first thread. Orphans that it adopted are among them, as the kernel
/// gives them to the first live thread. `None` if the kernel keeps no such lists.
pub(super) fn adopted(pid: i32) -> Option<Vec<i32>> {
    let mut list = File::open(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    // Nearly always empty: asking for its length first would take as long again.
    let (mut pids, mut some) = (Vec::new(), [0_u8; 1024]);
    loop {
        match list.read(&mut some).ok()? {
            0 => break,
            count => pids.extend_from_slice(&some[..count]),
        }
    }
    Some(numbers(std::str::from_utf8(&pids).ok()?).collect())
}

fn numbers(text: &str) -> impl Iterator<Item = i32> {
    text.split_ascii_whitespace().filter_map(|number| number.parse().ok())
}

fn children_by_walking(pid: i32) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|child| Stat::of(*child).is_some_and(|stat| stat.parent == pid))
        .collect()
}

/// Lists the descendants of a process, parents before children.
pub(super) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while next < found.len() && found.len() < BELOW_MAX {
        let below = children(found[next]);
        found.extend(below);
        next += 1;
    }
    found
}

/// Returns the number of the run that a process belongs to: see `sandbox/limits.rs`.
pub(super) fn run_number(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let values = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    values.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the processor time of a process, none of one that has gone; `None` if the kernel does not report it.
pub(super) fn processor_time(pid: i32) -> Option<Duration> {
    match fs::read_to_string(format!("/proc/{pid}/schedstat")) {
        Ok(text) => Some(Duration::from_nanos(text.split_ascii_whitespace().next()?.parse().ok()?)),
        Err(_) => (!Path::new("/proc").join(pid.to_string()).exists()).then_some(Duration::ZERO),
    }
}

/// Returns the memory of a process that is not backed by files: private, and shared.
pub(super) fn memory_bytes(pid: i32) -> Option<u64> {
    let status = status(pid)?;
    Some(bytes_of(&status, "RssAnon:")? + bytes_of(&status, "RssShmem:")?)
}

pub(super) fn memory_peak_bytes(pid: i32) -> Option<u64> {
    bytes_of(&status(pid)?, "VmHWM:")
}

fn status(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the name of a process's program, escaped; `None` if the process does not exist.
pub(super) fn name(pid: i32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(escape(String::from_utf8_lossy(&name).trim_end()))
}

/// Returns the name of the file behind a descriptor of a process: `pipe:[4711]`.
pub(super) fn open_file(pid: i32, descriptor: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()
}

/// Returns the names of all files that a process has open; `None` if they may not be read.
pub(super) fn open_files(pid: i32) -> Option<Vec<PathBuf>> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    Some(descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).collect())
}

/// Returns a variable of the environment that a process was started with; `None` if it may not be read.
pub(super) fn variable(pid: i32, name: &str) -> Option<Vec<u8>> {
    let mut environment = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment).ok()?;
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(value.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_with_any_name_is_parsed() {
        let stat = b"7 (a) Z 1 (x) S 3 4 5 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 613742 299 9\n";
        let expected =
            Stat { parent: 3, group: 4, began: 613_742, is_dead: false, wants_to_run: false };
        assert_eq!(Stat::parse(stat), Some(expected));
        for bad in [&b""[..], b"7 (a", b"7 (a) S", b"7 (a) S x 4 5"] {
            assert_eq!(Stat::parse(bad), None);
        }
    }

    #[test]
    fn time_since_boot_is_in_the_ticks_of_a_process() {
        let time = TimeSpec::new(12345, 679_999_999);
        assert_eq!(ticks_of(time, 100), 1_234_567);
        assert_eq!(ticks_of(time, 1000), 12_345_679);
        let mut child = crate::engine::process::start::command("/bin/true".as_ref());
        let before = ticks();
        let mut child = child.spawn().expect("it starts");
        let began = Stat::of(i32::try_from(child.id()).expect("a pid")).map(|stat| stat.began);
        let after = ticks();
        child.wait().expect("reaped");
        let began = began.expect("not reaped yet");
        assert!(before <= began && began <= after, "{before} {began} {after}");
    }

    #[test]
    fn child_is_listed_until_it_is_reaped() {
        let mut child = crate::engine::process::start::command("/bin/sleep".as_ref());
        let mut child = child.arg("600").env("MINE", "yes").spawn().expect("it starts");
        let pid = i32::try_from(child.id()).expect("a pid");
        let this = i32::try_from(std::process::id()).expect("a pid");
        assert!(children(this).contains(&pid));
        assert!(children_by_walking(this).contains(&pid));
        assert!(descendants(this).contains(&pid));
        // The parent goes on as soon as the child has a memory of its own, before its environment
        // is in there.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while variable(pid, "MINE").as_deref() != Some(&b"yes"[..]) {
            assert!(std::time::Instant::now() < until, "its environment cannot be read");
        }
        assert_eq!(variable(pid, "MIN"), None);
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert_eq!((Stat::of(pid), children(this).contains(&pid)), (None, false));
    }
}
