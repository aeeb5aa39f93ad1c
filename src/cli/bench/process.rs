//! What a process costs, as the kernel counts it.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::cli::stage::unavailable;
use crate::error::Error;

/// The memory of a process that is its own and in use now, in bytes.
pub(super) fn resident_bytes(pid: i32) -> Result<u64, Error> {
    let file = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&file).map_err(|error| unreadable(&file, &error))?;
    let kib = resident_kib(&status);
    kib.map(|kib| kib * 1024).ok_or_else(|| unavailable(format!("{file} has no VmRSS")))
}

/// The time that all threads of a process have spent on a processor so far.
pub(super) fn cpu_time(pid: i32) -> Result<Duration, Error> {
    let folder = format!("/proc/{pid}/task");
    let threads = fs::read_dir(&folder).map_err(|error| unreadable(&folder, &error))?;
    let mut total = Duration::ZERO;
    for thread in threads {
        let thread = thread.map_err(|error| unreadable(&folder, &error))?;
        total += on_processor(&thread.path().join("schedstat"));
    }
    Ok(total)
}

fn resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The first number is nanoseconds. A thread that ended meanwhile counts for nothing.
fn on_processor(file: &Path) -> Duration {
    let text = fs::read_to_string(file).unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

fn unreadable(file: &str, error: &io::Error) -> Error {
    unavailable(format!("cannot read {file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_has_used_a_processor() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        assert!(resident_bytes(pid).expect("readable") > 100_000);
        assert!(cpu_time(pid).is_ok());
        assert_eq!(resident_kib("VmPeak: 9 kB\nVmRSS:\t   1234 kB\n"), Some(1234));
    }
}
