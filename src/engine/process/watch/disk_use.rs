//! The limit on what a job may keep in its private folder.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The interval of the measurements.
const MEASURE_EVERY: Duration = Duration::from_millis(500);
/// The size that every entry of a folder counts for at least.
const ENTRY_BYTES: u64 = 256;
/// The number of entries from which on a folder exceeds any limit.
const ENTRIES_MAX: u64 = 1_000_000;

/// Measures the folder of a running child at intervals.
#[derive(Debug)]
pub(super) struct DiskUse<'a> {
    folder: &'a Path,
    bytes_max: u64,
    /// The time of the next measurement; `None` without a limit.
    pub(super) next: Option<Instant>,
}

impl<'a> DiskUse<'a> {
    pub(super) fn new(folder: &'a Path, bytes_max: Option<u64>) -> Self {
        let next = bytes_max.map(|_| Instant::now() + MEASURE_EVERY);
        Self { folder, bytes_max: bytes_max.unwrap_or(u64::MAX), next }
    }

    /// Measures the folder if it is time to, and returns true if it exceeds its limit.
    pub(super) fn exceeds_limit(&mut self, now: Instant) -> bool {
        if self.next.is_none_or(|at| now < at) {
            return false;
        }
        let began = Instant::now();
        let exceeds = holds_more_than(self.folder, self.bytes_max);
        // Measuring a folder of many files may take at most a twentieth of the time.
        self.next = Some(Instant::now() + MEASURE_EVERY.max(began.elapsed() * 20));
        exceeds
    }
}

/// Returns true if a folder takes more than `bytes_max` on its disk or has more than
/// [`ENTRIES_MAX`] entries. Links are not followed.
fn holds_more_than(folder: &Path, bytes_max: u64) -> bool {
    let (mut bytes, mut seen) = (0_u64, 0_u64);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let Ok(data) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(data.blocks().saturating_mul(512).max(ENTRY_BYTES));
            seen += 1;
            if bytes > bytes_max || seen > ENTRIES_MAX {
                return true;
            }
            if data.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subfolders_are_measured_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        std::os::unix::fs::symlink("/usr", folder.join("link")).expect("a link");
        std::fs::create_dir(folder.join("in")).expect("created");
        std::fs::write(folder.join("in/a"), "x".repeat(100_000)).expect("written");
        assert!(holds_more_than(folder, 99_000));
        assert!(!holds_more_than(folder, 200_000));
    }
}
