//! The figures of a run, and the arithmetic that several measures share.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::cli::stage::unavailable;
use crate::error::Error;

/// The figures of one run, by their names in the report.
pub(super) type Figures = BTreeMap<&'static str, f64>;

/// Returns the time below which the share `q` of all times lies; zero for no times.
pub fn quantile(times: &mut [Duration], q: f64) -> Duration {
    times.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the index is within the few thousand times"
    )]
    let index = (times.len() as f64 * q) as usize;
    times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

pub(super) fn unreachable(error: crate::store::StoreError) -> Error {
    crate::client::ClientError::from(error).into()
}

pub(super) fn resident_bytes(pid: i32) -> Result<u64, Error> {
    let file = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&file)
        .map_err(|error| unavailable(format!("cannot read {file}: {error}")))?;
    let kib = resident_kib(&status);
    kib.map(|kib| kib * 1024).ok_or_else(|| unavailable(format!("{file} has no VmRSS")))
}

fn resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(&mut times, 0.5), Duration::from_millis(51));
        assert_eq!(quantile(&mut times, 0.99), Duration::from_millis(100));
        assert_eq!(quantile(&mut times, 1.0), Duration::from_millis(100));
        assert_eq!(quantile(&mut [], 0.5), Duration::ZERO);
    }

    #[test]
    fn resident_memory_is_read_from_proc() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        assert!(resident_bytes(pid).expect("readable") > 100_000);
        assert_eq!(resident_kib("VmPeak: 9 kB\nVmRSS:\t   1234 kB\n"), Some(1234));
    }
}
